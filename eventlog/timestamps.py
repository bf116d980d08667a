"""Times in memlog's form, which sorts as text: RFC 3339, UTC, milliseconds (`2026-02-24T10:15:00.000Z`)."""

import re
import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
# Hours to 23: some Pythons accept 24:00, and a log must give the same rows on all.
_TO_THE_MINUTE = r"(?a)\d{4}-\d\d-\d\d[Tt ](?:[01]\d|2[0-3]):\d\d"

LAST = "9999-12-31T23:59:59.999Z"
"""The latest time."""


def now() -> str:
    """The current time."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_whole_second(seconds)}.{nanoseconds // 1_000_000:03d}Z"


@lru_cache(maxsize=1)
def _whole_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def today() -> str:
    """The current UTC date: 2026-02-24."""
    return now()[:10]


def is_written_form(text: str) -> bool:
    """Whether `text` is a time in memlog's form."""
    return _WRITTEN.fullmatch(text) is not None


def normalised(text: str, *, naive_is_utc: bool) -> str:
    """An RFC 3339 time of any offset and precision, in memlog's form. Drops digits beyond the millisecond.

    naive_is_utc: take a time without offset as UTC, as foreign writers mean it (`utcnow().isoformat()`).

    Raises:
        ValueError: `text` is no such time, or lacks an offset.
    """
    if not re.match(_TO_THE_MINUTE, text):
        raise ValueError(f"{text!r} is not a time such as 2026-02-24T10:15:00Z")
    moment = datetime.fromisoformat(text.upper())
    if moment.tzinfo is None:
        if not naive_is_utc:
            raise ValueError(f"{text!r} has no offset; add Z for UTC")
        moment = moment.replace(tzinfo=UTC)
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from error
    return _written(utc)


def as_text(moment: datetime) -> str:
    """A datetime as RFC 3339; without an offset it is UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def of_day_or_time(text: str) -> str:
    """A day, as its first moment, or an RFC 3339 time, in UTC without an offset. Raises ValueError."""
    is_day = len(text) == len("2026-02-24")
    return normalised(f"{text}T00:00:00" if is_day else text, naive_is_utc=True)


def day(text: str) -> str:
    """`text` itself. Raises ValueError unless it is a date such as 2026-02-24."""
    if not re.fullmatch(r"(?a)\d{4}-\d\d-\d\d", text):
        raise ValueError(f"{text!r} is no day such as 2026-02-24")
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no day of the calendar") from error
    return text


def shifted(text: str, milliseconds: int) -> str:
    """A time shifted by milliseconds, at most LAST; an impossible date is returned as it is."""
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z")) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return LAST
    except ValueError:
        return text
    return _written(moment)


def _written(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='milliseconds')[: len('2026-02-24T10:15:00.000')]}Z"
