"""Extractions: distilled events count once the event that closes their extraction is written.

If the process is killed before that, none of these events counts, the messages stay in the buffer, and
another extraction distils them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from memlog.eventlog import events as ev
from memlog.eventlog.log.reader import Line
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, delete_rows, insert_rows
from memlog.projector.subjects.accepted import Handlers, PositionedEvent, encode_as_json

_DISTILLED = (
    ev.MemorySaved
    | ev.MemoryUpdated
    | ev.MemoryArchived
    | ev.DailyEventRecorded
    | ev.CoreMemoryUpdated
    | ev.CoreMemoryDeleted
)
_CLOSING = ev.MemoriesExtracted | ev.DailyEventsCompressed | ev.MemoriesMerged | ev.ProfileRefreshed
_decoder = msgspec.json.Decoder(_DISTILLED)
_OF_FAILURE = (
    *("id", "task", "chat_id", "provider", "model", "kind", "why"),
    *("requests", "tokens_in", "tokens_out"),
)


def hold_open_and_release_closed(db: Connection, events: Sequence[PositionedEvent]) -> list[PositionedEvent]:
    """Return the events that count now, including newly released ones; hold those of open extractions."""
    distilled = [placed for placed in events if _extraction_id_of_event(placed) is not None]
    closing = [placed for placed in events if isinstance(placed.event, _CLOSING)]
    if not distilled and not closing:
        return [*events]
    closed = {placed.id for placed in closing}
    waiting = [placed for placed in distilled if not _is_extraction_closed(db, placed, closed)]
    held = (
        (each.stream, _extraction_id_of_event(each), each.id, msgspec.json.encode(each.event).decode())
        for each in waiting
    )
    insert_rows(db, "held_events", "stream, extraction_id, id, event", held)
    released = [placed for each in closing for placed in _release_events(db, each.stream, each.id)]
    ids = {placed.id for placed in waiting}
    return [*(placed for placed in events if placed.id not in ids), *released]


def record_closed_extractions(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Record closed extractions, the messages or contents they cover, and their merge decisions."""
    rows, covered, compared, decided = [], [], [], []
    for placed in events:
        event = cast(ev.MemoriesExtracted | ev.MemoriesMerged | ev.ProfileRefreshed, placed.event)
        stream, name, ts = placed.stream, placed.id, placed.ts
        chat = event.chat_id
        of_model = (event.model, event.prompt, event.tokens_in, event.tokens_out, event.refused)
        rows.append((stream, name, ev.type_name_of_event(event), chat, *of_model, ts))
        if isinstance(event, ev.MemoriesExtracted):
            covered += [(chat, message_id, stream, name) for message_id in dict.fromkeys(event.message_ids)]
            continue
        compared += [(stream, event_id, name) for event_id in dict.fromkeys(event.event_ids)]
        if isinstance(event, ev.MemoriesMerged):
            for number, each in enumerate(event.decisions):
                of_one = (each.relation, encode_as_json(each.memory_ids), encode_as_json(each.event_ids))
                decided.append((stream, name, number, *of_one, each.memory_id, each.proposal_id, ts))
    columns = "stream, id, type, chat_id, model, prompt, tokens_in, tokens_out, refused, ts"
    insert_rows(db, "closed_extractions", columns, rows)
    insert_rows(db, "extracted_messages", "chat_id, message_id, stream, extraction_id", covered)
    insert_rows(db, "compared_contents", "stream, event_id, extraction_id", compared)
    columns = "stream, extraction_id, number, relation, memory_ids, event_ids, memory_id, proposal_id, ts"
    insert_rows(db, "merge_decisions", columns, decided)


def record_failed_requests(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Record failed requests to language models, and the events they were about."""
    rows = []
    for placed in events:
        about = encode_as_json([*dict.fromkeys(cast(ev.ModelFailed, placed.event).event_ids)])
        rows.append((placed.stream, about, *placed.list_values(*_OF_FAILURE), placed.ts))
    insert_rows(db, "model_failures", f"stream, event_ids, {', '.join(_OF_FAILURE)}, ts", rows)


def _extraction_id_of_event(placed: PositionedEvent) -> str | None:
    event = placed.event
    if isinstance(event, _DISTILLED) and event.extraction is not None:
        return event.extraction.id
    return None


def _is_extraction_closed(db: Connection, placed: PositionedEvent, closed: set[str]) -> bool:
    name = _extraction_id_of_event(placed)
    if name in closed:
        return True
    found = db.execute(
        "SELECT 1 FROM closed_extractions WHERE (stream, id) = (?1, ?2)"
        " UNION ALL SELECT 1 FROM daily_distillates WHERE (stream, event_id) = (?1, ?2)"
        # A redacted closing line has closed its extraction, too.
        " UNION ALL SELECT 1 FROM redactions WHERE (stream, target_id) = (?1, ?2)",
        (placed.stream, name),
    )
    return found.fetchone() is not None


def _release_events(db: Connection, stream: str, extraction_id: str) -> Iterable[PositionedEvent]:
    rows = db.execute(
        "SELECT h.id, h.event, e.ts, e.day, e.number, e.writer, e.offset, e.length, e.line, e.content_sha256"
        " FROM held_events h JOIN events e USING (stream, id) WHERE (stream, extraction_id) = (?, ?)",
        (stream, extraction_id),
    ).fetchall()
    delete_rows(db, "held_events", "(stream, extraction_id) = (?, ?)", (stream, extraction_id))
    return [_restore_event(stream, *row) for row in rows]


def _restore_event(stream: str, name: str, event: str, ts: str, *place: Any) -> PositionedEvent:  # noqa: ANN401
    day, number, writer, offset, length, line, content_sha256 = place
    segment = SegmentName(day, number, writer)
    at = Line(offset=offset, number=line, length=length, end=offset + length + 1, data=None)
    decoded = _decoder.decode(event)
    return PositionedEvent(
        name, ts, decoded, stream, segment, at, bytes(content_sha256), (day, number, writer, offset)
    )


def record_job_runs(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Record the jobs that have run."""
    jobs = ((each, cast(ev.JobCompleted, each.event)) for each in events)
    rows = [(at.stream, at.id, job.job, job.period, encode_as_json(job.steps), at.ts) for at, job in jobs]
    insert_rows(db, "job_runs", "stream, id, job, period, steps, ts", rows)


HANDLERS: Handlers = {
    record_closed_extractions: (ev.MemoriesExtracted, ev.MemoriesMerged, ev.ProfileRefreshed),
    record_failed_requests: (ev.ModelFailed,),
    record_job_runs: (ev.JobCompleted,),
}
