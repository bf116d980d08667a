"""Reads the log without a read model: every line, with its event or its fault.

Bad and repeated lines are yielded too; the caller decides what to do about them.
"""

import stat
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.content_ids import content_hash
from memlog.eventlog.codec.decode import (
    decode_line,
    is_blank_line,
    is_intact_line,
    list_envelope_members,
    raw_members,
    strip_bom,
)
from memlog.eventlog.codec.hashing import sha256, short_sha256
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import Change, Event, Redacted, type_name_of_event
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import (
    as_file_not_found,
    closing_descriptor,
    open_regular_file,
    read_blocks,
)
from memlog.eventlog.files.folders import opening_folders_of_stream
from memlog.eventlog.log.layout import CONVERSATIONS
from memlog.eventlog.log.order import compute_precedence
from memlog.eventlog.log.quarantine import MAX_LINE, BadLine, check_line_length
from memlog.eventlog.log.streams import (
    Segment,
    SegmentName,
    chat_of_stream,
    conversation_stream,
    group_segments_by_writer,
    is_utf8,
    list_segments,
    may_be_stream,
)

_CHAIN_BLOCK = 64 * 1024
_TAIL = 4 * 1024


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of a segment.

    data: without the newline; None for a line over 16 MiB, which is not loaded.
    length: in bytes, without the newline. number: the line number, from 1. end: the offset of the next line.
    nuls_before, nuls_after: the number of NUL bytes around the line, which are not part of it.
    """

    offset: int
    number: int
    length: int
    end: int
    data: bytes | None
    nuls_before: int = 0
    nuls_after: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the line lacks its newline."""
        return self.end == self.offset + self.length + self.nuls_after


@contextmanager
def opening_segment_file(log: Path, stream: str, filename: str) -> Iterator[int]:
    """Open a segment for reading, without following links below `log`, and yield its descriptor.

    Raises OSError; FileNotFoundError if the segment is missing, a link, or not a regular file.
    """
    try:
        with opening_folders_of_stream(log, stream) as folders:
            fd = open_regular_file(filename, disk.READ, folder=folders[-1])
    except OSError as error:
        error.filename = f"{log}/{stream}/{filename}"
        raise as_file_not_found(error) from None
    with closing_descriptor(fd):
        yield fd


def read_lines(
    fd: int, start: int = 0, *, end: int | None = None, number: int = 1, tail_is_a_line: bool = False
) -> Iterator[Line]:
    r"""Yield the lines between `start`, the beginning of a line, and `end` (None: the end of the file).

    Only b"\n" ends a line. Bytes after the last newline are a line if `tail_is_a_line`, or if their crc
    proves that they are complete; otherwise they are skipped, since a writer may not have finished. NUL bytes
    around a line are not part of it.
    """
    offset = start
    has_nuls = False
    pending: list[bytes] = []
    pending_length = 0
    for block in read_blocks(fd, start, end):
        # One search per block is faster than one per line.
        has_nuls = has_nuls or b"\0" in block
        first, *others = block.split(b"\n")
        pending_length += len(first)
        # An overlong line is measured, not kept.
        pending = [*pending, first] if pending_length <= MAX_LINE else []
        for next_first in others:
            data = b"".join(pending) if pending_length <= MAX_LINE else None
            line = Line(offset, number, pending_length, offset + pending_length + 1, data)
            yield _strip_nuls(line) if has_nuls else line
            offset += pending_length + 1
            number += 1
            pending, pending_length = [next_first], len(next_first)
    data = b"".join(pending) if pending_length <= MAX_LINE else None
    if pending_length and (tail_is_a_line or (data is not None and is_intact_line(data))):
        yield _strip_nuls(Line(offset, number, pending_length, offset + pending_length, data))


def _strip_nuls(line: Line) -> Line:
    """Remove the NUL bytes around a line, which a power cut leaves in place of unwritten data."""
    if line.data is None:
        return line
    rest = line.data.lstrip(b"\0")
    data = rest.rstrip(b"\0")
    before, behind = line.length - len(rest), len(rest) - len(data)
    return Line(line.offset + before, line.number, len(data), line.end, data, before, behind)


