"""Seals, verification and erasure of finished segments."""
