"""Command-line options and settings."""
