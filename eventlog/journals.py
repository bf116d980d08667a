"""Finds the day of a journal in its file name."""

import re
from datetime import date

_YEAR, _MONTH, _DAY = r"(?P<y>(?:19|20)\d\d)", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12]\d|3[01])"
_SHORT_MONTH, _SHORT_DAY = r"(?P<m>1[0-2]|0?[1-9])", r"(?P<d>3[01]|[12]\d|0?[1-9])"
_NAME, _NUMBER = r"(?P<name>[a-z]{3,9})\.?", r"(?P<d>\d\d?)(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[ ,._-]+)?"
_GAP = r"[ ,._-]{1,3}"
_NAMES = (
    re.compile(rf"{_WEEKDAY}{_YEAR}(?P<sep>[-_. ]?){_MONTH}(?P=sep){_DAY}(?!\d).*", re.DOTALL),
    re.compile(rf"{_WEEKDAY}{_YEAR}(?P<sep>[-_.]){_SHORT_MONTH}(?P=sep){_SHORT_DAY}"),
    re.compile(rf"{_WEEKDAY}{_SHORT_DAY}(?P<sep>[-_.]){_SHORT_MONTH}(?P=sep){_YEAR}"),
    re.compile(rf"{_WEEKDAY}{_SHORT_MONTH}(?P<sep>[-_.]){_SHORT_DAY}(?P=sep){_YEAR}"),
    re.compile(rf"{_WEEKDAY}{_NAME}{_GAP}{_NUMBER}{_GAP}{_YEAR}"),
    re.compile(rf"{_WEEKDAY}{_NUMBER}{_GAP}{_NAME}{_GAP}{_YEAR}"),
    re.compile(rf"{_WEEKDAY}{_YEAR}{_GAP}{_NAME}{_GAP}{_NUMBER}"),
)
"""A title may follow a date that starts with the year. 03-04-2026 is in April; 02-27-2026 is in February."""

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)


def find_day_of_journal(name: str) -> str | None:
    """Return the day in a journal's file name, such as 2026-02-24; None if the file is not a journal.

    name: the file name without its extension: `2026_02_24`, `20260224`, `24.02.2026`, `Feb 24th, 2026`.
    """
    text = name.strip().lower()
    for found in filter(None, (pattern.fullmatch(text) for pattern in _NAMES)):
        parts = found.groupdict()
        month = int(parts["m"]) if "m" in parts else _find_month(parts["name"])
        try:
            return date(int(parts["y"]), month, int(parts["d"])).isoformat()
        except ValueError:
            continue
    return None


def _find_month(name: str) -> int:
    """Return the number of the month whose name begins with `name`; 0 if no month does."""
    return next((number for number, month in enumerate(_MONTHS, 1) if month.startswith(name)), 0)
