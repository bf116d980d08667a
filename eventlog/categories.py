"""The categories of memories, and how each of them fades.

docs/memory/salience.md has this table with its reasons; a test keeps them in step. A log may hold any other
category: it behaves as `other`.
"""

import msgspec

from memlog.eventlog.errors import BadInput


class Category(msgspec.Struct, frozen=True):
    """How memories of one category fade.

    rate: what a decay multiplies their salience by where it is not told otherwise, from 0 to 1.
    half_life: days in which age halves their freshness.
    floor: the freshness, from 0 to 1, that age leaves them for ever.
    """

    rate: float
    half_life: int
    floor: float


OTHER = "other"
"""The category of a memory that names none."""

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
"""Every category that memlog knows, by its name."""

_READ_AS = {"decision": "decisions"}


def read_as(name: str) -> str:
    """The category that `name` stands for: `decision` is `decisions`, all others are themselves."""
    return _READ_AS.get(name, name)


def behaves_as(name: str) -> str:
    """The category of the table that `name` behaves as: itself where it is known, else `other`."""
    known = read_as(name)
    return known if known in CATEGORIES else OTHER


def known_category(name: str) -> str:
    """The category that `name` stands for, where there is one.

    Raises:
        BadInput: there is none; the message lists those that there are.
    """
    known = read_as(name) if isinstance(name, str) else ""
    if known not in CATEGORIES:
        raise BadInput(f"category is {name!r}, not one of {', '.join(CATEGORIES)}", hint=f"{OTHER} fits all")
    return known


def rates_by_category(rates: dict[str, float]) -> dict[str, float]:
    """`rates` under the categories that their names stand for. What is named by its own name counts."""
    return {read_as(name): rate for name, rate in rates.items()} | {
        name: rate for name, rate in rates.items() if read_as(name) == name
    }


def rate_of(rates: dict[str, float], category: str) -> float:
    """What a decay of these `rates` multiplies the salience of a memory of `category` by; 1 where it names
    neither that nor, for a category that is not known, `other`."""
    return rates.get(category, 1.0 if category in CATEGORIES else rates.get(OTHER, 1.0))
