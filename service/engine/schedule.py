"""When jobs are due: by the wall clock of a zone, which may be put forward and back."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.limits import DAILY, WEEKLY

OFF = "off"

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(?a)([01]?\d|2[0-3]):([0-5]\d)")


class Slot(NamedTuple):
    """A time at which a job is due.

    period: its local day. ts: the time in UTC.
    """

    period: str
    ts: str


class Schedule(NamedTuple):
    """The time of day at which a job is due.

    weekday: from 0 for Monday; None for each day.
    """

    weekday: int | None
    at: time
    zone: tzinfo | None

    @property
    def words(self) -> str:
        """It for people: `daily at 03:00 Europe/Helsinki`."""
        now = datetime.now().astimezone(self.zone)
        zone = getattr(self.zone, "key", None) or timestamps.zone_name(now)
        day = "daily" if self.weekday is None else f"on {_DAYS[self.weekday].capitalize()}"
        return f"{day} at {self.at:%H:%M} {zone}"

    def latest(self, now: str) -> Slot:
        """Return the last slot up to `now`."""
        return max(slot for slot in self._around(now) if slot.ts <= now)

    def next(self, now: str) -> Slot:
        """Return the first slot after `now`."""
        return min(slot for slot in self._around(now) if slot.ts > now)

    def _around(self, now: str) -> list[Slot]:
        today = timestamps.in_zone(now, self.zone).date()
        days = (today + timedelta(days=shift) for shift in range(-8, 9))
        return [self._slot(day) for day in days if self.weekday in (None, day.weekday())]

    def _slot(self, day: date) -> Slot:
        local = datetime.combine(day, self.at)
        # An hour that a zone skips is taken as the one behind it, of one that comes twice the first.
        moment = local.astimezone(UTC) if self.zone is None else local.replace(tzinfo=self.zone)
        return Slot(str(day), timestamps.normalised(moment.isoformat(), naive_is_utc=False))


class JobRules(msgspec.Struct, frozen=True, kw_only=True):
    """When jobs run.

    daily: a time, such as 03:00. weekly: a weekday and a time, such as monday 04:00. `off`: never by itself.
    timezone: of these times, and of contexts that name none, such as Europe/Helsinki; None for the system's.

    Raises:
        BadInput: a time or a zone is none.
    """

    daily: str = DAILY
    weekly: str = WEEKLY
    timezone: str | None = None

    def __post_init__(self) -> None:
        self.schedules()

    def schedules(self) -> dict[str, Schedule | None]:
        """Return the schedule of each job; None for one that is off."""
        zone = zone_of(self.timezone)
        return {
            "daily": schedule_of(self.daily, zone, has_day=False),
            "weekly": schedule_of(self.weekly, zone, has_day=True),
        }


def schedule_of(text: str, zone: tzinfo | None = None, *, has_day: bool) -> Schedule | None:
    """Return the schedule that a setting says; None if it is off.

    Raises:
        BadInput: it is none.
    """
    hint = "such as monday 04:00, or off" if has_day else "such as 03:00, or off"
    if not isinstance(text, str):
        raise BadInput(f"the time of a job is {shown_value(text)}", hint=hint)
    *day, clock = text.lower().split() or [""]
    if [*day, clock] == [OFF]:
        return None
    found = _TIME.fullmatch(clock)
    weekdays = [number for number, name in enumerate(_DAYS) if day in ([name], [name[:3]])]
    if found is None or len(day) != has_day or len(weekdays) != has_day:
        raise BadInput(f"invalid time of a job: {text!r}", hint=hint)
    return Schedule(next(iter(weekdays), None), time(int(found[1]), int(found[2])), zone)


def zone_of(name: str | None) -> tzinfo | None:
    """Return the zone of a name; None is the system's.

    Raises:
        BadInput: there is none of this name.
    """
    if name is None:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise BadInput(f"unknown time zone: {shown_value(name)}", hint="such as Europe/Helsinki") from error
