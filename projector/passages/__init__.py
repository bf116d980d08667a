"""Passages: texts cut along their format, to be embedded and searched; their full-text and vector rows."""
