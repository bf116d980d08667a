"""The process of a command: entry point, errors, and streams."""
