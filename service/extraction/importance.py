"""Reads how important a language model finds a memory, on whatever scale."""

import re
from collections.abc import Iterable
from typing import Any

UNRATED = 0.5
"""The importance of a memory without one: the model found it worth an entry, so it is above the threshold,
and below what a model or a person has called important."""

_WORDS = {"high": 0.9, "medium": 0.6, "low": 0.3}
"""As the prompts explain the numbers: what must never be forgotten, is often useful, may be useful once."""

_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<number>\d{1,9}(?:[.,]\d{1,20})?)"
    r"\s*(?:(?P<percent>%|percent)|(?:/|of|out of)\s*(?P<of>\d{1,9}))?",
    re.IGNORECASE,
)


def scale_of(given: Iterable[Any]) -> int:
    """What the numbers of one answer go up to: 1, 10 or 100."""
    most = max((number for each in given if (number := _plain(each)) is not None), default=0.0)
    return 1 if most <= 1 else 10 if most <= 10 else 100


def importance_of(given: Any, scale: int) -> float | None:  # noqa: ANN401 - what a model said
    """From 0 to 1; None for what is no importance."""
    number: float | None = None
    if given is None:
        number = UNRATED
    elif (plain := _plain(given)) is not None:
        number = plain / scale if plain >= 1 else plain
    elif isinstance(given, str):
        number = _of_words(given)
    return number if number is not None and 0 <= number <= 1 else None


def _plain(given: Any) -> float | None:  # noqa: ANN401 - what a model said
    """A number that says nothing of its scale."""
    if isinstance(given, str):
        found = _NUMBER.search(given)
        return _signed(found) if found and not found["percent"] and not found["of"] else None
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def _of_words(given: str) -> float:
    if found := _NUMBER.search(given):
        return _signed(found) / (100 if found["percent"] else max(1, int(found["of"])))
    said = given.lower()
    return next((number for word, number in _WORDS.items() if word in said), UNRATED)


def _signed(found: re.Match[str]) -> float:
    return float(found["sign"] + found["number"].replace(",", "."))
