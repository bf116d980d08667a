"""The log, the source of truth: docs/storage/jsonl-format.md. Uses no SQLite."""