def read_line_at(log: Path, stream: str, filename: str, offset: int, length: int) -> bytes:
    """Read the bytes of one line in a segment."""
    with opening_segment_file(log, stream, filename) as fd:
        return disk.read(fd, length, offset)


def read_with_lines_blanked(fd: int, length: int, offset: int, blanked: Sequence[Line]) -> bytes:
    """Read bytes like `disk.read`, but with the lines `blanked` (sorted) replaced by spaces."""
    data = disk.read(fd, length, offset)
    if not blanked:
        return data
    masked = bytearray(data)
    first = bisect_right(blanked, offset, key=lambda line: line.end)
    last = bisect_left(blanked, offset + len(data), key=lambda line: line.offset)
    for line in blanked[first:last]:
        start = max(0, line.offset - offset)
        end = max(start, min(len(data), line.offset + line.length - offset))
        masked[start:end] = b" " * (end - start)
    return bytes(masked)


class Fingerprint(msgspec.Struct, frozen=True):
    """Hashes of a segment's first `offset` bytes.

    tail: the SHA-256 of the 4 KiB before `offset`; a cheap way to tell whether a file that grew is still the
      same.
    chain: the chained SHA-256 of all complete 64 KiB blocks, so that extending the fingerprint hashes
      only new bytes.
    rest: the SHA-256 of the bytes between the last complete block and `offset`.
    """

    offset: int
    tail: bytes
    chain: bytes
    rest: bytes

    def matches_tail(self, fd: int) -> bool:
        """Whether the 4 KiB before the offset are unchanged."""
        return _hash_tail(fd, self.offset) == self.tail

    def matches_all_bytes(self, fd: int) -> bool:
        """Whether all bytes before the offset are unchanged."""
        return take_fingerprint(fd, self.offset) == self

    def matches_rest(self, fd: int) -> bool:
        """Whether the bytes between the last complete block and the offset are unchanged."""
        start = self.offset // _CHAIN_BLOCK * _CHAIN_BLOCK
        return sha256(disk.read(fd, self.offset - start, start)).digest() == self.rest

    def extend_to_offset(self, fd: int, offset: int, blanked: Sequence[Line] = ()) -> "Fingerprint":
        """Return the fingerprint up to a later `offset`, treating the lines `blanked` (sorted) as erased."""
        chain = self.chain
        whole_before, whole = self.offset // _CHAIN_BLOCK, offset // _CHAIN_BLOCK
        for block in range(whole_before, whole):
            chain = sha256(
                chain + read_with_lines_blanked(fd, _CHAIN_BLOCK, block * _CHAIN_BLOCK, blanked)
            ).digest()
        rest = read_with_lines_blanked(fd, offset - whole * _CHAIN_BLOCK, whole * _CHAIN_BLOCK, blanked)
        return Fingerprint(offset, _hash_tail(fd, offset, blanked), chain, sha256(rest).digest())


def take_fingerprint(fd: int, offset: int, blanked: Sequence[Line] = ()) -> Fingerprint:
    """Return the fingerprint of a file's first `offset` bytes, treating the lines `blanked` as erased."""
    return UNREAD.extend_to_offset(fd, offset, blanked)


def _hash_tail(fd: int, offset: int, blanked: Sequence[Line] = ()) -> bytes:
    start = max(0, offset - _TAIL)
    return sha256(read_with_lines_blanked(fd, offset - start, start, blanked)).digest()


UNREAD = Fingerprint(0, short_sha256().digest(), b"", short_sha256().digest())
"""The fingerprint of no bytes."""


Key = tuple[str, str]
"""A stream, and the id of one of its events (for a line without an id, its position)."""

