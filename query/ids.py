"""Known, unknown and forgotten ids, and events that are not shown, or not whole."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection

_COLUMNS = {"memories": "memory_id", "daily_events": "id"}


def unknown(db: Connection, ids: Sequence[str], table: Literal["memories", "daily_events"]) -> list[str]:
    """The `ids` that a table lacks, without repetition, in their order."""
    known = f"SELECT {_COLUMNS[table]} FROM {table}"
    rows = db.execute(
        f"SELECT value FROM json_each(?) WHERE value NOT IN ({known}) ORDER BY key", (as_list(ids),)
    )
    return list(dict.fromkeys(name for (name,) in rows))


def id_holders(db: Connection, stream: str, ids: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """The segment, offset and length of the line of each event of `stream` in `ids`."""
    rows = db.execute(
        "SELECT id, segment, offset, length FROM events"
        " WHERE stream = ? AND id IN (SELECT value FROM json_each(?))",
        (stream, as_list(ids)),
    )
    return {event_id: (segment, offset, length) for event_id, segment, offset, length in rows}


def forgotten_ids(db: Connection, stream: str, ids: Sequence[str]) -> set[str]:
    """The `ids` that were forgotten in `stream`."""
    rows = db.execute(
        "SELECT target_id FROM redactions WHERE stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (stream, as_list(ids)),
    )
    return {event_id for (event_id,) in rows}


def ids_anywhere(db: Connection, ids: Sequence[str]) -> tuple[set[str], set[str]]:
    """Which of `ids` events of any stream have, and which were forgotten in any.

    It reads all ids: to look for each in each stream takes ten times as long where there are 2,000 chats.
    """
    wanted = "IN (SELECT value FROM json_each(?))"
    known = db.execute(f"SELECT id FROM events WHERE +id {wanted}", (as_list(ids),)).fetchall()
    forgotten = db.execute(f"SELECT target_id FROM redactions WHERE +target_id {wanted}", (as_list(ids),))
    return {name for (name,) in known}, {name for (name,) in forgotten}


class Conflict(msgspec.Struct, frozen=True):
    """A line with the id of an earlier event of its stream and another content; the holder is that event."""

    stream: str
    id: str
    segment: str
    offset: int
    holder_segment: str
    holder_offset: int


def conflicts(db: Connection, limit: int) -> list[Conflict]:
    """At most `limit` conflicting lines, which no read shows, the newest first."""
    rows = db.execute(
        "SELECT c.stream, c.id, c.segment, c.offset, e.segment, e.offset FROM conflicts c"
        " JOIN events e ON e.stream = c.stream AND e.id = c.id"
        " ORDER BY c.segment DESC, c.stream, c.offset DESC LIMIT ?",
        (limit,),
    )
    return [Conflict(*row) for row in rows]


class PlainTexts(msgspec.Struct, frozen=True):
    """Events whose form was ignored when they were indexed, by reason.

    reason: see `memlog.projector.limits`. place: of one of them, `conversations/c_1/2026-02-24.jsonl:1042`.
    """

    reason: str
    count: int
    place: str


def plain_texts(db: Connection) -> list[PlainTexts]:
    """The number of events for each reason."""
    rows = db.execute(
        "SELECT reason, count(*), min(stream || '/' || segment || ':' || offset)"
        " FROM plain_texts JOIN events USING (stream, id) GROUP BY reason ORDER BY reason"
    )
    return [PlainTexts(*row) for row in rows]
