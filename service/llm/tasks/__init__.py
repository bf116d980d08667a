"""The tasks of a language model."""
