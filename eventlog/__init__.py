"""The truth: writes and reads the segments of the log. Knows no SQLite.

The format is docs/storage/jsonl-format.md.
"""
