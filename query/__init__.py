"""Queries on the read model: search, contexts, facts, windows, and positions in the log."""
