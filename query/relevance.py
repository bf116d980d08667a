"""How relevant a memory is on a day: what events left of it, times what age leaves.

Listing, pruning and ranking all ask here. Nothing of it is stored: an event changes importance and salience,
age changes with the day alone.
"""

import math
from datetime import date

from memlog.eventlog.categories import CATEGORIES, behaves_as


def freshness(category: str, age_days: int) -> float:
    """What age leaves of a memory, from 0 to 1: half after each half-life of its category, and never less
    than its floor.

    age_days: whole days, from 0 on.
    """
    curve = CATEGORIES[behaves_as(category)]
    return max(curve.floor, math.pow(0.5, age_days / curve.half_life))


def relevance(importance: float, salience: float, category: str, age_days: int) -> float:
    """How relevant a memory is, from 0 to 1: importance × salience × freshness.

    importance, salience: from 0 to 1, as events leave them.
    """
    return importance * salience * freshness(category, age_days)


def age_in_days(since: str, today: str) -> int:
    """How many days `today` is after the day of `since`; 0 where it is not after it.

    since: a time as the log writes it. today: a UTC date, 2026-02-24. Days and not seconds, so that a day has
    one answer.
    """
    return max(0, (date.fromisoformat(today) - date.fromisoformat(since[:10])).days)
