"""Daily events: what happened on a day, and which memories it was distilled into."""

from collections.abc import Sequence
from typing import Any

import msgspec

from memlog.projector.sqlite import Connection
from memlog.query import ids as known_ids
from memlog.query.event_index import LinePosition


class DailyEvent(msgspec.Struct, kw_only=True):
    """Something that happened on a day.

    event_date: the day, as 2026-02-24.
    raw_tokens: how long what the summary sums up was; None where it was not said.
    compressed_at: when it was first said to be distilled; None where it was not.
    memory_ids: the memories that it was distilled into, sorted.
    """

    id: str
    event_date: str
    channel: str | None
    sender_id: str | None
    summary: str
    raw_tokens: int | None
    created_at: str
    compressed_at: str | None
    memory_ids: list[str]
    position: LinePosition


_COMPRESSED_AT = (
    "SELECT min(ts) FROM daily_compressions c WHERE (c.stream, c.daily_event_id) = (d.stream, d.id)"
)
_MEMORY_IDS = (
    "SELECT json_group_array(DISTINCT m.value)"
    " FROM daily_compressions c JOIN daily_distillates USING (stream, event_id), json_each(memory_ids) m"
    " WHERE (c.stream, c.daily_event_id) = (d.stream, d.id)"
)
_DAILY_EVENTS = (
    "SELECT id, event_date, channel, sender_id, summary, raw_tokens, created_at,"
    f" ({_COMPRESSED_AT}) AS compressed_at, ({_MEMORY_IDS}), e.stream, e.segment, e.offset, e.line"
    " FROM daily_events d JOIN events e USING (stream, id)"
)


def daily_events(
    db: Connection,
    *,
    date: str | None = None,
    since: str | None = None,
    until: str | None = None,
    channel: str | None = None,
    uncompressed: bool = False,
) -> list[DailyEvent]:
    """Daily events by day, those of one day in the one order of events.

    date: of this day. since, until: since <= day < until.
    uncompressed: those alone that were not distilled yet.
    """
    conditions: list[tuple[str, Any]] = [
        ("event_date = ?", date),
        ("event_date >= ?", since),
        ("event_date < ?", until),
        ("channel = ?", channel),
        ("(compressed_at IS NULL) = ?", True if uncompressed else None),
    ]
    asked = [(condition, value) for condition, value in conditions if value is not None]
    rows = db.execute(
        f"{_DAILY_EVENTS} WHERE {' AND '.join(['1', *(condition for condition, _ in asked)])}"
        " ORDER BY event_date, created_at, e.day, e.number, e.writer, e.offset, e.stream",
        [value for _, value in asked],
    )
    return [_daily_event(row) for row in rows]


def unknown(db: Connection, ids: Sequence[str]) -> list[str]:
    """Those of `ids` that no daily event has, once each, in their order."""
    return known_ids.unknown(db, ids, "SELECT id FROM daily_events")


def _daily_event(row: tuple[Any, ...]) -> DailyEvent:
    *values, memory_ids, stream, segment, offset, line = row
    return DailyEvent(
        **dict(zip(DailyEvent.__struct_fields__, values, strict=False)),
        memory_ids=sorted(msgspec.json.decode(memory_ids, type=list[str])),
        position=LinePosition(stream, segment, offset, line),
    )
