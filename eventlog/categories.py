"""The known memory categories, and how quickly memories in each one fade."""

from collections.abc import Mapping

import msgspec

from memlog.eventlog.errors import BadInput, format_value_for_message

# docs/memory/salience.md has this table and its reasons; a test compares them. Unknown categories in a log
# behave as `other`.


class Category(msgspec.Struct, frozen=True):
    """The rules by which memories in one category fade.

    rate: the default factor by which a decay multiplies their salience, from 0 to 1.
    half_life: the number of days after which their freshness has halved.
    floor: the lowest freshness that they reach with age, from 0 to 1.
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
"""The known categories, keyed by name."""

PRIVATE_CATEGORIES = frozenset(["credential", "credentials"])
"""Categories whose memories are never sent to a provider."""

_READ_AS = {"decision": "decisions"}


def resolve_alias(name: str) -> str:
    """Return the category for an alias, such as `decisions` for `decision`; return other names unchanged."""
    return _READ_AS.get(name, name)


def find_known_category_or_other(name: str) -> str:
    """Return the known category for a name or alias, or `other` if it is unknown."""
    known = resolve_alias(name)
    return known if known in CATEGORIES else OTHER


def find_known_category(name: str) -> str:
    """Return the known category for a name or alias. Raises BadInput if it is unknown."""
    known = resolve_alias(name) if isinstance(name, str) else ""
    if known not in CATEGORIES:
        raise BadInput(
            f"category is {format_value_for_message(name)}, not one of {', '.join(CATEGORIES)}",
            hint=f"use {OTHER} if nothing else fits",
        )
    return known


def resolve_rate_aliases(rates: dict[str, float]) -> dict[str, float]:
    """Return `rates` with aliases replaced by their categories; a rate under the category's own name wins."""
    return {resolve_alias(name): rate for name, rate in rates.items()} | {
        name: rate for name, rate in rates.items() if resolve_alias(name) == name
    }


def read_decay_rates(rates: Mapping[str, float]) -> dict[str, float]:
    """Return decay factors keyed by category, with aliases resolved.

    Raises:
        BadInput: a category is unknown, or a factor is not between 0 and 1.
    """
    for name, rate in rates.items():
        find_known_category(name)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise BadInput(f"the rate of {name} is {rate!r}", hint="use a number from 0 to 1")
    return resolve_rate_aliases(dict(rates))


def find_decay_rate(rates: dict[str, float], category: str) -> float:
    """Return a category's decay factor: its own rate, the rate of `other` if it is unknown, or else 1."""
    return rates.get(category, 1.0 if category in CATEGORIES else rates.get(OTHER, 1.0))
