"""The time zone for times and days in text output. JSON stays in UTC."""

import os
from collections.abc import Callable
from datetime import datetime, tzinfo

from memlog.eventlog import timestamps


class Zone:
    """The time zone of this run.

    name: returns the `timezone` setting; None means the system's zone, which TZ sets.
    is_told: whether a time has already been printed with its zone.
    """

    def __init__(self) -> None:
        self.name: Callable[[], str | None] = lambda: None
        self.is_told = False


ZONE = Zone()
"""The zone of this process, which runs one command line."""


def time_zone_of_run() -> tzinfo | None:
    """Return this run's time zone; None means the system's."""
    name = ZONE.name()
    return None if name is None else _load_zone_or_none(name)


def format_in_local_time(ts: str | None) -> str:
    """Format a log timestamp in local time, such as `2026-02-24 10:15`; the first one names its zone."""
    if not ts:
        return ""
    try:
        moment = timestamps.convert_to_zone(ts, time_zone_of_run())
    except (OverflowError, ValueError, OSError):  # beyond the range of datetime
        return f"{ts[:16].replace('T', ' ')} UTC"
    name = "" if ZONE.is_told else f" {_zone_name(moment)}"
    ZONE.is_told = True
    return moment.isoformat(" ", "minutes")[:16] + name


def _zone_name(moment: datetime) -> str:
    """Return the zone's name, such as Europe/Helsinki, or its abbreviation, such as EET, if unknown."""
    key = getattr(moment.tzinfo, "key", None) or os.environ.get("TZ", "").removeprefix(":")
    if "/" in key and not key.startswith("/") and _load_zone_or_none(key) is not None:
        return key
    return timestamps.name_zone_at(moment)


def _load_zone_or_none(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
