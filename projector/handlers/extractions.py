"""Extractions: what a language model distilled counts once the line that closes its extraction is there.

A process may be killed between the lines. Then none of them counts, the messages stay in the buffer, and
another extraction distils them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from memlog.eventlog.events import (
    DailyEventRecorded,
    DailyEventsCompressed,
    MemoriesExtracted,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.segment import Line
from memlog.eventlog.streams import SegmentName
from memlog.projector.handlers.accepted import Placed
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.rows import delete, insert
from memlog.projector.sqlite import Connection

_CLOSING = (MemoriesExtracted, DailyEventsCompressed)
"""Of messages, and of daily events."""

_decoder = msgspec.json.Decoder(MemorySaved | MemoryUpdated | DailyEventRecorded)


def that_count(db: Connection, events: Sequence[Placed]) -> list[Placed]:
    """`events` without those that wait for the end of their extraction, which are held; and those that were
    held until now."""
    distilled = [placed for placed in events if _extraction_of(placed) is not None]
    closing = [placed for placed in events if isinstance(placed.event, _CLOSING)]
    if not distilled and not closing:
        return [*events]
    closed = {placed.id for placed in closing}
    waiting = [placed for placed in distilled if not _is_closed(db, placed, closed)]
    held = ((each.stream, _extraction_of(each), each.id, _encoded(each)) for each in waiting)
    insert(db, "held_events", "stream, extraction_id, id, event", held)
    released = [placed for each in closing for placed in _released(db, each.stream, each.id)]
    ids = {placed.id for placed in waiting}
    return [*(placed for placed in events if placed.id not in ids), *released]


def close(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Note extractions and the messages that they cover."""
    rows, covered = [], []
    for placed in events:
        said = cast(MemoriesExtracted, placed.event)
        of_model = (said.model, said.prompt, said.tokens_in, said.tokens_out, said.refused)
        rows.append((placed.stream, placed.id, said.chat_id, *of_model, placed.ts))
        ids = dict.fromkeys(said.message_ids)
        covered += [(said.chat_id, message_id, placed.stream, placed.id) for message_id in ids]
    columns = "stream, id, chat_id, model, prompt, tokens_in, tokens_out, refused, ts"
    insert(db, "closed_extractions", columns, rows)
    insert(db, "extracted_messages", "chat_id, message_id, stream, extraction_id", covered)


def _extraction_of(placed: Placed) -> str | None:
    event = placed.event
    if isinstance(event, MemorySaved | MemoryUpdated | DailyEventRecorded) and event.extraction is not None:
        return event.extraction.id
    return None


def _encoded(placed: Placed) -> str:
    return msgspec.json.encode(placed.event).decode()


def _is_closed(db: Connection, placed: Placed, closed: set[str]) -> bool:
    name = _extraction_of(placed)
    if name in closed:
        return True
    found = db.execute(
        "SELECT 1 FROM closed_extractions WHERE (stream, id) = (?1, ?2)"
        " UNION ALL SELECT 1 FROM daily_distillates WHERE (stream, event_id) = (?1, ?2)",
        (placed.stream, name),
    )
    return found.fetchone() is not None


def _released(db: Connection, stream: str, extraction_id: str) -> Iterable[Placed]:
    rows = db.execute(
        "SELECT h.id, h.event, e.ts, e.day, e.number, e.writer, e.offset, e.length, e.line, e.content_sha256"
        " FROM held_events h JOIN events e USING (stream, id) WHERE (stream, extraction_id) = (?, ?)",
        (stream, extraction_id),
    ).fetchall()
    delete(db, "held_events", "(stream, extraction_id) = (?, ?)", (stream, extraction_id))
    return [_placed(stream, *row) for row in rows]


def _placed(stream: str, name: str, event: str, ts: str, *place: Any) -> Placed:  # noqa: ANN401
    day, number, writer, offset, length, line, content_sha256 = place
    segment = SegmentName(day, number, writer)
    at = Line(offset=offset, number=line, length=length, end=offset + length + 1, data=None)
    said = _decoder.decode(event)
    return Placed(name, ts, said, stream, segment, at, bytes(content_sha256), (day, number, writer, offset))
