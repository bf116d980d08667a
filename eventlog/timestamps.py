"""Timestamps in memlog's canonical format: RFC 3339, UTC, milliseconds (`2026-02-24T10:15:00.000Z`).

They sort chronologically as text.
"""

import re
import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from functools import lru_cache

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
# Hours up to 23: some Python versions accept 24:00, but a log must project to the same rows on all of them.
_TO_THE_MINUTE = r"(?a)\d{4}-\d\d-\d\d[Tt ](?:[01]\d|2[0-3]):\d\d"
_OFFSET = re.compile(r"(?:[Zz]|[+-]\d\d:?\d\d)$", re.ASCII)
_LEAP = re.compile(r"(?a)(.{13}:\d\d):60(?:\.\d+)?")

LAST = "9999-12-31T23:59:59.999Z"
"""The latest time."""


def now() -> str:
    """Return the current time as a canonical timestamp."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_format_second(seconds)}.{nanoseconds // 1_000_000:03d}Z"


@lru_cache(maxsize=1)
def _format_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def today() -> str:
    """Return the current UTC date, such as `2026-02-24`."""
    return now()[:10]


def is_canonical(text: str) -> bool:
    """Whether `text` is a timestamp in memlog's canonical format."""
    return _WRITTEN.fullmatch(text) is not None


def normalise_timestamp(text: str, *, naive_is_utc: bool) -> str:
    """Convert an RFC 3339 time with any offset and precision to canonical format, truncated to milliseconds.

    A leap second (23:59:60 UTC) becomes 23:59:59.999.

    naive_is_utc: treat a time without an offset as UTC, as other programs mean it (`utcnow().isoformat()`);
    otherwise such a time raises ValueError, as does text that is not a time.
    """
    if not re.match(_TO_THE_MINUTE, text):
        raise ValueError(f"invalid timestamp: {text!r}; write it as 2026-02-24T10:15:00Z")
    is_leap = _LEAP.match(text)
    moment = datetime.fromisoformat((_LEAP.sub(r"\1:59.999", text) if is_leap else text).upper())
    if moment.tzinfo is None:
        if not naive_is_utc:
            raise ValueError(f"timestamp without an offset: {text!r}; add Z for UTC")
        moment = moment.replace(tzinfo=UTC)
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"timestamp outside the years 1 to 9999: {text!r}") from error
    if is_leap and (utc.hour, utc.minute) != (23, 59):
        raise ValueError(f"invalid timestamp: {text!r}; a leap second is 23:59:60 UTC")
    return _format_moment(utc)


def format_datetime(moment: datetime) -> str:
    """Format a datetime in RFC 3339; one without a time zone is taken as UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def parse_day_or_time(text: str, zone: tzinfo | None = UTC, *, is_end: bool = False) -> str:
    """Convert a day or an RFC 3339 time, with or without an offset, to a canonical timestamp.

    A day becomes its first moment. Raises ValueError.

    zone: the time zone for days and for times without an offset; None for the system's.
    is_end: convert a day to the first moment after it instead.
    """
    if len(text) == len("2026-02-24"):
        first = datetime.combine(date.fromisoformat(check_day(text)), time_of_day.min)
        try:
            return _format_moment((first + timedelta(days=is_end)).replace(tzinfo=zone).astimezone(UTC))
        except (OverflowError, ValueError, OSError):  # depending on the system's functions
            return LAST if is_end else "0001-01-01T00:00:00.000Z"
    if zone is UTC or _OFFSET.search(text):
        return normalise_timestamp(text, naive_is_utc=True)
    moment = datetime.fromisoformat(normalise_timestamp(text, naive_is_utc=True)[:-1]).replace(tzinfo=zone)
    return _format_moment(moment.astimezone(UTC))


def timestamp_from_seconds(seconds: float) -> str:
    """Convert seconds since 1970 to a canonical timestamp. Raises ValueError outside the years 1 to 9999."""
    try:
        return _format_moment(datetime(1970, 1, 1) + timedelta(seconds=seconds))
    except OverflowError as error:
        raise ValueError(f"timestamp outside the years 1 to 9999: {seconds!r}") from error


def convert_to_zone(text: str, zone: tzinfo | None) -> datetime:
    """Convert a canonical timestamp to `zone` (None: the system's). Raises ValueError or OverflowError."""
    return datetime.fromisoformat(text).astimezone(zone)


def name_zone_at(moment: datetime) -> str:
    """Return a moment's time zone abbreviation, such as EET; its offset if the zone is wrongly named UTC.

    For example, POSIX treats `TZ=UTC+3` as UTC-03:00.
    """
    name = moment.tzname() or "UTC"
    return f"UTC{moment.isoformat()[-6:]}" if name in ("UTC", "GMT") and moment.utcoffset() else name


def check_day(text: str) -> str:
    """Return `text` if it is a date such as 2026-02-24. Raises ValueError otherwise."""
    if not re.fullmatch(r"(?a)\d{4}-\d\d-\d\d", text):
        raise ValueError(f"invalid date: {text!r}; write it as 2026-02-24")
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not a calendar day: {text!r}") from error
    return text


def shift_timestamp(text: str, milliseconds: int) -> str:
    """Shift a timestamp by `milliseconds`, up to LAST; return an impossible date unchanged."""
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z")) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return LAST
    except ValueError:
        return text
    return _format_moment(moment)


def _format_moment(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='milliseconds')[: len('2026-02-24T10:15:00.000')]}Z"
