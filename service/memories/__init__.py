"""Memories: saving, merging what says the same, fading."""