Bounds = Mapping[tuple[str, str], int]
"""The number of bytes to read, keyed by (stream, segment); segments without an entry are not read."""


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A non-blank line with its event or fault. content: the event's `content_hash`; b"" for a fault."""

    segment: Segment
    line: Line
    event: Event | BadLine
    content: bytes

    @property
    def event_id(self) -> str:
        """The event's id, or the line's position if it has none."""
        named = None if isinstance(self.event, BadLine) else self.event.id
        return named or Place(self.segment.stream, self.segment.name, self.line.offset).line_id

    @property
    def redaction_key(self) -> Key:
        """The key that redactions use for the line: stream and id."""
        return self.segment.stream, self.event_id

    @property
    def event_time(self) -> str:
        """The event's time; "" if the line holds no event."""
        return "" if isinstance(self.event, BadLine) else self.event.ts or ""

    @property
    def sort_key(self) -> tuple[str, SegmentName, int, str]:
        """The line's sort key: its time (the precedence of a change), then its position."""
        time = (
            compute_precedence(self.event, self.segment.name)
            if isinstance(self.event, Change)
            else self.event_time
        )
        return time, self.segment.name, self.line.offset, self.segment.stream

    @property
    def append_time(self) -> str:
        """The time at which memlog appended the line; "" if unknown."""
        return "" if isinstance(self.event, BadLine) else self.event.at or ""

    @property
    def position(self) -> str:
        """The position as shown in messages, such as `memory/2026-02-24.jsonl:12 (byte 4711)`."""
        return f"{'/'.join(self.segment.stream_and_filename)}:{self.line.number} (byte {self.line.offset})"


def select_segments(
    log: Path, *, stream: str | None = None, chat: tuple[str, str] | None = None
) -> list[Segment]:
    """Return the segments of a stream, a chat (channel, chat_id), or the whole log, sorted."""
    return [
        segment
        for segment in list_segments(log)[0]
        if (stream is None or segment.stream == stream)
        and (chat is None or belongs_to_chat(segment.stream, chat))
    ]


def open_segment(segment: Segment) -> AbstractContextManager[int]:
    """Open a segment for reading; see `opening_segment_file`."""
    return opening_segment_file(segment.log, *segment.stream_and_filename)


def decode_entry(segment: Segment, line: Line) -> LogEntry | None:
    """Decode a line into an entry; return None if it is blank."""
    try:
        check_line_length(line.length)
        if line.data is None or is_blank_line(line.data):
            return None
        event = decode_line(line.data, Place(segment.stream, segment.name, line.offset))
        return LogEntry(segment, line, event, content_hash(event))
    except BadLine as bad:
        # A copy: the original keeps its traceback's frames alive. Walking through them, the garbage collector
        # took half of the time of a replay of 19,200 bad lines.
        return LogEntry(segment, line, BadLine(bad.reason, bad.detail), b"")


def find_redactions(segment: Segment, lines: Iterable[Line]) -> Iterator[tuple[LogEntry, Redacted]]:
    """Yield the redactions among `lines`, each with its entry."""
    for line in lines:
        # Most lines need no decoding: the type of a redaction appears as plain text, or contains escapes.
        if line.data is None or not (b"redacted" in line.data or b"\\u" in line.data):
            continue
        entry = decode_entry(segment, line)
        if entry is not None and isinstance(entry.event, Redacted):
            yield entry, entry.event


def read_redacted_keys(segments: Iterable[Segment], bounds: Bounds | None = None) -> set[Key]:
    """Return the targets of all redactions in `segments`, as (stream, id)."""
    return {
        (segment.stream, target)
        for segment in segments
        for _, event in find_redactions(segment, read_segment_lines(segment, bounds))
        for target in event.targets
    }


def collect_redacted_keys(entries: Iterable[LogEntry]) -> set[Key]:
    """Return the targets of all redactions among `entries`, as (stream, id)."""
    return {
        (entry.segment.stream, target)
        for entry in entries
        if isinstance(entry.event, Redacted)
        for target in entry.event.targets
    }


def is_redacted(entry: LogEntry, redacted: Container[Key]) -> bool:
    """Whether a line is redacted; redactions themselves never are."""
    return entry.redaction_key in redacted and not isinstance(entry.event, Redacted)


def read_entries_in_log_order(
    segments: Iterable[Segment],
    *,
    bounds: Bounds | None = None,
    tails: bool = False,
    leave_out: Container[int] = (),
) -> Iterator[LogEntry]:
    """Yield the entries of `segments` up to `bounds`, segment by segment.

    tails: see `read_segment_lines`. leave_out: the offsets of lines to skip.
    """
    for segment in segments:
        for line in read_segment_lines(segment, bounds, tails=tails):
            if line.offset not in leave_out and (entry := decode_entry(segment, line)) is not None:
                yield entry


