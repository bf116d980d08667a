"""The times of day at which jobs are due."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, format_value_for_message

OFF = "off"

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(?a)([01]?\d|2[0-3]):([0-5]\d)")


class Slot(NamedTuple):
    """A time at which a job is due.

    period: the local day of the slot. ts: its time in UTC.
    """

    period: str
    ts: str


class Schedule(NamedTuple):
    """The time of day at which a job is due.

    weekday: 0 is Monday; None means every day.
    """

    weekday: int | None
    at: time
    zone: tzinfo | None

    @property
    def description(self) -> str:
        """The schedule in words: `daily at 03:00 Europe/Helsinki`."""
        now = datetime.now().astimezone(self.zone)
        zone = getattr(self.zone, "key", None) or timestamps.name_zone_at(now)
        day = "daily" if self.weekday is None else f"on {_DAYS[self.weekday].capitalize()}"
        return f"{day} at {self.at:%H:%M} {zone}"

    def latest_slot(self, now: str) -> Slot:
        """Return the last slot at or before `now`."""
        return max(slot for slot in self._slots_around(now) if slot.ts <= now)

    def next_slot(self, now: str) -> Slot:
        """Return the first slot after `now`."""
        return min(slot for slot in self._slots_around(now) if slot.ts > now)

    def _slots_around(self, now: str) -> list[Slot]:
        today = timestamps.convert_to_zone(now, self.zone).date()
        days = (today + timedelta(days=shift) for shift in range(-8, 9))
        return [self._slot_on_day(day) for day in days if self.weekday in (None, day.weekday())]

    def _slot_on_day(self, day: date) -> Slot:
        local = datetime.combine(day, self.at)
        # A time in a skipped hour is moved to the hour after it; of a repeated hour, the first counts.
        moment = local.astimezone(UTC) if self.zone is None else local.replace(tzinfo=self.zone)
        return Slot(str(day), timestamps.normalise_timestamp(moment.isoformat(), naive_is_utc=False))


def parse_schedule(text: str, zone: tzinfo | None = None, *, has_day: bool) -> Schedule | None:
    """Parse the schedule in a setting; None if it is off.

    Raises:
        BadInput: the setting is invalid.
    """
    hint = f"use a time such as {'monday ' * has_day}04:00, or off"
    if not isinstance(text, str):
        raise BadInput(f"the time of a job must be text, not {format_value_for_message(text)}", hint=hint)
    *day, clock = text.lower().split() or [""]
    if [*day, clock] == [OFF]:
        return None
    found = _TIME.fullmatch(clock)
    weekdays = [number for number, name in enumerate(_DAYS) if day in ([name], [name[:3]])]
    if found is None or len(day) != has_day or len(weekdays) != has_day:
        raise BadInput(f"invalid time of a job: {text!r}", hint=hint)
    return Schedule(next(iter(weekdays), None), time(int(found[1]), int(found[2])), zone)


def load_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by name; None, for the system's zone, if `name` is None.

    Raises:
        BadInput: no time zone has this name.
    """
    if name is None:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise BadInput(
            f"unknown time zone: {format_value_for_message(name)}",
            hint="use a name such as Europe/Helsinki or UTC; pip install tzdata adds missing zones",
        ) from error
