"""Uses a language model: requests to it, its answers, and a module for each task."""
