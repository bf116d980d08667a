"""The options of commands, and their settings."""
