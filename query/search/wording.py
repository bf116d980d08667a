"""Compares words of texts that no index has."""

_ENDING = 2
"""Letters by which forms of a word may differ at the end."""


def are_forms(one: str, other: str) -> bool:
    """Whether two words are probably forms of one."""
    shorter = min(len(one), len(other))
    return one == other or (shorter > _ENDING and one[: shorter - _ENDING] == other[: shorter - _ENDING])
