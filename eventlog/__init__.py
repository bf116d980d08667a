"""The append-only log, the source of truth; see docs/storage/jsonl-format.md. Does not use SQLite."""
