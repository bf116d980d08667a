"""Reading the log without a read model: every line with its event, or with what is wrong with it.

The reader reports; what becomes of a bad or repeated line, its caller decides.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memlog.eventlog import disk
from memlog.eventlog.content_ids import content_hash
from memlog.eventlog.decode import BOM, decode, envelope_of, is_blank
from memlog.eventlog.events import Change, Event, Redacted, tag_of
from memlog.eventlog.precedence import precedence
from memlog.eventlog.quarantine import BadLine, check_length
from memlog.eventlog.segment import Line, line_at, opened, read_lines
from memlog.eventlog.streams import (
    Segment,
    SegmentName,
    by_writer,
    chat_of_stream,
    conversation_stream,
    segments_of,
)
from memlog.eventlog.upcast import Place

_TAIL = 16 * 1024
"""Bytes at the end of a segment: most last lines are shorter."""

_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


Key = tuple[str, str]
"""A stream, and the id of one of its events, or the position of a line that has none."""


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A line that is not blank, and the event that it holds, or why it holds none.

    content: `content_hash` of the event; b"" where there is none.
    """

    segment: Segment
    line: Line
    event: Event | BadLine
    content: bytes

    @property
    def id(self) -> str:
        """The event's; of a line that holds none its position, as of a foreign line that names none."""
        named = None if isinstance(self.event, BadLine) else self.event.id
        return named or Place(self.segment.stream, self.segment.name, self.line.offset).id

    @property
    def key(self) -> Key:
        """What a redaction names it by."""
        return self.segment.stream, self.id

    @property
    def ts(self) -> str:
        """When it happened; "" where it holds no event."""
        return "" if isinstance(self.event, BadLine) else self.event.ts or ""

    @property
    def order(self) -> tuple[str, SegmentName, int, str]:
        """What sorts it among others: when it happened, of a change its precedence; then where it stands."""
        time = precedence(self.event, self.segment.name) if isinstance(self.event, Change) else self.ts
        return time, self.segment.name, self.line.offset, self.segment.stream

    @property
    def at(self) -> str:
        """When memlog appended it; "" where that is not known."""
        return "" if isinstance(self.event, BadLine) else self.event.at or ""

    @property
    def position(self) -> str:
        """Where it stands, for people: `memory/2026-02-24.jsonl:12 (byte 4711)`."""
        place = f"{self.segment.stream}/{self.segment.name.filename}"
        return f"{place}:{self.line.number} (byte {self.line.offset})"


def segments_about(
    log: Path, *, stream: str | None = None, chat: tuple[str, str] | None = None
) -> list[Segment]:
    """The segments of one stream, of all streams of the chat (channel, chat_id), or of all; in log order."""
    return [
        segment
        for segment in segments_of(log)[0]
        if (stream is None or segment.stream == stream) and (chat is None or is_about(segment.stream, chat))
    ]


def reading(segment: Segment) -> AbstractContextManager[int]:
    """A descriptor that reads the segment; see `opened`."""
    return opened(segment.log, segment.stream, segment.name.filename)


def entry_of(segment: Segment, line: Line) -> LogEntry | None:
    """What `line` of `segment` holds; None where it is blank."""
    try:
        check_length(line.length)
        if line.data is None or is_blank(line.data):
            return None
        event = decode(line.data, Place(segment.stream, segment.name, line.offset))
        return LogEntry(segment, line, event, content_hash(event))
    except BadLine as bad:
        # A new one: the frames of a traceback, and all that they hold, would stay as long as the entry. The
        # garbage collector took half of the time of a replay of 19,200 bad lines to walk through them.
        return LogEntry(segment, line, BadLine(bad.reason, bad.detail), b"")


def redactions_in(segment: Segment, lines: Iterable[Line]) -> Iterator[tuple[LogEntry, Redacted]]:
    """The lines that ask for an event to be gone, with what they say."""
    for line in lines:
        # Most lines need no decoding to see that they are none: a name is spelt with escapes, or plainly.
        if line.data is None or not (b"redacted" in line.data or b"\\u" in line.data):
            continue
        entry = entry_of(segment, line)
        if entry is not None and isinstance(entry.event, Redacted):
            yield entry, entry.event


def redacted_keys(segments: Iterable[Segment]) -> set[Key]:
    """What is to be gone, of what any line of `segments` says."""
    found: set[Key] = set()
    for segment in segments:
        with reading(segment) as fd:
            found.update(
                (segment.stream, target)
                for _, event in redactions_in(segment, _lines(segment, fd))
                for target in event.targets
            )
    return found


def is_redacted(entry: LogEntry, redacted: Container[Key]) -> bool:
    """Whether a line is to be gone; a redaction itself never is."""
    return entry.key in redacted and not isinstance(entry.event, Redacted)


def in_log_order(
    segments: Iterable[Segment], *, tails: bool = False, leave_out: Container[int] = ()
) -> Iterator[LogEntry]:
    """Every line of `segments`, one segment after the other.

    tails: also what stands behind the last newline of a newest segment, though a writer may be at it.
    leave_out: offsets of lines that are not looked at.
    """
    for segment in segments:
        with reading(segment) as fd:
            lines = read_lines(fd, tail_is_a_line=tails or not segment.is_newest)
            looked_at = (line for line in lines if line.offset not in leave_out)
            yield from filter(None, (entry_of(segment, line) for line in looked_at))


