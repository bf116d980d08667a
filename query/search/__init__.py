"""Search: full text and vectors, each ranked separately, then fused by rank."""
