"""Extraction: a language model distils conversations into memories, which are events."""
