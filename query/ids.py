"""What the read model knows of ids, and of events that it does not show or show whole."""

from collections.abc import Sequence

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection


def unknown(db: Connection, ids: Sequence[str], known: str) -> list[str]:
    """Those of `ids` that do not stand, once each, in their order.

    known: a query for the ids that do.
    """
    rows = db.execute(
        f"SELECT value FROM json_each(?) WHERE value NOT IN ({known}) ORDER BY key",
        (as_list(ids),),
    )
    return list(dict.fromkeys(each for (each,) in rows))


def id_holders(db: Connection, stream: str, ids: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Segment, offset and length of the line of each event of `stream` whose id is one of `ids`."""
    rows = db.execute(
        "SELECT id, segment, offset, length FROM events"
        " WHERE stream = ? AND id IN (SELECT value FROM json_each(?))",
        (stream, as_list(ids)),
    )
    return {event_id: (segment, offset, length) for event_id, segment, offset, length in rows}


def forgotten_ids(db: Connection, stream: str, ids: Sequence[str]) -> set[str]:
    """Those of `ids` that were forgotten in `stream`."""
    rows = db.execute(
        "SELECT target_id FROM redactions WHERE stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (stream, as_list(ids)),
    )
    return {event_id for (event_id,) in rows}


class Conflict(msgspec.Struct, frozen=True):
    """A line whose id names an earlier event of its stream, which says something else; and that event."""

    stream: str
    id: str
    segment: str
    offset: int
    holder_segment: str
    holder_offset: int


def conflicts(db: Connection, limit: int) -> list[Conflict]:
    """At most `limit` of the lines whose id names an earlier event, which no read shows; the newest first."""
    rows = db.execute(
        "SELECT c.stream, c.id, c.segment, c.offset, e.segment, e.offset FROM conflicts c"
        " JOIN events e ON e.stream = c.stream AND e.id = c.id"
        " ORDER BY c.segment DESC, c.stream, c.offset DESC LIMIT ?",
        (limit,),
    )
    return [Conflict(*row) for row in rows]


class PlainTexts(msgspec.Struct, frozen=True):
    """Events that are indexed without a look at their form, and why.

    reason: see `memlog.projector.limits`. place: of one of them, `conversations/c_1/2026-02-24.jsonl:1042`.
    """

    reason: str
    count: int
    place: str


def plain_texts(db: Connection) -> list[PlainTexts]:
    """How many events there are of each reason."""
    rows = db.execute(
        "SELECT reason, count(*), min(stream || '/' || segment || ':' || offset)"
        " FROM plain_texts JOIN events USING (stream, id) GROUP BY reason ORDER BY reason"
    )
    return [PlainTexts(*row) for row in rows]
