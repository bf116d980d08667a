"""Seals: what each segment held when it got no more lines, so that any change of it is found."""
