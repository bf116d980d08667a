"""Embedding models, and the vector cache, which survives rebuilds."""

EMBED_BATCH = 64
"""Passages per write, and so the most computed vectors that an interruption can lose."""
