"""The order of events: the precedence of changes, and a monotonic clock for each segment."""

import os
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import ends_with_crc
from memlog.eventlog.events import Change, Event
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import closing_descriptor, file_identity, read_lines_backwards
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.streams import SegmentName

CAP = 5 * 60 * 1000
"""The most milliseconds by which the `ts` of a change may be ahead of the clock when it is appended: the
clock skew that Kerberos allows (RFC 4120, 8.2)."""


def compute_precedence(event: Event, segment: SegmentName) -> str:
    """Return the precedence of an event that has a `ts`, as a timestamp.

    This is `wins`, or else `ts`, but at most `CAP` later than `at` (in a line from another program: later
    than the segment's day).
    """
    if isinstance(event, Change) and event.wins is not None:
        return event.wins
    is_dated = event.at is not None and timestamps.is_canonical(event.at)
    return cap_precedence(event.ts or "", event.at if is_dated and event.at else end_of_day(segment.day))


def next_precedence(ts: str, now: str, highest: str, *, is_dated: bool) -> str:
    """Return the `wins` of a change appended at `now`.

    highest: the highest precedence in the stream so far; "" if it has no changes.
    is_dated: whether the caller gave `ts`, which then determines the precedence; otherwise the change wins
      over all earlier ones.
    """
    own = cap_precedence(ts, now)
    return own if is_dated or own > highest else timestamps.shift_timestamp(highest, 1)


def cap_precedence(ts: str, at: str) -> str:
    """Return `ts`, but at most `CAP` milliseconds after `at`."""
    return ts if ts <= at else min(ts, timestamps.shift_timestamp(at, CAP))


def end_of_day(day: str) -> str:
    """Return the last millisecond of a UTC day."""
    return f"{day}T23:59:59.999Z"


class _Tail(msgspec.Struct, frozen=True):
    """A summary of the stamps in a segment before the offset `end`.

    at: the last `at` written by memlog. highest: the highest precedence of any change.
    is_stamped: whether memlog's last change has `wins`, so that earlier changes need not be read.
    """

    end: int = 0
    at: str = ""
    highest: str = ""
    is_stamped: bool = False


class _Stamps(msgspec.Struct, frozen=True):
    ts: str | None = None
    at: str | None = None
    wins: str | None = None
    highest_wins: str | None = None


class Clock:
    """Remembers the stamps of segments, so that each append reads only new lines."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], _Tail] = {}
        self._changes: dict[tuple[int, int], _Tail] = {}

    def next_append_time(self, fd: int, status: os.stat_result) -> str:
        """Return the current time, or the segment's last `at` if the system clock was set back."""
        return max(timestamps.now(), self._refresh_tail(self._at, fd, status, None).at)

    def has_shrunk(self, status: os.stat_result) -> bool:
        """Whether a segment is shorter than when this process last saw it."""
        known = self._at.get(file_identity(status))
        return known is not None and status.st_size < known.end

    def record_write(self, status: os.stat_result, end: int, at: str, highest: str) -> None:
        """Record that lines stamped `at` were appended to the segment with this status, up to `end`.

        highest: the stream's highest precedence, including these lines; "" if none of them is a change.
        """
        key = file_identity(status)
        self._at[key] = _Tail(end, at)
        if highest:
            self._changes[key] = _Tail(end, "", highest, is_stamped=True)

    def highest_precedence(self, folder: int, names: Iterable[SegmentName]) -> str:
        """Return the highest precedence in the segments `names` of an open folder, or ""."""
        written: defaultdict[str, list[SegmentName]] = defaultdict(list)
        for name in sorted(names, key=lambda name: name.age_key, reverse=True):
            written[name.writer].append(name)
        plain = written.pop("", [])
        highest = max(
            (self._highest_precedence_of_writer(folder, newest) for newest in written.values()), default=""
        )
        for name in plain:
            # Lines of a plain segment have no `wins`, so this is an upper bound on their precedence.
            if cap_precedence(timestamps.LAST, end_of_day(name.day)) > highest:
                highest = max(highest, self._summarise_tail_of_changes(folder, name).highest)
        return highest

    def _highest_precedence_of_writer(self, folder: int, newest_first: list[SegmentName]) -> str:
        highest = ""
        for name in newest_first:
            tail = self._summarise_tail_of_changes(folder, name)
            highest = max(highest, tail.highest)
            if tail.is_stamped:
                break
        return highest

    def _summarise_tail_of_changes(self, folder: int, name: SegmentName) -> _Tail:
        status = disk.status_of_path(name.filename, folder=folder)
        known = self._changes.get(file_identity(status))
        if known is not None and known.end == status.st_size:
            return known
        with closing_descriptor(disk.open(name.filename, disk.READ, folder=folder)) as fd:
            return self._refresh_tail(self._changes, fd, disk.status_of_descriptor(fd), name.day)

    def _refresh_tail(
        self, known: dict[tuple[int, int], _Tail], fd: int, status: os.stat_result, day: str | None
    ) -> _Tail:
        """Update and return a summary. day: the segment's day if changes are needed; None for `at` only."""
        key = file_identity(status)
        before = known.get(key, _Tail())
        if status.st_size < before.end:  # an older copy was restored
            before = _Tail()
        if status.st_size > before.end:
            before = _scan_lines_backwards(fd, before, status.st_size, day)
            known[key] = before
        return before


def read_last_append_time(fd: int) -> str:
    """Return the last `at` that memlog wrote to an open segment, or ""."""
    return _scan_lines_backwards(fd, _Tail(), disk.status_of_descriptor(fd).st_size, None).at


def _scan_lines_backwards(fd: int, before: _Tail, size: int, day: str | None) -> _Tail:
    lines = read_lines_backwards(fd, before.end, size)
    pending = next(lines)  # another writer may still be writing it
    end, highest = size - len(pending), ""
    for stamps in filter(None, map(_parse_stamps, chain([pending], lines))):
        if day is None:
            if stamps.at:
                return _Tail(end, max(before.at, stamps.at))
            continue
        highest = max(
            highest, stamps.highest_wins or stamps.wins or _compute_precedence_of_stamps(stamps, day)
        )
        if stamps.wins:
            return _Tail(end, "", max(before.highest, highest), is_stamped=True)
    return _Tail(end, before.at, max(before.highest, highest), before.is_stamped)


def _parse_stamps(line: bytes) -> _Stamps | None:
    """Return the stamps of a line; only `ts` unless memlog wrote it; None for a damaged line.

    A damaged line could have any year, even 9999.
    """
    line = line.strip(b"\0")  # a power cut may leave NUL bytes
    try:
        stamps = msgspec.json.decode(line, type=_Stamps)
        is_of_memlog = ends_with_crc(line) and stamps.at is not None and timestamps.is_canonical(stamps.at)
    except (BadLine, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not is_of_memlog:
        return _Stamps(stamps.ts)
    has_wins = stamps.wins is not None and timestamps.is_canonical(stamps.wins)
    return stamps if has_wins else _Stamps(stamps.ts, stamps.at)


def _compute_precedence_of_stamps(stamps: _Stamps, day: str) -> str:
    try:
        ts = timestamps.normalise_timestamp(stamps.ts or f"{day}T00:00:00.000Z", naive_is_utc=True)
    except ValueError:
        return ""
    return cap_precedence(ts, stamps.at or end_of_day(day))