def read_accepted_events(
    segments: Sequence[Segment], leave_out: Callable[[LogEntry, str], None]
) -> Iterator[LogEntry]:
    """Yield each event of `segments` once, in order of time or precedence.

    leave_out: called with every other line and the reason for leaving it out; see `why_excluded_or_remember`.

    Reads the log three times instead of keeping it in memory.
    """
    redacted = read_redacted_keys(segments)
    known: dict[Key, bytes] = {}
    places = []
    for entry in read_entries_in_log_order(segments):
        why = why_excluded_or_remember(entry, known, redacted)
        if why is not None:
            leave_out(entry, why)
        else:
            places.append((entry.sort_key, entry.segment, replace(entry.line, data=None)))
    for _, segment, line in sorted(places, key=lambda place: place[0]):
        data = read_line_at(segment.log, *segment.stream_and_filename, line.offset, line.length)
        again = decode_entry(segment, replace(line, data=data))
        if again is not None:
            yield again


def read_last_entries(
    segments: list[Segment], count: int, *, redacted: Container[Key] = frozenset()
) -> list[LogEntry]:
    """Return the last `count` entries of `segments` that are not `redacted`, in order of appending.

    A line without `at` counts as appended together with the previous line of the same stream and writer.
    """
    dated: list[tuple[str, LogEntry]] = []
    for written in group_segments_by_writer(segments).values():
        at = ""
        for entry in _read_last_entries_of_writer(written, count, redacted):
            at = max(at, entry.append_time or entry.segment.name.day)
            dated.append((at, entry))
    # The sort is stable, so it keeps the order of each writer's lines.
    dated.sort(key=lambda pair: pair[0])
    return [entry for _, entry in dated][max(0, len(dated) - count) :]


def read_last_append_time(segments: Iterable[Segment]) -> str | None:
    """Return the time of memlog's last append to any of `segments`, or None.

    Reads only the ends of the newest segments, since a segment is appended to only on its own day.
    """
    newest = [written[-1] for written in group_segments_by_writer(segments).values()]
    for day in sorted({segment.name.day for segment in newest}, reverse=True):
        at = max(_read_last_append_time_of_segment(segment) for segment in newest if segment.name.day == day)
        if at:
            return at
    return None


def members_in_current_schema(entry: LogEntry) -> dict[str, Any]:
    """Return the members of an entry's event in the current schema, with unknown members last.

    Raises TypeError if the entry has no event.
    """
    event, data = entry.event, entry.line.data
    if isinstance(event, BadLine) or data is None:
        raise TypeError("a bad line has no members")
    names = list_envelope_members(event)
    ordered = ("id", "ts", "at", "wins", "highest_wins", "v")
    envelope = {name: getattr(event, name) for name in ordered if name in names}
    known: dict[str, Any] = msgspec.to_builtins(event)
    unknown = raw_members.decode(strip_bom(data)).items()
    return (
        {"type": type_name_of_event(event)}
        | {name: value for name, value in envelope.items() if value is not None}
        | {name: value for name, value in known.items() if name not in names}
        | {name: raw for name, raw in unknown if name not in (*names, *event.__struct_fields__)}
    )


def belongs_to_chat(stream: str, chat: tuple[str, str]) -> bool:
    """Whether a stream belongs to the chat (channel, chat_id)."""
    return stream == conversation_stream(*chat) or chat_of_stream(stream) == chat


def read_segment_lines(
    segment: Segment, bounds: Bounds | None = None, *, tails: bool = False
) -> Iterator[Line]:
    """Yield the lines of a segment, up to its bound if there are `bounds`.

    tails: include the bytes after the last newline of a newest segment, although a writer may not have
      finished them.
    """
    end = None if bounds is None else bounds.get(segment.stream_and_filename, 0)
    # A bound is the end of a line that was read, whether or not a newline ended it.
    tail_is_a_line = tails or end is not None or not segment.is_newest
    with open_segment(segment) as fd:
        yield from read_lines(fd, end=end, tail_is_a_line=tail_is_a_line)


