"""Passages: texts split by format for embedding and search, with their full-text and vector rows."""
