"""Embedding: models, and the vector cache that survives every rebuild."""

EMBED_BATCH = 64
"""Passages per write, and so the most computed vectors that an interruption can lose."""
