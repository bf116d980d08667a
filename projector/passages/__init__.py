"""Passages: texts split along their format for embedding and search; their full-text and vector rows."""
