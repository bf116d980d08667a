"""Core memory: setting it, and importing it from files."""
