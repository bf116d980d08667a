"""Daily events, and which memories they were distilled into."""

from collections.abc import Sequence
from typing import Any

from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add daily events with their passages, and marks of compression."""
    rows, wholes = [], []
    for placed in events:
        if isinstance(placed.event, DailyEventRecorded):
            rows.append(_row(placed, placed.event))
            wholes.append(_whole(placed, placed.event))
    insert(
        db,
        "daily_events",
        ("stream", "id", "event_date", "channel", "sender_id", "summary", "raw_tokens", "created_at"),
        rows,
    )
    index.add(db, "daily_event_id", wholes, sizes)
    insert(
        db,
        "daily_compressions",
        ("stream", "daily_event_id", "event_id", "ts"),
        [
            (placed.stream, daily_event_id, placed.id, placed.ts)
            for placed in events
            if isinstance(placed.event, DailyEventsCompressed)
            for daily_event_id in dict.fromkeys(placed.event.ids)
        ],
    )
    insert(
        db,
        "daily_distillates",
        ("stream", "event_id", "memory_ids"),
        [
            (placed.stream, placed.id, as_json(placed.event.memory_ids))
            for placed in events
            if isinstance(placed.event, DailyEventsCompressed)
        ],
    )


def _row(placed: Placed, said: DailyEventRecorded) -> tuple[Any, ...]:
    day, ts = _day(placed, said), placed.ts
    return placed.stream, said.id, day, said.channel, said.sender_id, said.summary, said.raw_tokens, ts


def _whole(placed: Placed, said: DailyEventRecorded) -> Whole:
    """What is searched of it; by its day, too."""
    day, ts = _day(placed, said), placed.ts
    return Whole(
        stream=placed.stream,
        id=said.id,
        source="daily_event",
        chat_id=None,
        label=day,
        created_at=ts,
        updated_at=f"{day}T00:00:00.000Z",
        content=said.summary,
    )


def _day(placed: Placed, said: DailyEventRecorded) -> str:
    return said.event_date or placed.ts.partition("T")[0]
