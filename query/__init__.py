"""Reads: full text, vectors, fusion, windows, core memory, and the lines behind hits."""
