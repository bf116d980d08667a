"""Following the log: what any process appends, as it comes."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

from memlog.eventlog import disk
from memlog.eventlog.folder_events import ChangeHints
from memlog.eventlog.reader import LogEntry, entry_of, reading
from memlog.eventlog.segment import read_lines
from memlog.eventlog.streams import Segment, may_be_stream

SWEEP_SECONDS = 2.0
"""How long a change may stay unseen that the file system did not tell of."""

_AFTERWARDS = 0.15  # what happens in a new folder before it is watched is seen by a look of its own
_WITHOUT_FOLDER = 0.25
_SHORTEST_PAUSE = 0.1
_SHARE = 20
"""Where the file system tells nothing, looks take one part in so many of the time, while that is enough."""

_BLOCK = 64 * 1024


class Follower:
    """Reads on from where segments end now.

    segments: lists those to follow, anew at each look, so that new segments and new streams are seen.
    notify: called with what a person should know, such as that a segment was cut short.
    """

    def __init__(self, segments: Callable[[], list[Segment]], notify: Callable[[str], None]) -> None:
        self._segments = segments
        self._notify = notify
        self._reached = {segment.path: _end(segment) for segment in segments()}
        self._lines: dict[Path, int] = {}

    def is_new(self, entry: LogEntry) -> bool:
        """Whether `new` will give `entry`: it was appended after this follower was made."""
        return entry.line.offset >= self._reached.get(entry.segment.path, 0)

    def new(self) -> Iterator[LogEntry]:
        """What has been appended since the last look; a line counts once it has ended."""
        for segment in self._segments():
            # Gone between the listing and the look: the next listing does not have it.
            with suppress(FileNotFoundError):
                yield from self._new_in(segment)

    def _new_in(self, segment: Segment) -> Iterator[LogEntry]:
        start, size = self._reached.get(segment.path, 0), segment.status().st_size
        if size < start:
            self._notify(f"{segment.stream}/{segment.name.filename} was cut short: reading on from its end")
            self._reached[segment.path] = _end(segment)
            self._lines.pop(segment.path, None)
        elif size > start:
            yield from self._read_on(segment, start)

    def _read_on(self, segment: Segment, start: int) -> Iterator[LogEntry]:
        with reading(segment) as fd:
            number = self._lines.get(segment.path, -1) + 1 or _count_lines(fd, start) + 1
            tail_is_a_line = not segment.is_newest
            for line in read_lines(fd, start, number=number, tail_is_a_line=tail_is_a_line):
                self._reached[segment.path], self._lines[segment.path] = line.end, line.number - line.is_open
                entry = entry_of(segment, line)
                if entry is not None:
                    yield entry


def looks(folder: Path, stop: Event | None = None) -> Iterator[None]:
    """Yields when it is time to look: when something below `folder` changed, soon after that again, and after
    a while without. It may be removed and made anew meanwhile.

    stop: set by another thread, it ends the looks.
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
    """How long to wait for a change after a look that took so many seconds, and after which all was quiet."""
    if hints.works:
        return SWEEP_SECONDS
    if not disk.is_folder(folder):
        return _WITHOUT_FOLDER
    return min(SWEEP_SECONDS, max(_SHORTEST_PAUSE, _SHARE * took))


def state_of(folder: Path) -> int:
    """A number that changes when a file below `folder` does: its name, size, inode or time.

    Looking at 2,000 segments so takes a quarter of what it takes to compare them with the read model.
    """
    found = 0
    # A folder that goes meanwhile has no files.
    with suppress(FileNotFoundError, NotADirectoryError), disk.entries(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found += state_of(Path(entry.path)) if may_be_stream(entry.name) else 0
            else:
                status = entry.stat(follow_symlinks=False)
                found += hash((entry.path, status.st_size, status.st_ino, status.st_mtime_ns))
    return found


def _end(segment: Segment) -> int:
    """Where the next line of a segment begins: behind its last newline, since a writer may be at the rest."""
    with reading(segment) as fd:
        size = disk.status(fd).st_size
        return _behind_last_newline(fd, size) if segment.is_newest else size


def _behind_last_newline(fd: int, end: int) -> int:
    while end > 0:
        start = max(0, end - _BLOCK)
        found = disk.read(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _count_lines(fd: int, end: int) -> int:
    """How many lines end before the byte `end`."""
    blocks = (disk.read(fd, min(_BLOCK, end - start), start) for start in range(0, end, _BLOCK))
    return sum(block.count(b"\n") for block in blocks)
