"""The process of a command: its entry, its errors, its streams."""
