"""Looks up events: their positions in the log, and the events of memories and contexts."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar, get_origin

import msgspec

from memlog.eventlog.codec.upcast import parse_line_id
from memlog.eventlog.fields import list_fields
from memlog.eventlog.log.layout import CONVERSATIONS
from memlog.eventlog.log.streams import chat_of_stream, conversation_stream
from memlog.projector.sqlite import Connection, to_json_list

Key = tuple[str, str]
"""(stream, event id)."""


class LinePosition(msgspec.Struct, frozen=True):
    """The position of an event's line. line: from 1. offset: of its first byte."""

    stream: str
    segment: str
    offset: int
    line: int

    def __str__(self) -> str:
        """Return the position in readable form: `memory/2026-02-24.jsonl:12`."""
        return f"{self.stream}/{self.segment}:{self.line}"


def streams_containing_name(db: Connection, name: str) -> list[str]:
    """Return the streams, sorted, where `name` is an event id, a redacted id, or a bad line's position."""
    segment, offset = parse_line_id(name) or (None, None)
    rows = db.execute(
        "WITH streams AS (SELECT DISTINCT stream FROM checkpoints) SELECT stream FROM streams AS s"
        " WHERE EXISTS (SELECT 1 FROM events AS e WHERE e.stream = s.stream AND e.id = :name)"
        " OR EXISTS (SELECT 1 FROM redactions AS r WHERE r.stream = s.stream AND r.target_id = :name)"
        " OR EXISTS (SELECT 1 FROM quarantine AS q"
        "   WHERE q.stream = s.stream AND q.segment = :segment AND q.offset = :offset)"
        " ORDER BY stream",
        {"name": name, "segment": segment, "offset": offset},
    )
    return [stream for (stream,) in rows]


def streams_with_bad_lines(db: Connection) -> list[str]:
    """Return the streams, sorted, with lines that could not be projected."""
    return [stream for (stream,) in db.execute("SELECT DISTINCT stream FROM quarantine ORDER BY stream")]


def read_messages_of_stream(db: Connection, stream: str) -> Iterator[tuple[str, str, int, int, str, str]]:
    """Yield (id, segment, offset, line, event type, content) for each non-empty message in `stream`."""
    rows: Iterator[tuple[str, str, int, int, str, str]] = db.execute(
        "SELECT id, e.segment, e.offset, e.line, e.type, m.content"
        " FROM messages AS m JOIN events AS e USING (stream, id)"
        " WHERE stream = ? AND m.content <> ''",
        (stream,),
    )
    return rows


def memories_touched_by_events(db: Connection, events: Iterable[Key]) -> list[str]:
    """Return the ids of memories touched by any of these events, sorted."""
    rows = db.execute(
        "SELECT DISTINCT memory_id FROM memory_events WHERE (stream, event_id) IN"
        " (SELECT value ->> 0, value ->> 1 FROM json_each(?)) ORDER BY memory_id",
        (to_json_list(list(events)),),
    )
    return [memory_id for (memory_id,) in rows]


def changes_of_messages(db: Connection, messages: Iterable[Key]) -> set[Key]:
    """Return the keys of events that change any of these messages."""
    rows = db.execute(
        "SELECT stream, event_id FROM message_changes WHERE (stream, message_id) IN"
        " (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (to_json_list(list(messages)),),
    )
    return set(rows)


def events_touching_memories(db: Connection, memory_ids: Iterable[str]) -> set[Key]:
    """Return the keys of events that touch any of these memories."""
    rows = db.execute(
        "SELECT stream, event_id FROM memory_events WHERE memory_id IN (SELECT value FROM json_each(?))",
        (to_json_list(list(memory_ids)),),
    )
    return {(stream, event_id) for stream, event_id in rows}


def find_memory_and_those_merged_into_it(db: Connection, memory_id: str) -> list[str]:
    """Return `memory_id` and the ids merged into it, transitively, except in rejected or undone merges."""
    rows = db.execute(
        "WITH RECURSIVE sources(id) AS (VALUES (?) UNION SELECT v.value FROM sources s"
        " JOIN decisions d ON d.memory_id = s.id AND NOT d.is_undone"
        " JOIN closed_extractions c ON (c.stream, c.id) = (d.stream, d.extraction_id),"
        " json_each(d.memory_ids) v"
        " WHERE d.relation IN ('same', 'update', 'accepted') OR c.model IS NOT NULL)"
        " SELECT id FROM sources",
        (memory_id,),
    )
    return [name for (name,) in rows]


