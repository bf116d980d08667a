"""The times with which appended lines are stamped: `at`, and the `wins` of changes."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from memlog.eventlog import disk, timestamps
from memlog.eventlog.decode import ends_with_crc
from memlog.eventlog.file_io import identity
from memlog.eventlog.precedence import earlier_of, end_of
from memlog.eventlog.quarantine import BadLine
from memlog.eventlog.streams import SegmentName

_TAIL_BLOCK = 64 * 1024
_GROWTH = 8


class _Tail(msgspec.Struct, frozen=True):
    """What the lines before `end` say.

    at: the last that memlog wrote. highest: precedence of any change.
    is_stamped: whether the last change of memlog has `wins`, which tells of all before it.
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
    """Remembers what it has read of segments, so that the next append reads on."""

    def __init__(self) -> None:
        self._at: dict[tuple[int, int], _Tail] = {}
        self._changes: dict[tuple[int, int], _Tail] = {}

    def next_at(self, fd: int, status: os.stat_result) -> str:
        """Now, but never lower than the last `at` of the open segment of this status: clocks go back."""
        return max(timestamps.now(), self._read(self._at, fd, status, None).at)

    def has_shrunk(self, status: os.stat_result) -> bool:
        """Whether a segment of this status is shorter than it was."""
        known = self._at.get(identity(status))
        return known is not None and status.st_size < known.end

    def wrote(self, status: os.stat_result, end: int, at: str, highest: str) -> None:
        """A segment, which had this status, now ends at `end`, with lines that have this `at`.

        highest: the highest precedence that its stream has with them; "" where they are no changes.
        """
        key = identity(status)
        self._at[key] = _Tail(end, at)
        if highest:
            self._changes[key] = _Tail(end, "", highest, is_stamped=True)

    def highest(self, folder: int, names: Iterable[SegmentName]) -> str:
        """The highest precedence in a stream of which the folder is open; "" where it has no changes.

        names: of all its segments.
        """
        written: defaultdict[str, list[SegmentName]] = defaultdict(list)
        for name in sorted(names, key=lambda name: name.age, reverse=True):
            written[name.writer].append(name)
        plain = written.pop("", [])
        found = max((self._highest_of_writer(folder, newest) for newest in written.values()), default="")
        for name in plain:
            # No line of a plain name has `wins`, and none can be higher than this.
            if earlier_of(timestamps.LAST, end_of(name.day)) > found:
                found = max(found, self._tail(folder, name).highest)
        return found

    def _highest_of_writer(self, folder: int, newest_first: list[SegmentName]) -> str:
        found = ""
        for name in newest_first:
            tail = self._tail(folder, name)
            found = max(found, tail.highest)
            if tail.is_stamped:
                break
        return found

    def _tail(self, folder: int, name: SegmentName) -> _Tail:
        status = disk.look(name.filename, folder=folder)
        known = self._changes.get(identity(status))
        if known is not None and known.end == status.st_size:
            return known
        fd = disk.open(name.filename, disk.READ, folder=folder)
        try:
            return self._read(self._changes, fd, disk.status(fd), name.day)
        finally:
            disk.close(fd)

    def _read(
        self, known: dict[tuple[int, int], _Tail], fd: int, status: os.stat_result, day: str | None
    ) -> _Tail:
        """day: of the segment, where changes are looked for; None for the last `at` alone."""
        key = identity(status)
        before = known.get(key, _Tail())
        if status.st_size < before.end:  # an older copy was put back
            before = _Tail()
        if status.st_size > before.end:
            before = _read_on(fd, before, status.st_size, day)
            known[key] = before
        return before


def _read_on(fd: int, before: _Tail, size: int, day: str | None) -> _Tail:
    lines = _lines_from_end(fd, before.end, size)
    pending = next(lines)  # another writer may be at it
    end, highest = size - len(pending), ""
    for stamps in filter(None, map(_stamps, chain([pending], lines))):
        if day is None:
            if stamps.at:
                return _Tail(end, max(before.at, stamps.at))
            continue
        highest = max(highest, stamps.highest_wins or stamps.wins or _precedence(stamps, day))
        if stamps.wins:
            return _Tail(end, "", max(before.highest, highest), is_stamped=True)
    return _Tail(end, before.at, max(before.highest, highest), before.is_stamped)


def _lines_from_end(fd: int, start: int, end: int) -> Iterator[bytes]:
    """The lines between `start`, where one begins, and `end`: the last one first."""
    rest, size = b"", _TAIL_BLOCK
    while end > start:
        begin = max(start, end - size)
        rest, *lines = (disk.read(fd, end - begin, begin) + rest).split(b"\n")
        yield from reversed(lines)
        end, size = begin, size * _GROWTH
    yield rest


def _stamps(line: bytes) -> _Stamps | None:
    """None for a damaged line, which could set the year 9999; `ts` alone for a foreign one."""
    line = line.strip(b"\0")  # a power cut may have left them around it
    try:
        found = msgspec.json.decode(line, type=_Stamps)
        is_of_memlog = ends_with_crc(line) and found.at is not None and timestamps.is_written_form(found.at)
    except (BadLine, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not is_of_memlog:
        return _Stamps(found.ts)
    has_wins = found.wins is not None and timestamps.is_written_form(found.wins)
    return found if has_wins else _Stamps(found.ts, found.at)


def _precedence(stamps: _Stamps, day: str) -> str:
    try:
        ts = timestamps.normalised(stamps.ts or f"{day}T00:00:00.000Z", naive_is_utc=True)
    except ValueError:
        return ""
    return earlier_of(ts, stamps.at or end_of(day))
