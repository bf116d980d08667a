"""Follows the log, yielding events as any process appends them."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import read_blocks, read_lines_backwards
from memlog.eventlog.files.folder_events import ChangeHints
from memlog.eventlog.integrity.copy_identity import writer_name_from_bytes
from memlog.eventlog.integrity.seal_file import measure_segment_if_present, size_of_segment
from memlog.eventlog.log.layout import CONVERSATIONS, FORMAT
from memlog.eventlog.log.reader import LogEntry, decode_entry, open_segment, read_lines
from memlog.eventlog.log.streams import Segment, SegmentName, escape_invalid_utf8

SWEEP_SECONDS = 2.0
"""The longest delay until a change that the system did not report is noticed."""

_RESTING_SWEEP = 10.0
"""The same after a quiet time: looking takes most of what an idle watch takes."""

_AFTERWARDS = 0.15  # seconds until a second look, since a new folder may change before it is watched
_WITHOUT_FOLDER = 0.25
_SHORTEST_PAUSE = 0.1
_SHARE = 20
"""If there are no notifications, polling takes at most 1/20 of the time."""


class Follower:
    """Yields the entries that are appended after its creation.

    segments: returns the segments to follow; called at each poll, so that new ones are found.
    notify: called with messages, for example if a segment was truncated.
    """

    def __init__(self, segments: Callable[[], list[Segment]], notify: Callable[[str], None]) -> None:
        self._segments = segments
        self._notify = notify
        self._reached = {segment.path: _next_line_start(segment) for segment in segments()}
        self._lines: dict[Path, int] = {}

    def is_new(self, entry: LogEntry) -> bool:
        """Whether `new_entries` will yield `entry`."""
        return entry.line.offset >= self._reached.get(entry.segment.path, 0)

    def new_entries(self) -> Iterator[LogEntry]:
        """Yield the entries appended since the last poll; a line counts once its newline has been written."""
        for segment in self._segments():
            # The segment may have been removed after the listing; the next listing will lack it.
            with suppress(FileNotFoundError):
                yield from self._new_entries_in(segment)

    def _new_entries_in(self, segment: Segment) -> Iterator[LogEntry]:
        start, size = self._reached.get(segment.path, 0), segment.read_status().st_size
        if size < start:
            self._notify(f"{'/'.join(segment.stream_and_filename)} was truncated: continuing from its end")
            self._reached[segment.path] = _next_line_start(segment)
            self._lines.pop(segment.path, None)
        elif size > start:
            yield from self._read_new_lines(segment, start)

    def _read_new_lines(self, segment: Segment, start: int) -> Iterator[LogEntry]:
        with open_segment(segment) as fd:
            number = self._lines.get(segment.path, -1) + 1
            if number == 0:
                number = sum(block.count(b"\n") for block in read_blocks(fd, end=start)) + 1
            tail_is_a_line = not segment.is_newest
            for line in read_lines(fd, start, number=number, tail_is_a_line=tail_is_a_line):
                self._reached[segment.path], self._lines[segment.path] = line.end, line.number - line.is_open
                entry = decode_entry(segment, line)
                if entry is not None:
                    yield entry


def wait_for_polls(folder: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield each time a poll is due: after a change in `folder`, once more soon afterwards, and periodically.

    The folder may be removed and recreated. stop: an event that another thread sets to end the iteration.
    """
    stop = stop or Event()
    with closing(ChangeHints(is_deep=True, stop=stop)) as hints:
        pause = 0.0
        while not stop.is_set():
            started = time.monotonic()
            yield
            took = time.monotonic() - started
            has_changed = bool(hints.wait_for_changes([folder], pause))
            pause = _AFTERWARDS if has_changed else _choose_pause(hints, folder, took)


def _choose_pause(hints: ChangeHints, folder: Path, took: float) -> float:
    """Return the seconds to wait after a poll that found no change and took `took` seconds."""
    if hints.works:
        return _RESTING_SWEEP if hints.is_resting else SWEEP_SECONDS
    if not disk.is_folder(folder):
        return _WITHOUT_FOLDER
    return min(SWEEP_SECONDS, max(_SHORTEST_PAUSE, _SHARE * took))


def _next_line_start(segment: Segment) -> int:
    """Return the offset where a segment's next line starts; a line without a newline may be unfinished."""
    with open_segment(segment) as fd:
        size = disk.status_of_descriptor(fd).st_size
        return size - len(next(read_lines_backwards(fd, 0, size))) if segment.is_newest else size


_CONFLICT_COPY = re.compile(
    rf"(?:(?P<day>\d{{4}}-\d\d-\d\d)|seals|{FORMAT})\b.*conflict.*", re.ASCII | re.IGNORECASE | re.DOTALL
)
_MOVE_OUT = "move it out of log/"


def is_conflict_copy(filename: str) -> bool:
    """Whether file sync uses this name for a conflicting version of a log file.

    Syncthing writes `2026-11-23.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl`; Dropbox and Nextcloud
    write `2026-11-23.k7f3qz (conflicted copy 2026-11-23).jsonl`.
    """
    return _CONFLICT_COPY.fullmatch(filename) is not None


def why_not_read(log: Path, path: Path) -> str:
    """Return a sentence that explains why a file in the log is not read."""
    what = "a conflict copy made by a file sync" if is_conflict_copy(path.name) else "not a segment"
    return f"{escape_invalid_utf8(path.relative_to(log.parent))} is {what}: not read"


def advise_on_unread_file(log: Path, path: Path) -> str:
    """Return advice on what to do about a file that is not read."""
    conflict = _CONFLICT_COPY.fullmatch(path.name)
    if conflict is not None and conflict["day"] and path.parent not in (log, log / CONVERSATIONS):
        return _advise_on_conflict_copy(log, path, conflict["day"])
    if conflict is not None and path.name.startswith(FORMAT):
        return f"{_MOVE_OUT}; if its number is greater, replace log/{FORMAT} with it"
    return _MOVE_OUT


def _advise_on_conflict_copy(log: Path, path: Path, day: str) -> str:
    """Return advice on renaming a conflict copy, which makes it a segment of a new writer.

    The new name is derived from the bytes, so a copy gets the same name on all machines, and a merge never
    replaces one copy with another.
    """
    stream = path.parent.relative_to(log).as_posix()
    try:
        held = measure_segment_if_present(log, stream, path.name)
    except OSError as error:
        return f"make it readable ({error.strerror}), then try again"
    if held is None or SegmentName.parse(f"{day}.jsonl") is None:
        return _MOVE_OUT
    # Imported here: few logs have conflict copies.
    from shlex import quote

    segment = path.with_name(SegmentName(day, 0, writer_name_from_bytes(bytes.fromhex(held.sha256))).filename)
    copy, target = (quote(escape_invalid_utf8(file.relative_to(log.parent))) for file in (path, segment))
    # The size suffices, since a scrub does not change it.
    if (size_of_segment(log, stream, segment.name) or -1) >= held.bytes:
        return f"{target} already has its events: in the store's folder, rm {copy}"
    return f"rename it so that its events are read, each once: in the store's folder, mv {copy} {target}"
