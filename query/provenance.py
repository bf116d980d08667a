"""Finds the lines of the log behind ids, and the lines that were not projected."""

from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.decode import decode
from memlog.eventlog.errors import BadInput, LineFault, NotFound
from memlog.eventlog.quarantine import HINTS, BadLine
from memlog.eventlog.segment import line_at
from memlog.eventlog.streams import SegmentName
from memlog.eventlog.upcast import Place
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.surroundings import Surroundings, around_event


class StoredEvent(msgspec.Struct, omit_defaults=True):
    """An event as the log has it; `raw` is its line, without the newline.

    around: the messages beside a message; None unless requested, and for other events.
    """

    id: str
    type: str
    ts: str
    at: str | None
    raw: str
    position: LinePosition
    around: Surroundings | None = None


class QuarantinedLine(msgspec.Struct):
    """A line that could not be projected; `bytes` is its length."""

    stream: str
    segment: str
    offset: int
    reason: str
    bytes: int


def stored(
    db: Connection, log: Path, name: str, stream: str | None = None, *, neighbours: int = 0
) -> StoredEvent | None:
    """The event with the id `name`, else the event with the content of the memory, fact (`topic_key/rank`) or
    document (`source/file`) `name`, or None.

    neighbours: messages to give on either side of a message.

    Raises:
        BadInput: several streams have such an event, and `stream` names none of them.
    """
    rows = db.execute(
        f"SELECT {EVENT_COLUMNS} FROM events e"
        " WHERE e.id = ?1"
        " OR (e.stream, e.id) IN (SELECT stream, event_id FROM memories WHERE memory_id = ?1)"
        " OR (e.stream, e.id) IN (SELECT stream, event_id FROM facts WHERE fact_id = ?1)"
        " OR (e.stream, e.id) IN (SELECT stream, event_id FROM documents WHERE document_id = ?1)"
        " ORDER BY e.id <> ?1, e.stream",
        (name,),
    ).fetchall()
    by_stream = {row[0]: row for row in reversed(rows) if stream is None or row[0] == stream}
    if len(by_stream) > 1:
        streams = ", ".join(sorted(by_stream))
        raise BadInput(f"{name} stands in several streams: {streams}", hint="name one: stream=STREAM")
    event = next((event_at(log, row) for row in by_stream.values()), None)
    if event is not None and neighbours:
        event.around = around_event(db, (event.position.stream, event.id), neighbours)
    return event


EVENT_COLUMNS = "e.stream, e.id, e.type, e.ts, e.at, e.segment, e.offset, e.line, e.length"
"""The columns of `events e` for `event_at`."""


def event_at(log: Path, row: tuple[Any, ...]) -> StoredEvent:
    """The event of a row of `EVENT_COLUMNS`, with its line from the log."""
    stream, event_id, kind, ts, at, segment, offset, line, length = row
    raw = line_at(log, stream, segment, offset, length)
    return StoredEvent(
        event_id, kind, ts, at, raw.decode(errors="replace"), LinePosition(stream, segment, offset, line)
    )


def stream_with(db: Connection, event_id: str) -> str:
    """The stream with an event of this id, forgotten or not.

    Raises:
        NotFound: no stream has one. BadInput: several have.
    """
    rows = db.execute(
        "SELECT stream FROM events WHERE id = ?1 UNION SELECT stream FROM redactions WHERE target_id = ?1",
        (event_id,),
    )
    streams = [stream for (stream,) in rows]
    if not streams:
        raise NotFound(f"no event has the id {event_id}", hint="name the stream that it will stand in")
    if len(streams) > 1:
        raise BadInput(f"{event_id} stands in several streams: {', '.join(streams)}", hint="name one")
    return str(streams[0])


def quarantine(db: Connection) -> list[QuarantinedLine]:
    """The lines that could not be projected, by position."""
    rows = db.execute(
        "SELECT stream, segment, offset, reason, length FROM quarantine ORDER BY stream, segment, offset"
    )
    return [QuarantinedLine(*row) for row in rows]


def explanation(log: Path, line: QuarantinedLine) -> str:
    """Why a line is quarantined and what to do about it, for people, in more detail than its reason."""
    name = SegmentName.parse(line.segment)
    reason: LineFault = line.reason  # type: ignore[assignment] # the table holds nothing else
    detail = ""
    if name is not None and reason != "too_long":
        try:
            decode(
                line_at(log, line.stream, line.segment, line.offset, line.bytes),
                Place(line.stream, name, line.offset),
            )
        except BadLine as bad:
            detail = bad.detail
    return "; ".join(part for part in (detail, HINTS[reason]) if part)
