"""Follows the log: yields what any process appends."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

from memlog.eventlog import disk
from memlog.eventlog.file_io import blocks, lines_from_end
from memlog.eventlog.folder_events import ChangeHints
from memlog.eventlog.reader import LogEntry, entry_of, reading
from memlog.eventlog.segment import read_lines
from memlog.eventlog.streams import Segment

SWEEP_SECONDS = 2.0
"""The longest delay of a change that the file system did not report."""

_AFTERWARDS = 0.15  # seconds to a second look, for changes in a new folder before it is watched
_WITHOUT_FOLDER = 0.25
_SHORTEST_PAUSE = 0.1
_SHARE = 20
"""Without reports of the file system, looking takes 1/20 of the time."""


class Follower:
    """Yields the entries appended after it was made.

    segments: lists the segments to follow; called at each look, so that new ones are seen.
    notify: receives notes for people, such as that a segment was cut short.
    """

    def __init__(self, segments: Callable[[], list[Segment]], notify: Callable[[str], None]) -> None:
        self._segments = segments
        self._notify = notify
        self._reached = {segment.path: _end(segment) for segment in segments()}
        self._lines: dict[Path, int] = {}

    def is_new(self, entry: LogEntry) -> bool:
        """Whether `new` will yield `entry`."""
        return entry.line.offset >= self._reached.get(entry.segment.path, 0)

    def new(self) -> Iterator[LogEntry]:
        """The entries appended since the last look; a line counts once it has its newline."""
        for segment in self._segments():
            # It was removed after the listing; the next listing lacks it.
            with suppress(FileNotFoundError):
                yield from self._new_in(segment)

    def _new_in(self, segment: Segment) -> Iterator[LogEntry]:
        start, size = self._reached.get(segment.path, 0), segment.status().st_size
        if size < start:
            self._notify(f"{'/'.join(segment.key)} was cut short: reading on from its end")
            self._reached[segment.path] = _end(segment)
            self._lines.pop(segment.path, None)
        elif size > start:
            yield from self._read_on(segment, start)

    def _read_on(self, segment: Segment, start: int) -> Iterator[LogEntry]:
        with reading(segment) as fd:
            number = self._lines.get(segment.path, -1) + 1
            if number == 0:
                number = sum(block.count(b"\n") for block in blocks(fd, end=start)) + 1
            tail_is_a_line = not segment.is_newest
            for line in read_lines(fd, start, number=number, tail_is_a_line=tail_is_a_line):
                self._reached[segment.path], self._lines[segment.path] = line.end, line.number - line.is_open
                entry = entry_of(segment, line)
                if entry is not None:
                    yield entry


def looks(folder: Path, stop: Event | None = None) -> Iterator[None]:
    """Yields when it is time to look: after a change below `folder`, soon after that again, and after a
    pause. The folder may be removed and created again.

    stop: another thread sets it to end the iteration.
    """
    stop = stop or Event()
    with closing(ChangeHints(is_deep=True, stop=stop)) as hints:
        pause = 0.0
        while not stop.is_set():
            started = time.monotonic()
            yield
            took = time.monotonic() - started
            has_changed = bool(hints.wait([folder], pause))
            pause = _AFTERWARDS if has_changed else _pause(hints, folder, took)


def _pause(hints: ChangeHints, folder: Path, took: float) -> float:
    """Seconds to wait after a quiet look that took `took` seconds."""
    if hints.works:
        return SWEEP_SECONDS
    if not disk.is_folder(folder):
        return _WITHOUT_FOLDER
    return min(SWEEP_SECONDS, max(_SHORTEST_PAUSE, _SHARE * took))


def _end(segment: Segment) -> int:
    """Where a segment's next line begins: a writer may not have finished what follows the last newline."""
    with reading(segment) as fd:
        size = disk.status(fd).st_size
        return size - len(next(lines_from_end(fd, 0, size))) if segment.is_newest else size
