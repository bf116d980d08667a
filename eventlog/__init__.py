"""The log, the source of truth: writes and reads its segments. Uses no SQLite.

The format is docs/storage/jsonl-format.md.
"""
