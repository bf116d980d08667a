"""Finds the lines of the log behind ids, and the lines that could not be projected."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import BadInput, LineFault, NotFound
from memlog.eventlog.log.quarantine import HINTS, BadLine
from memlog.eventlog.log.reader import read_line_at
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.conversations import Surroundings, surroundings_of_event
from memlog.query.event_index import LinePosition


class StoredEvent(msgspec.Struct, omit_defaults=True):
    """An event in the log. raw: its line, without the newline.

    around: a message's neighbours; None for other events, or if not requested.
    """

    id: str
    type: str
    ts: str
    at: str | None
    raw: str
    position: LinePosition
    around: Surroundings | None = None


class QuarantinedLine(msgspec.Struct):
    """A line that could not be projected. bytes: its length."""

    stream: str
    segment: str
    offset: int
    reason: str
    bytes: int


def find_event(
    db: Connection, log: Path, name: str, stream: str | None = None, *, neighbours: int = 0
) -> StoredEvent | None:
    """Return the event with the id `name`, or with the content of the memory, fact or document `name`.

    Facts are named `topic_key/rank`, documents `source/file`. None if there is no such event.

    neighbours: for a message, the most messages to return on either side.

    Raises:
        BadInput: several streams have such an event, and `stream` is not given.
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
    by_stream = {row[0]: row for row in reversed(rows) if stream is None or row[0] == stream}
    if len(by_stream) > 1:
        streams = ", ".join(sorted(by_stream))
        raise BadInput(f"{name} is in several streams: {streams}", hint="choose one: stream=STREAM")
    event = next((read_event_of_row(log, row) for row in by_stream.values()), None)
    if event is not None and neighbours:
        event.around = surroundings_of_event(db, (event.position.stream, event.id), neighbours)
    return event


EVENT_COLUMNS = "e.stream, e.id, e.type, e.ts, e.at, e.segment, e.offset, e.line, e.length"
"""The columns of `events e` for `read_event_of_row`."""


def read_event_of_row(log: Path, row: tuple[Any, ...]) -> StoredEvent:
    """Read the event for a row of `EVENT_COLUMNS`, with its line from the log."""
    stream, event_id, kind, ts, at, segment, offset, line, length = row
    raw = read_line_at(log, stream, segment, offset, length)
    return StoredEvent(
        event_id, kind, ts, at, raw.decode(errors="replace"), LinePosition(stream, segment, offset, line)
    )


def stream_of_event(db: Connection, event_id: str) -> str:
    """Return the stream that has, or had, an event with this id.

    Raises:
        NotFound: no stream has one. BadInput: several have.
    """
    rows = db.execute(
        "SELECT stream FROM events WHERE id = ?1 UNION SELECT stream FROM redactions WHERE target_id = ?1",
        (event_id,),
    )
    streams = [stream for (stream,) in rows]
    if not streams:
        raise NotFound(
            f"no event has the id {event_id}",
            hint="check the id; if the event has not arrived yet, specify its stream",
        )
    if len(streams) > 1:
        raise BadInput(
            f"{event_id} is in several streams: {', '.join(streams)}", hint="choose one: stream=STREAM"
        )
    return str(streams[0])


def quarantined_lines(db: Connection) -> list[QuarantinedLine]:
    """Return the lines that could not be projected, by position."""
    rows = db.execute(
        "SELECT stream, segment, offset, reason, length FROM quarantine ORDER BY stream, segment, offset"
    )
    return [QuarantinedLine(*row) for row in rows]


def explain_quarantined_line(log: Path, line: QuarantinedLine) -> str:
    """Explain why a line was quarantined, in more detail than the stored reason, and what to do about it."""
    name = SegmentName.parse(line.segment)
    reason: LineFault = line.reason  # type: ignore[assignment] # the table holds nothing else
    detail = ""
    if name is not None and reason != "too_long":
        try:
            decode_line(
                read_line_at(log, line.stream, line.segment, line.offset, line.bytes),
                Place(line.stream, name, line.offset),
            )
        except BadLine as bad:
            detail = bad.detail
    return "; ".join(part for part in (detail, HINTS[reason]) if part)


_COLUMNS = {"memories": "memory_id", "daily_events": "id"}


def unknown_ids(db: Connection, ids: Sequence[str], table: Literal["memories", "daily_events"]) -> list[str]:
    """Return the `ids` missing from `table`, without duplicates, in the order given."""
    known = f"SELECT {_COLUMNS[table]} FROM {table}"
    rows = db.execute(
        f"SELECT value FROM json_each(?) WHERE value NOT IN ({known}) ORDER BY key", (to_json_list(ids),)
    )
    return list(dict.fromkeys(name for (name,) in rows))


