"""The relevance of a memory on a day, for lists, pruning and ranking.

It is not stored: events change importance and salience, but age changes every day.
"""

import math
from datetime import date

from memlog.eventlog.categories import CATEGORIES, behaves_as


def freshness(category: str, age_days: int) -> float:
    """What age leaves of a memory, from 0 to 1: half after each half-life of its category, down to its floor.

    age_days: whole days, from 0 on.
    """
    curve = CATEGORIES[behaves_as(category)]
    return max(curve.floor, math.pow(0.5, age_days / curve.half_life))


def relevance(importance: float, salience: float, category: str, age_days: int) -> float:
    """The relevance of a memory, from 0 to 1: importance × salience × freshness, each from 0 to 1."""
    return importance * salience * freshness(category, age_days)


def age_in_days(since: str, today: str) -> int:
    """The days from `since` to `today`, at least 0; days, not seconds, so that a day has one answer.

    since: a time as the log writes it. today: a UTC date, 2026-02-24.
    """
    return max(0, (date.fromisoformat(today) - date.fromisoformat(since[:10])).days)
