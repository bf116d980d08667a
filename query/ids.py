"""Known, unknown and forgotten ids, and events that are not shown, or not whole."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

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


class IdInUse(NamedTuple):
    """An id and the position of its event; length: of its line in bytes."""

    id: str
    stream: str
    segment: str
    offset: int
    length: int


def ids_in_use(db: Connection, ids: Sequence[str]) -> tuple[list[IdInUse], set[str]]:
    """Find which of `ids` events of any stream have, and which were forgotten in any.

    It reads all ids: to look for each in each stream takes ten times as long where there are 2,000 chats.
    """
    wanted = "IN (SELECT value FROM json_each(?))"
    events = f"SELECT id, stream, segment, offset, length FROM events WHERE +id {wanted}"
    known = [IdInUse(*row) for row in db.execute(events, (as_list(ids),))]
    forgotten = db.execute(f"SELECT target_id FROM redactions WHERE +target_id {wanted}", (as_list(ids),))
    return known, {name for (name,) in forgotten}


def ids_below(
    db: Connection, streams: Sequence[str], names: Sequence[str]
) -> tuple[list[IdInUse], list[tuple[str, str]]]:
    """Find the ids in `streams` that begin with one of `names` and a slash, and those that were forgotten,
    each with the time of its redaction."""
    below = "> n.value || '/' AND {0} < n.value || '0'"  # the character after the slash
    # In this order: each name is a range of the index.
    source = "FROM json_each(?) AS s CROSS JOIN json_each(?) AS n CROSS JOIN"
    given = (as_list(streams), as_list(names))
    events = db.execute(
        f"SELECT e.id, e.stream, e.segment, e.offset, e.length {source} events AS e"
        f" WHERE e.stream = s.value AND e.id {below.format('e.id')}",
        given,
    )
    known = [IdInUse(*row) for row in events]
    redactions = db.execute(
        f"SELECT r.target_id, r.ts {source} redactions AS r"
        f" WHERE r.stream = s.value AND r.target_id {below.format('r.target_id')}",
        given,
    )
    return known, [(name, ts) for name, ts in redactions]


def suffixes(db: Connection, prefix: str, length: int) -> list[str]:
    """List the `length` characters after `prefix` in the ids that begin with it, in events and redactions."""
    queries = [
        f"SELECT substr({name}, ?1, ?2) FROM {table} WHERE +{name} > ?3 AND +{name} < ?3 || char(127)"
        for table, name in (("events", "id"), ("redactions", "target_id"))
    ]
    rows = db.execute(" UNION ".join(queries) + " ORDER BY 1", (len(prefix) + 1, length, prefix))
    return [suffix for (suffix,) in rows]


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