def line_places_of_ids(db: Connection, stream: str, ids: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Return the (segment, offset, length) of each known id's line in `stream`, keyed by id."""
    rows = db.execute(
        "SELECT id, segment, offset, length FROM events"
        " WHERE stream = ? AND id IN (SELECT value FROM json_each(?))",
        (stream, to_json_list(ids)),
    )
    return {event_id: (segment, offset, length) for event_id, segment, offset, length in rows}


def forgotten_ids(db: Connection, stream: str, ids: Sequence[str]) -> set[str]:
    """Return the `ids` that were forgotten in `stream`."""
    rows = db.execute(
        "SELECT target_id FROM redactions WHERE stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (stream, to_json_list(ids)),
    )
    return {event_id for (event_id,) in rows}


def undone_ids(db: Connection, stream: str, ids: Sequence[str]) -> set[str]:
    """Return the `ids` in `stream` that do not count because their import was undone."""
    rows = db.execute(
        "SELECT target_id FROM hidden_events"
        " WHERE target_stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (stream, to_json_list(ids)),
    )
    return {event_id for (event_id,) in rows}


class IdInUse(NamedTuple):
    """An id and where its event is. length: of the line, in bytes."""

    id: str
    stream: str
    segment: str
    offset: int
    length: int


def find_ids_with_prefix(db: Connection, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield (id, stream) of each event whose id starts with `prefix`. Scans all ids."""
    rows: Iterator[tuple[str, str]] = db.execute(
        "SELECT id, stream FROM events WHERE +id > ?1 AND +id < ?1 || char(127)", (prefix,)
    )
    return rows


def ids_in_use(
    db: Connection, keys: Sequence[tuple[str, str]], ids: Sequence[str]
) -> tuple[list[IdInUse], set[str]]:
    """Return the `keys`, pairs of (id, stream), that have an event, and the `ids` that were forgotten."""
    # CROSS JOIN fixes the order: each key is found by the index.
    known = db.execute(
        "SELECT e.id, e.stream, e.segment, e.offset, e.length FROM json_each(?) AS k CROSS JOIN events AS e"
        " WHERE e.id = k.value ->> 0 AND e.stream = k.value ->> 1",
        (to_json_list(keys),),
    )
    forgotten = db.execute(
        "SELECT target_id FROM redactions WHERE +target_id IN (SELECT value FROM json_each(?))",
        (to_json_list(ids),),
    )
    return [IdInUse(*row) for row in known], {name for (name,) in forgotten}


def edits_of_messages(
    db: Connection, messages: Sequence[tuple[str, str]]
) -> dict[str, list[tuple[str, str]]]:
    """Return each edit's (event id, content), oldest first, keyed by message id. messages: (stream, id)."""
    rows = db.execute(
        "SELECT message_id, event_id, content FROM message_changes WHERE content IS NOT NULL"
        " AND (stream, message_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
        " ORDER BY precedence",
        (to_json_list(messages),),
    )
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for message_id, event_id, content in rows:
        found[message_id].append((event_id, content))
    return found


def ids_below_names(
    db: Connection, streams: Sequence[str], names: Sequence[str]
) -> tuple[list[IdInUse], list[tuple[str, str]]]:
    """Return the ids in `streams` that start with one of `names` and a slash.

    Forgotten ids are returned separately, each with the time of its redaction.
    """
    below = "> n.value || '/' AND {0} < n.value || '0'"  # the character after the slash
    # CROSS JOIN fixes the order: each name is a range of the index.
    source = "FROM json_each(?) AS s CROSS JOIN json_each(?) AS n CROSS JOIN"
    given = (to_json_list(streams), to_json_list(names))
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


def find_id_suffixes(db: Connection, prefix: str, length: int) -> list[str]:
    """Return the next `length` characters of all ids that start with `prefix`, including redacted ones."""
    queries = [
        f"SELECT substr({name}, ?1, ?2) FROM {table} WHERE +{name} > ?3 AND +{name} < ?3 || char(127)"
        for table, name in (("events", "id"), ("redactions", "target_id"))
    ]
    rows = db.execute(" UNION ".join(queries) + " ORDER BY 1", (len(prefix) + 1, length, prefix))
    return [suffix for (suffix,) in rows]


class Conflict(msgspec.Struct, frozen=True):
    """A line that reuses the id of an earlier event in its stream, the holder, with different content."""

    stream: str
    id: str
    segment: str
    offset: int
    holder_segment: str
    holder_offset: int


def conflicting_lines(db: Connection, limit: int) -> list[Conflict]:
    """Return up to `limit` conflicting lines, newest first. No other read shows them."""
    rows = db.execute(
        "SELECT c.stream, c.id, c.segment, c.offset, e.segment, e.offset FROM conflicts c"
        " JOIN events e ON e.stream = c.stream AND e.id = c.id"
        " ORDER BY c.segment DESC, c.stream, c.offset DESC LIMIT ?",
        (limit,),
    )
    return [Conflict(*row) for row in rows]


class PlainTexts(msgspec.Struct, frozen=True):
    """The number of events indexed as plain text for one reason.

    reason: see `memlog.projector.limits`.
    place: the position of one of them: `conversations/c_1/2026-02-24.jsonl:1042`.
    """

    reason: str
    count: int
    place: str


def count_plain_texts(db: Connection) -> list[PlainTexts]:
    """Count the events indexed as plain text, by reason."""
    rows = db.execute(
        "SELECT reason, count(*), min(stream || '/' || segment || ':' || offset)"
        " FROM plain_texts JOIN events USING (stream, id) GROUP BY reason ORDER BY reason"
    )
    return [PlainTexts(*row) for row in rows]
