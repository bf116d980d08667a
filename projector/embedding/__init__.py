"""Embedding: models, and the cache of vectors that outlives every rebuild."""
