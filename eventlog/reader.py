"""Reads the log without a read model: every line with its event or its fault.

The reader reports bad and repeated lines; its caller decides what to do with them.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memlog.eventlog.content_ids import content_hash
from memlog.eventlog.decode import decode, envelope_of, is_blank, raw_members, without_bom
from memlog.eventlog.envelope import Change, Event, tag_of
from memlog.eventlog.events import Redacted
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

Key = tuple[str, str]
"""A stream, and the id of one of its events, or the position of a line without an id."""

Bounds = Mapping[tuple[str, str], int]
"""How far to read each (stream, segment), in bytes; others are not read."""


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A non-blank line with its event or fault. content: `content_hash` of the event; b"" without one."""

    segment: Segment
    line: Line
    event: Event | BadLine
    content: bytes

    @property
    def id(self) -> str:
        """The event's id, or the line's position if it has none."""
        named = None if isinstance(self.event, BadLine) else self.event.id
        return named or Place(self.segment.stream, self.segment.name, self.line.offset).id

    @property
    def key(self) -> Key:
        """The key that redactions use."""
        return self.segment.stream, self.id

    @property
    def ts(self) -> str:
        """When it happened; "" without an event."""
        return "" if isinstance(self.event, BadLine) else self.event.ts or ""

    @property
    def order(self) -> tuple[str, SegmentName, int, str]:
        """Sort key: the time (precedence for a change), then the position."""
        time = precedence(self.event, self.segment.name) if isinstance(self.event, Change) else self.ts
        return time, self.segment.name, self.line.offset, self.segment.stream

    @property
    def at(self) -> str:
        """When memlog appended it; "" if unknown."""
        return "" if isinstance(self.event, BadLine) else self.event.at or ""

    @property
    def position(self) -> str:
        """For people: `memory/2026-02-24.jsonl:12 (byte 4711)`."""
        return f"{'/'.join(self.segment.key)}:{self.line.number} (byte {self.line.offset})"


def segments_about(
    log: Path, *, stream: str | None = None, chat: tuple[str, str] | None = None
) -> list[Segment]:
    """The segments of a stream, of a chat (channel, chat_id), or of the log, sorted."""
    return [
        segment
        for segment in segments_of(log)[0]
        if (stream is None or segment.stream == stream) and (chat is None or is_about(segment.stream, chat))
    ]


def reading(segment: Segment) -> AbstractContextManager[int]:
    """As `segment.opened`."""
    return opened(segment.log, *segment.key)


def entry_of(segment: Segment, line: Line) -> LogEntry | None:
    """The entry of a line; None for a blank line."""
    try:
        check_length(line.length)
        if line.data is None or is_blank(line.data):
            return None
        event = decode(line.data, Place(segment.stream, segment.name, line.offset))
        return LogEntry(segment, line, event, content_hash(event))
    except BadLine as bad:
        # A copy: the original keeps the frames of its traceback alive as long as the entry. The garbage
        # collector took half of the time of a replay of 19,200 bad lines to walk through them.
        return LogEntry(segment, line, BadLine(bad.reason, bad.detail), b"")


def redactions_in(segment: Segment, lines: Iterable[Line]) -> Iterator[tuple[LogEntry, Redacted]]:
    """The redactions among `lines`, with their entries."""
    for line in lines:
        # Most lines need no decoding: a redaction has its type in plain text or with escapes.
        if line.data is None or not (b"redacted" in line.data or b"\\u" in line.data):
            continue
        entry = entry_of(segment, line)
        if entry is not None and isinstance(entry.event, Redacted):
            yield entry, entry.event


def redacted_keys(segments: Iterable[Segment], bounds: Bounds | None = None) -> set[Key]:
    """The targets of all redactions in `segments`."""
    return {
        (segment.stream, target)
        for segment in segments
        for _, event in redactions_in(segment, lines_of(segment, bounds))
        for target in event.targets
    }


def redactions_among(entries: Iterable[LogEntry]) -> set[Key]:
    """The targets of the redactions among `entries`."""
    return {
        (entry.segment.stream, target)
        for entry in entries
        if isinstance(entry.event, Redacted)
        for target in entry.event.targets
    }


def is_redacted(entry: LogEntry, redacted: Container[Key]) -> bool:
    """Whether a line is redacted; a redaction itself never is."""
    return entry.key in redacted and not isinstance(entry.event, Redacted)


def in_log_order(
    segments: Iterable[Segment],
    *,
    bounds: Bounds | None = None,
    tails: bool = False,
    leave_out: Container[int] = (),
) -> Iterator[LogEntry]:
    """Every line of `segments`, one segment after the other, up to `bounds`.

    tails: see `lines_of`. leave_out: offsets of lines to skip.
    """
    for segment in segments:
        for line in lines_of(segment, bounds, tails=tails):
            if line.offset not in leave_out and (entry := entry_of(segment, line)) is not None:
                yield entry