def why_excluded_or_remember(entry: LogEntry, known: dict[Key, bytes], redacted: set[Key]) -> str | None:
    """Return the reason why a line is not a new event; None if it is one, after adding it to `known`.

    The reason is `redacted`, `duplicate`, `conflict` (an earlier line of the stream has the same id but
    different content), or the line's fault.
    """
    if is_redacted(entry, redacted):
        return "redacted"
    if isinstance(entry.event, BadLine):
        return str(entry.event)
    key = entry.redaction_key
    if key not in known:
        known[key] = entry.content
        return None
    return "duplicate" if known[key] == entry.content else "conflict"


def _read_last_entries_of_writer(
    segments: list[Segment], count: int, redacted: Container[Key]
) -> list[LogEntry]:
    last: list[LogEntry] = []
    for segment in reversed(segments):
        last = [*_read_last_entries_of_segment(segment, count - len(last), redacted), *last]
        if len(last) == count:
            break
    return last


def _read_last_append_time_of_segment(segment: Segment) -> str:
    # Imported here: few commands need it.
    from memlog.eventlog.log.order import read_last_append_time

    with open_segment(segment) as fd:
        return read_last_append_time(fd)


def _read_last_entries_of_segment(segment: Segment, count: int, redacted: Container[Key]) -> list[LogEntry]:
    """Return the last `count` entries that are not redacted, decoding only lines at the segment's end."""
    most = count
    while True:
        lines = (
            line for line in read_segment_lines(segment) if line.data is None or not is_blank_line(line.data)
        )
        last = deque(lines, maxlen=most)
        entries = [entry for line in last if (entry := decode_entry(segment, line)) is not None]
        kept = [entry for entry in entries if not is_redacted(entry, redacted)]
        if len(kept) >= count or len(last) < most:
            return kept[max(0, len(kept) - count) :]
        most = 8 * most + 64


FileState = tuple[str, int, int, int, int, int]
"""Path, mode, inode, size in bytes, and mtime and ctime in nanoseconds (ctime, because programs can set the
mtime).
"""


def read_log_state(log: Path) -> list[FileState]:
    """Return the state of each file and folder that a reader of `log` may open; [] if there is no log.

    Equal lists mean that nothing has changed; lists that differ may differ only in order. DirEntry.stat keeps
    the GIL, so checking hundreds of segments does not mean waiting for it hundreds of times. Raises OSError.
    """
    states: list[FileState] = []
    conversations = str(log / CONVERSATIONS)
    for stream in _add_folder_states(str(log), states):
        below = _add_folder_states(stream, states)
        for conversation in below if stream == conversations else ():
            _add_folder_states(conversation, states)
    return states


def find_changed_streams(log: Path, before: Iterable[FileState], now: Iterable[FileState]) -> set[str] | None:
    """Return the streams whose folder or files differ between two states of `log`.

    Returns None if anything else differs: seals, the format, or a file in place of a stream's folder.
    """
    streams = set()
    for path, mode, *_ in set(before) ^ set(now):
        parts = path.removeprefix(f"{log}/").split("/")
        stream = "/".join(parts[:2] if parts[0] == CONVERSATIONS else parts[:1])
        is_within = path != f"{log}/{stream}"
        if not is_utf8(stream) or not (stat.S_ISDIR(mode) or is_within):
            return None
        if stream != CONVERSATIONS:
            streams.add(stream)
    return streams


def _add_folder_states(folder: str, states: list[FileState]) -> list[str]:
    """Add the states of a folder's entries to `states`; return the subfolders that may be streams."""
    below = []
    try:
        with disk.scan_folder(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not may_be_stream(entry.name):
                        continue
                    below.append(entry.path)
                status = entry.stat(follow_symlinks=False)
                times = status.st_mtime_ns, status.st_ctime_ns
                states.append((entry.path, status.st_mode, status.st_ino, status.st_size, *times))
    except (FileNotFoundError, NotADirectoryError):
        return []  # removed since the listing; the next state will differ
    except PermissionError:
        if not states:
            raise
        return []  # the folder's own state will differ once it can be read
    return below
