"""The categories of memories, and how each fades.

docs/memory/salience.md has this table and its reasons; a test compares them. Any other category in a log
behaves as `other`.
"""

import msgspec

from memlog.eventlog.errors import BadInput, shown_value


class Category(msgspec.Struct, frozen=True):
    """How memories of one category fade.

    rate: the default factor of a decay on their salience, from 0 to 1.
    half_life: days in which age halves their freshness.
    floor: the lowest freshness by age, from 0 to 1.
    """

    rate: float
    half_life: int
    floor: float


OTHER = "other"
"""The default category."""

CATEGORIES = {
    "decisions": Category(rate=1.0, half_life=365, floor=0.5),
    "summaries": Category(rate=0.99, half_life=90, floor=0.1),
    "context": Category(rate=0.90, half_life=30, floor=0.05),
    "identity": Category(rate=1.0, half_life=1825, floor=0.8),
    "config": Category(rate=1.0, half_life=365, floor=0.4),
    "credential": Category(rate=1.0, half_life=180, floor=0.4),
    "solution": Category(rate=0.998, half_life=270, floor=0.2),
    "event": Category(rate=0.98, half_life=60, floor=0.05),
    "conversation": Category(rate=0.95, half_life=14, floor=0.01),
    "temp": Category(rate=0.80, half_life=1, floor=0.0),
    "debug": Category(rate=0.85, half_life=3, floor=0.0),
    OTHER: Category(rate=1.0, half_life=120, floor=0.1),
}
"""The known categories by name."""

PRIVATE_CATEGORIES = frozenset(["credential", "credentials"])
"""Memories of these are sent to no provider."""

_READ_AS = {"decision": "decisions"}


def read_as(name: str) -> str:
    """The category that a name means: `decisions` for `decision`; any other name means itself."""
    return _READ_AS.get(name, name)


def behaves_as(name: str) -> str:
    """The category of the table that `name` behaves as: `other` if it is unknown."""
    known = read_as(name)
    return known if known in CATEGORIES else OTHER


def known_category(name: str) -> str:
    """As `read_as`, for known categories. Raises BadInput, which lists them, for others."""
    known = read_as(name) if isinstance(name, str) else ""
    if known not in CATEGORIES:
        raise BadInput(
            f"category is {shown_value(name)}, not one of {', '.join(CATEGORIES)}",
            hint=f"use {OTHER} where no other fits",
        )
    return known


def rates_by_category(rates: dict[str, float]) -> dict[str, float]:
    """`rates` by category; a category's own name wins over other names for it."""
    return {read_as(name): rate for name, rate in rates.items()} | {
        name: rate for name, rate in rates.items() if read_as(name) == name
    }


def rate_of(rates: dict[str, float], category: str) -> float:
    """The factor of a decay for a category: its rate, or that of `other` if it is unknown, or 1."""
    return rates.get(category, 1.0 if category in CATEGORIES else rates.get(OTHER, 1.0))