def accepted(segments: Sequence[Segment], leave_out: Callable[[LogEntry, str], None]) -> Iterator[LogEntry]:
    """The events of `segments` in log order, each once.

    leave_out: called with every other line and the reason: `redacted`, `duplicate` or `conflict` (an earlier
        line of its stream has its id), or its fault.

    Reads the log three times instead of holding it in memory.
    """
    redacted = redacted_keys(segments)
    known: dict[Key, bytes] = {}
    places = []
    for entry in in_log_order(segments):
        why = why_left_out(entry, known, redacted)
        if why is not None:
            leave_out(entry, why)
        else:
            places.append((entry.order, entry.segment, replace(entry.line, data=None)))
    for _, segment, line in sorted(places, key=lambda place: place[0]):
        data = line_at(segment.log, *segment.key, line.offset, line.length)
        again = entry_of(segment, replace(line, data=data))
        if again is not None:
            yield again


def last_entries(
    segments: list[Segment], count: int, *, redacted: Container[Key] = frozenset()
) -> list[LogEntry]:
    """The last `count` lines of `segments` that are not `redacted`, by time of appending.

    A line without `at` counts as appended with the line before it of its stream and writer.
    """
    dated: list[tuple[str, LogEntry]] = []
    for written in by_writer(segments).values():
        at = ""
        for entry in _last_of_writer(written, count, redacted):
            at = max(at, entry.at or entry.segment.name.day)
            dated.append((at, entry))
    # Sorting keeps the order of each writer.
    dated.sort(key=lambda pair: pair[0])
    return [entry for _, entry in dated][max(0, len(dated) - count) :]


def last_at(segments: Iterable[Segment]) -> str | None:
    """When memlog last appended to one of `segments`; None if never.

    Reads the ends of the last day's segments: a segment's day is the day of appending.
    """
    newest = [written[-1] for written in by_writer(segments).values()]
    for day in sorted({segment.name.day for segment in newest}, reverse=True):
        at = max(_last_at(segment) for segment in newest if segment.name.day == day)
        if at:
            return at
    return None


def todays_members(entry: LogEntry) -> dict[str, Any]:
    """The members of an event in today's shape, unknown ones last. Raises TypeError without an event."""
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
    unknown = raw_members.decode(without_bom(data)).items()
    return (
        {"type": tag_of(event)}
        | {name: value for name, value in envelope.items() if value is not None}
        | {name: value for name, value in known.items() if name not in names}
        | {name: raw for name, raw in unknown if name not in (*names, *event.__struct_fields__)}
    )


def is_about(stream: str, chat: tuple[str, str]) -> bool:
    """Whether a stream belongs to the chat (channel, chat_id)."""
    return stream == conversation_stream(*chat) or chat_of_stream(stream) == chat


def lines_of(segment: Segment, bounds: Bounds | None = None, *, tails: bool = False) -> Iterator[Line]:
    """The lines of a segment, up to its bound.

    tails: include bytes after the last newline of a newest segment, though a writer may not have finished.
    """
    end = None if bounds is None else bounds.get(segment.key, 0)
    # A bound is the end of a line that was read, with or without newline.
    tail_is_a_line = tails or end is not None or not segment.is_newest
    with reading(segment) as fd:
        yield from read_lines(fd, end=end, tail_is_a_line=tail_is_a_line)


def why_left_out(entry: LogEntry, known: dict[Key, bytes], redacted: set[Key]) -> str | None:
    """Why a line counts as no new event; None if it does. Adds new events to `known`."""
    if is_redacted(entry, redacted):
        return "redacted"
    if isinstance(entry.event, BadLine):
        return str(entry.event)
    key = entry.key
    if key not in known:
        known[key] = entry.content
        return None
    return "duplicate" if known[key] == entry.content else "conflict"


def _last_of_writer(segments: list[Segment], count: int, redacted: Container[Key]) -> list[LogEntry]:
    last: list[LogEntry] = []
    for segment in reversed(segments):
        last = [*_last_of_segment(segment, count - len(last), redacted), *last]
        if len(last) == count:
            break
    return last


def _last_at(segment: Segment) -> str:
    # Imported here: few commands ask.
    from memlog.eventlog.clock import last_at_in

    with reading(segment) as fd:
        return last_at_in(fd)


def _last_of_segment(segment: Segment, count: int, redacted: Container[Key]) -> list[LogEntry]:
    """Decodes the last lines alone: a segment may be long."""
    most = count
    while True:
        lines = (line for line in lines_of(segment) if line.data is None or not is_blank(line.data))
        last = deque(lines, maxlen=most)
        entries = [entry for line in last if (entry := entry_of(segment, line)) is not None]
        kept = [entry for entry in entries if not is_redacted(entry, redacted)]
        if len(kept) >= count or len(last) < most:
            return kept[max(0, len(kept) - count) :]
        most = 8 * most + 64
