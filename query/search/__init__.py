"""Search: two sides, each ranked, fused by rank."""
