"""Follows the log: yields what any process appends."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import blocks, lines_from_end
from memlog.eventlog.files.folder_events import ChangeHints
from memlog.eventlog.integrity.copy_identity import name_from
from memlog.eventlog.integrity.seal_file import held_by, size_of
from memlog.eventlog.log.layout import CONVERSATIONS, FORMAT
from memlog.eventlog.log.reader import LogEntry, entry_of, read_lines, reading
from memlog.eventlog.log.streams import Segment, SegmentName, shown

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
        """Yield the entries appended since the last look; a line counts once it has its newline."""
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
    """Yield when it is time to look: after a change below `folder`, soon after that again, and after a pause.

    The folder may be removed and created again.


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
    """Return seconds to wait after a quiet look that took `took` seconds."""
    if hints.works:
        return SWEEP_SECONDS
    if not disk.is_folder(folder):
        return _WITHOUT_FOLDER
    return min(SWEEP_SECONDS, max(_SHORTEST_PAUSE, _SHARE * took))


def _end(segment: Segment) -> int:
    """Return where a segment's next line begins.

    A writer may not have finished what follows the last newline.
    """
    with reading(segment) as fd:
        size = disk.status(fd).st_size
        return size - len(next(lines_from_end(fd, 0, size))) if segment.is_newest else size


_CONFLICT_COPY = re.compile(
    rf"(?:(?P<day>\d{{4}}-\d\d-\d\d)|seals|{FORMAT})\b.*conflict.*", re.ASCII | re.IGNORECASE | re.DOTALL
)
_MOVE_OUT = "move it out of log/"


def is_conflict_copy(filename: str) -> bool:
    """Whether the name is a file sync's for a second version of a file of the log.

    Syncthing writes `2026-11-23.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl`, Dropbox and Nextcloud
    `2026-11-23.k7f3qz (conflicted copy 2026-11-23).jsonl`.
    """
    return _CONFLICT_COPY.fullmatch(filename) is not None


def why_not_read(log: Path, path: Path) -> str:
    """Return a sentence that says why a file below the log is not read."""
    what = "a conflict copy of a file sync" if is_conflict_copy(path.name) else "not a segment"
    return f"{shown(path.relative_to(log.parent))} is {what}: not read"


def remedy(log: Path, path: Path) -> str:
    """Return advice about an unread file."""
    conflict = _CONFLICT_COPY.fullmatch(path.name)
    if conflict is not None and conflict["day"] and path.parent not in (log, log / CONVERSATIONS):
        return _segment_remedy(log, path, conflict["day"])
    if conflict is not None and path.name.startswith(FORMAT):
        return f"{_MOVE_OUT}; if its number is the greater one, replace log/{FORMAT} by it"
    return _MOVE_OUT


def _segment_remedy(log: Path, path: Path, day: str) -> str:
    """Advise to rename a conflict copy, so that it is a segment of a writer of its own.

    The name depends on the bytes: a conflict copy on two machines gets one name, and two conflict copies get
    two, so no merge replaces a file by another.
    """
    stream = path.parent.relative_to(log).as_posix()
    try:
        held = held_by(log, stream, path.name)
    except OSError as error:
        return f"make it readable ({error.strerror}), then try again"
    if held is None or SegmentName.parse(f"{day}.jsonl") is None:
        return _MOVE_OUT
    # Imported here: few logs have conflict copies.
    from shlex import quote

    segment = path.with_name(SegmentName(day, 0, name_from(bytes.fromhex(held.sha256))).filename)
    copy, target = (quote(shown(file.relative_to(log.parent))) for file in (path, segment))
    # A scrub keeps the size.
    if (size_of(log, stream, segment.name) or -1) >= held.bytes:
        return f"{target} has its events: in the store's folder, rm {copy}"
    return f"rename it, and its events are read, each once: in the store's folder, mv {copy} {target}"
