"""Embedding: models, and the cache of vectors that outlives every rebuild."""

EMBED_BATCH = 64
"""Passages whose vectors are computed between two writes: what an interruption can cost."""
