"""Daily events, and which memories they were distilled into."""

from collections.abc import Sequence
from typing import Any

from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.projector.chunking import ChunkSizes
from memlog.projector.handlers.placed import Placed, as_json
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Add daily events, and marks of compression."""
    insert(
        db,
        "daily_events",
        ("stream", "id", "event_date", "channel", "sender_id", "summary", "raw_tokens", "created_at"),
        [_day(placed, placed.event) for placed in events if isinstance(placed.event, DailyEventRecorded)],
    )
    insert(
        db,
        "daily_compressions",
        ("stream", "daily_event_id", "event_id", "memory_ids", "ts"),
        [
            (placed.stream, daily_event_id, placed.id, as_json(placed.event.memory_ids), placed.order[0])
            for placed in events
            if isinstance(placed.event, DailyEventsCompressed)
            for daily_event_id in dict.fromkeys(placed.event.ids)
        ],
    )


def _day(placed: Placed, said: DailyEventRecorded) -> tuple[Any, ...]:
    ts = placed.order[0]
    day = said.event_date or ts.partition("T")[0]
    return placed.stream, said.id, day, said.channel, said.sender_id, said.summary, said.raw_tokens, ts
