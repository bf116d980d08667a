"""Seals: size and hash of each finished segment, which show any later change."""
