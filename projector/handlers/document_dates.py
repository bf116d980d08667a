"""The date of a document: that of its front matter, else of its file, else of the event that has it."""

import re

from memlog.eventlog import timestamps
from memlog.eventlog.events import DocumentIndexed

_FENCE = re.compile(
    r"\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<lines>.*?)^(?P=fence)[ \t]*\r?$", re.M | re.S
)
"""YAML between `---`, or TOML between `+++`, at the very beginning, as Jekyll, Hugo and Obsidian have it."""

_LONGEST = 16 * 1024
"""Characters in which front matter has to end: a text without any is not searched to its end."""

_NAMES = ("date", "updated", "lastmod", "modified", "created")
"""What names the date, the best first."""

_MEMBER = re.compile(
    r"(?ami)^(\w+)[ \t]*[:=][ \t]*[\"']?"
    r"(\d{4}-\d\d-\d\d)(?:[T ]([\d:.]+) ?(Z|[+-]\d\d:?\d\d)?)?"
)
"""A name, its day, and the time of day and offset, if given."""


def dated(event: DocumentIndexed, ts: str) -> str:
    """The date as the log writes times. A day is its first moment in UTC. ts: that of the event."""
    return _of_front_matter(event.content) or _of_file(event.mtime) or ts


def _of_front_matter(content: str) -> str | None:
    front = _FENCE.match(content[:_LONGEST])
    if front is None:
        return None
    found = {name.lower(): parts for name, *parts in reversed(_MEMBER.findall(front["lines"]))}
    times = (_of_parts(*found[name]) for name in _NAMES if name in found)
    return next(filter(None, times), None)


def _of_parts(day: str, time: str, offset: str) -> str | None:
    return _written(f"{day}T{time}{offset}" if time else day) or _written(day)


def _of_file(mtime: str | float | None) -> str | None:
    """mtime: RFC 3339, or seconds since 1970."""
    if not isinstance(mtime, int | float):
        return None if mtime is None else _written(mtime)
    try:
        return timestamps.of_seconds(mtime)
    except ValueError:
        return None


def _written(time: str) -> str | None:
    try:
        return timestamps.of_day_or_time(time)
    except ValueError:
        return None
