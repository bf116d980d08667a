"""Search: full text and vectors, ranked separately, then fused."""
