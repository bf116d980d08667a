"""The store as programs use it: commands that read, decide, then append."""