def accepted(segments: Sequence[Segment], leave_out: Callable[[LogEntry, str], None]) -> Iterator[LogEntry]:
    """The events of `segments` in the one order, each once.

    leave_out: called with each line that is no event of its own, and why: `redacted`; `duplicate` or
        `conflict` where an earlier line of its stream has its id; else what is wrong with it.

    The log is read three times and never held in memory: it may be larger.
    """
    redacted = redacted_keys(segments)
    known: dict[Key, bytes] = {}
    found = []
    for entry in in_log_order(segments):
        why = why_left_out(entry, known, redacted)
        if why is not None:
            leave_out(entry, why)
        else:
            found.append((entry.order, entry.segment, replace(entry.line, data=None)))
    for _, segment, line in sorted(found, key=lambda each: each[0]):
        data = line_at(segment.log, segment.stream, segment.name.filename, line.offset, line.length)
        again = entry_of(segment, replace(line, data=data))
        if again is not None:
            yield again


def last_entries(segments: list[Segment], count: int) -> list[LogEntry]:
    """The last `count` lines of `segments`, in the order of their appending as far as it is known.

    A line without `at` counts as appended with the line before it of its stream and writer.
    """
    found: list[tuple[str, LogEntry]] = []
    for written in by_writer(segments).values():
        at = ""
        for entry in _last_of_writer(written, count):
            at = max(at, entry.at or entry.segment.name.day)
            found.append((at, entry))
    # Sorting keeps the order of each writer.
    found.sort(key=lambda each: each[0])
    return [entry for _, entry in found][max(0, len(found) - count) :]


def last_at(segments: Iterable[Segment]) -> str | None:
    """When memlog appended to any of `segments` last; None where it never did.

    Days of segments are days of appending, so of all but those of the last day nothing is read; and of a
    segment no more than its last lines, unless others have written them.
    """
    newest = [written[-1] for written in by_writer(segments).values()]
    for day in sorted({segment.name.day for segment in newest}, reverse=True):
        at = max(_last_at(segment) for segment in newest if segment.name.day == day)
        if at:
            return at
    return None


def todays_members(entry: LogEntry) -> dict[str, Any]:
    """The members of an entry's event in today's shape, without `crc`; what memlog does not know comes last.

    Raises:
        TypeError: the entry holds no event.
    """
    event, data = entry.event, entry.line.data
    if isinstance(event, BadLine) or data is None:
        raise TypeError("a bad line has no members")
    names = envelope_of(event)
    envelope = {
        name: getattr(event, name, None)
        for name in ("id", "ts", "at", "wins", "highest_wins", "v")
        if name in names
    }
    known: dict[str, Any] = msgspec.to_builtins(event)
    unknown = _raw_members.decode(data.removeprefix(BOM)).items()
    return (
        {"type": tag_of(event)}
        | {name: value for name, value in envelope.items() if value is not None}
        | {name: value for name, value in known.items() if name not in names}
        | {name: raw for name, raw in unknown if name not in (*names, *event.__struct_fields__)}
    )


def why_bad(bad: BadLine) -> str:
    """The reason for people: `invalid: Object missing required field …`."""
    return f"{bad.reason}: {bad.detail}" if bad.detail else bad.reason


def is_about(stream: str, chat: tuple[str, str]) -> bool:
    """Whether a stream is one of the chat (channel, chat_id)."""
    return stream == conversation_stream(*chat) or chat_of_stream(stream) == chat


def _lines(segment: Segment, fd: int) -> Iterator[Line]:
    return read_lines(fd, tail_is_a_line=not segment.is_newest)


def why_left_out(entry: LogEntry, known: dict[Key, bytes], redacted: set[Key]) -> str | None:
    """Why a line is no event of its own; None where it is one, whose content is `known` from then on."""
    if is_redacted(entry, redacted):
        return "redacted"
    if isinstance(entry.event, BadLine):
        return why_bad(entry.event)
    key = entry.key
    if key not in known:
        known[key] = entry.content
        return None
    return "duplicate" if known[key] == entry.content else "conflict"


def _last_of_writer(segments: list[Segment], count: int) -> list[LogEntry]:
    last: list[LogEntry] = []
    for segment in reversed(segments):
        last = [*_last_of_segment(segment, count - len(last)), *last]
        if len(last) == count:
            break
    return last


def _last_at(segment: Segment) -> str:
    """The greatest `at` of a segment, which is that of the last line that has one; "" where none has."""
    with reading(segment) as fd:
        start = size = disk.status(fd).st_size
        while start:
            start = max(0, size - max(_TAIL, 4 * (size - start)))
            # The first may be the rest of a line.
            lines = [*read_lines(fd, start, tail_is_a_line=not segment.is_newest)][bool(start) :]
            for line in reversed(lines):
                entry = entry_of(segment, line)
                if entry is not None and entry.at:
                    return entry.at
    return ""


def _last_of_segment(segment: Segment, count: int) -> list[LogEntry]:
    """Only the last lines are decoded: a segment may be long."""
    with reading(segment) as fd:
        lines = (line for line in _lines(segment, fd) if line.data is None or not is_blank(line.data))
        last = deque(lines, maxlen=count)
    return [entry for line in last if (entry := entry_of(segment, line)) is not None]
