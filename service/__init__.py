"""The store as programs use it: operations that read, decide, then append."""
