"""From what was found back to the log: the line behind an id, and the lines that were not projected."""

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
    """An event as it stands in the log; `raw` is its line, without the newline.

    around: the messages beside a message; None where it was not asked for, and for other events.
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
    """The event of the id `name`; else the one that says what the memory, the fact (`topic_key/rank`) or the
    document (`source/file`) `name` says; None where there is none.

    neighbours: give a message with so many others on either side; 0 for none.

    Raises:
        BadInput: several streams have an event of this id, and `stream` names none of them.
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
    found = {row[0]: row for row in reversed(rows) if stream is None or row[0] == stream}
    if len(found) > 1:
        streams = ", ".join(sorted(found))
        raise BadInput(f"{name} stands in several streams: {streams}", hint="name one: --stream STREAM")
    event = next((event_at(log, row) for row in found.values()), None)
    if event is not None and neighbours:
        event.around = around_event(db, (event.position.stream, event.id), neighbours)
    return event


EVENT_COLUMNS = "e.stream, e.id, e.type, e.ts, e.at, e.segment, e.offset, e.line, e.length"
"""The columns of `events e` that `event_at` takes."""


def event_at(log: Path, row: tuple[Any, ...]) -> StoredEvent:
    """The event of a row of `EVENT_COLUMNS`, its line read from the log."""
    stream, event_id, kind, ts, at, segment, offset, line, length = row
    raw = line_at(log, stream, segment, offset, length)
    return StoredEvent(
        event_id, kind, ts, at, raw.decode(errors="replace"), LinePosition(stream, segment, offset, line)
    )


def stream_with(db: Connection, event_id: str) -> str:
    """The one stream that has an event of this id.

    Raises:
        NotFound: none has. BadInput: several have.
    """
    streams = [
        stream
        for (stream,) in db.execute(
            "SELECT stream FROM events WHERE id = ?1"
            " UNION SELECT stream FROM redactions WHERE target_id = ?1",
            (event_id,),
        )
    ]
    if not streams:
        raise NotFound(f"no event has the id {event_id}", hint="name the stream that it will stand in")
    if len(streams) > 1:
        raise BadInput(f"{event_id} stands in several streams: {', '.join(streams)}", hint="name one")
    return str(streams[0])


def quarantine(db: Connection) -> list[QuarantinedLine]:
    """Every line that could not be projected, by position."""
    rows = db.execute(
        "SELECT stream, segment, offset, reason, length FROM quarantine ORDER BY stream, segment, offset"
    )
    return [QuarantinedLine(*row) for row in rows]


def explanation(log: Path, line: QuarantinedLine) -> str:
    """Why a line is quarantined, and what can be done, for people: more than its reason says."""
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
