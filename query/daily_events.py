"""Daily events: what happened on a day, and which memories it was distilled into."""

import msgspec

from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION, all_of, record


class DailyEvent(msgspec.Struct, kw_only=True):
    """Something that happened on a day.

    event_date: such as 2026-02-24. chat: `<channel>:<chat_id>`, of which a model distilled it.
    raw_tokens: the length of what the summary sums up; None if unknown.
    compressed_at: when it was first distilled; None if it was not. memory_ids: into which memories, sorted.
    """

    id: str
    event_date: str
    channel: str | None
    sender_id: str | None
    chat: str | None
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
    "SELECT id, event_date, channel, sender_id, chat_id, summary, raw_tokens, created_at,"
    f" ({_COMPRESSED_AT}) AS compressed_at, ({_MEMORY_IDS}), {POSITION}"
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
    """Daily events by day; within a day, in the order of events.

    date: of this day. since, until: since <= day <= until. uncompressed: only those not yet distilled.
    """
    condition, values = all_of(
        ("event_date = ?", date),
        ("event_date >= ?", since),
        ("event_date <= ?", until),
        ("channel = ?", channel),
        ("(compressed_at IS NULL) = ?", True if uncompressed else None),
    )
    rows = db.execute(
        f"{_DAILY_EVENTS} WHERE {condition}"
        " ORDER BY event_date, created_at, e.day, e.number, e.writer, e.offset, e.stream",
        values,
    )
    events = [record(DailyEvent, row) for row in rows]
    for event in events:
        event.memory_ids.sort()
    return events