def memories_proposed_to_replace(db: Connection, memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of memories that models proposed as replacements for these, and that nobody accepted."""
    rows = db.execute(
        "SELECT d.proposal_id FROM merge_decisions d, json_each(d.memory_ids) v"
        " WHERE d.proposal_id IS NOT NULL AND v.value IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM decisions a"
        " WHERE a.relation = 'accepted' AND a.memory_id = d.proposal_id AND NOT a.is_undone)",
        (to_json_list(list(memory_ids)),),
    )
    return [name for (name,) in rows]


def undone_merge_events(db: Connection, memory_ids: Iterable[str]) -> set[Key]:
    """Return the keys of undone events that saved or updated a memory when merging any of these memories."""
    rows = db.execute(
        "SELECT m.stream, m.event_id FROM decisions d"
        " JOIN merge_events m USING (stream, extraction_id, number)"
        " WHERE d.is_undone AND m.type IN ('memory_saved', 'memory_updated') AND EXISTS"
        " (SELECT 1 FROM json_each(d.memory_ids) v JOIN json_each(?) g ON g.value = v.value)"
        " AND EXISTS (SELECT 1 FROM undone_events u WHERE (u.stream, u.target_id) = (m.stream, m.event_id))",
        (to_json_list(list(memory_ids)),),
    )
    return {(stream, event_id) for stream, event_id in rows}


def find_held_events_of_memory(db: Connection, memory_id: str) -> set[Key]:
    """Return the keys of a memory's events held back because their extraction is incomplete."""
    rows = db.execute("SELECT stream, id FROM held_events WHERE event ->> 'memory_id' = ?", (memory_id,))
    return {(stream, event_id) for stream, event_id in rows}


def contexts_containing_memories(db: Connection, memory_ids: Iterable[str]) -> set[Key]:
    """Return the `context_given` events of contexts that contained any of these memories."""
    return _contexts_naming_any(db, [("", memory_id) for memory_id in memory_ids])


def hashes_of_contexts_given(db: Connection, chat: str) -> set[str]:
    """Return the keyed hashes of both blocks of each context that a chat was given."""
    rows = db.execute("SELECT stable, turn FROM contexts_given WHERE chat_id = ?", (chat,))
    return {block for row in rows for block in row if block is not None}


def contexts_naming_events(db: Connection, events: Collection[Key]) -> set[Key]:
    """Return the `context_given` events of contexts built for or containing any of these events.

    A context also counts if it contained a memory that one of them saved or updated.
    """
    if db.execute("SELECT 1 FROM contexts_given LIMIT 1").fetchone() is None:
        return set()
    told = db.execute(
        "SELECT DISTINCT memory_id FROM memory_events t"
        " JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
        " WHERE e.type IN ('memory_saved', 'memory_updated')"
        " AND (t.stream, t.event_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (to_json_list([key for key in events if key[0] == "memory"]),),
    )
    memories = [("", memory_id) for (memory_id,) in told]
    return _contexts_naming_any(db, [*events, *_prompt_keys(events), *memories])


def _contexts_naming_any(db: Connection, things: Collection[Key]) -> set[Key]:
    rows = db.execute(
        "SELECT stream, event_id FROM named_in_contexts WHERE (thing_stream, thing_id) IN"
        " (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (to_json_list(things),),
    )
    return {(stream, event_id) for stream, event_id in rows}


def _prompt_keys(messages: Collection[Key]) -> Iterator[Key]:
    """Yield the keys by which contexts may name these messages, with or without the chat's stream."""
    chats = {stream: chat_of_stream(stream) for stream, _ in messages}
    for stream, event_id in messages:
        chat = chats[stream]
        if chat is not None:
            yield conversation_stream(*chat), event_id
        if stream.startswith(CONVERSATIONS):
            yield CONVERSATIONS, event_id


Sql = tuple[str, list[Any]]
"""An SQL condition and the values of its parameters."""

POSITION = "e.stream, e.segment, e.offset, e.line"
"""The columns of `events e` that make a `LinePosition`."""

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def join_sql_conditions(*conditions: tuple[str, Any]) -> Sql:
    """Join (SQL, value) conditions with AND, skipping None values; a list or tuple counts as several
    values."""
    given = [(sql, value) for sql, value in conditions if value is not None]
    values = (value if isinstance(value, list | tuple) else [value] for _, value in given)
    return " AND ".join(sql for sql, _ in given) or "1", [*chain.from_iterable(values)]


def make_struct_of_row(struct: type[_Struct], row: Sequence[Any], **members: Any) -> _Struct:  # noqa: ANN401
    """Build a struct from a row's columns, in field order, skipping fields given in `members`.

    Lists and dicts are decoded from JSON. A field `position` takes the last four columns, `POSITION`.
    """
    names, of_json = _list_field_names(struct)
    if "position" in names:
        members["position"] = LinePosition(*row[-4:])
        row = row[:-4]
    stored = dict(zip((name for name in names if name not in members), row, strict=False))
    for name in of_json & stored.keys():
        stored[name] = None if stored[name] is None else json.loads(stored[name])
    return struct(**stored, **members)


@cache
def _list_field_names(struct: type[msgspec.Struct]) -> tuple[tuple[str, ...], frozenset[str]]:
    of_json = frozenset(field.name for field in list_fields(struct) if get_origin(field.kind) in (list, dict))
    return struct.__struct_fields__, of_json
