"""Contexts: what goes into a prompt, within a token budget."""
