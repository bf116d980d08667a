"""Prints answers, notes and help."""
