"""Memories: what was kept beyond conversations, as the log leaves it, and the events that made it so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.events import MemoryKind
from memlog.projector.sqlite import Connection
from memlog.query.hits import LinePosition
from memlog.query.provenance import EVENT_COLUMNS, Stored, event_at


class Memory(msgspec.Struct, kw_only=True):
    """A memory that stands.

    importance: from 0 to 1, as it was given.
    salience: from 0 to 1, as events leave it: 1 when first saved, or what an update set, times later decays.
    access_count, last_accessed: how often it was given to an agent, and when last.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    created_at: when it was first saved since it was last deleted. updated_at: when what it says changed.
    archived_at: None where it is searched.
    event_id, position: of the event whose content stands here.
    """

    memory_id: str
    title: str
    content: str
    category: str
    kind: MemoryKind
    importance: float
    salience: float
    access_count: int
    last_accessed: str | None
    source: str
    topic: str | None
    chat: str | None
    tags: list[str]
    created_at: str
    updated_at: str
    archived_at: str | None
    event_id: str
    position: LinePosition


_MEMORIES = (
    "SELECT m.memory_id, m.title, m.content, m.category, m.kind, m.importance, m.salience, m.access_count,"
    " m.last_accessed, m.source, m.topic, m.chat_id, m.tags, m.created_at, m.updated_at, m.archived_at,"
    " m.event_id, e.stream, e.segment, e.offset, e.line"
    " FROM memories m JOIN events e ON e.stream = m.stream AND e.id = m.event_id"
)


def memory(db: Connection, memory_id: str) -> Memory | None:
    """The memory of this id; None where none stands."""
    row = db.execute(f"{_MEMORIES} WHERE m.memory_id = ?", (memory_id,)).fetchone()
    return None if row is None else _memory_of(row)


def memories(
    db: Connection,
    *,
    category: str | None = None,
    kind: MemoryKind | None = None,
    chat: str | None = None,
    topic: str | None = None,
    tag: str | None = None,
    min_salience: float = 0.0,
    archived: bool = False,
    limit: int | None = None,
) -> list[Memory]:
    """The memories that are all that is asked for: by falling salience, the last changed first, by id.

    chat: `<channel>:<chat_id>`.
    archived: those that are archived, in the place of those that are not.
    """
    conditions: list[tuple[str, Any]] = [
        ("m.category = ?", category),
        ("m.kind = ?", kind),
        ("m.chat_id = ?", chat),
        ("m.topic = ?", topic),
        ("EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)", tag),
        ("m.salience >= ?", min_salience),
        ("(m.archived_at IS NOT NULL) = ?", archived),
    ]
    asked = [(condition, value) for condition, value in conditions if value is not None]
    rows = db.execute(
        f"{_MEMORIES} WHERE {' AND '.join(condition for condition, _ in asked)}"
        " ORDER BY m.salience DESC, m.updated_at DESC, m.memory_id LIMIT ?",
        (*(value for _, value in asked), -1 if limit is None else limit),
    )
    return [_memory_of(row) for row in rows]


def history(db: Connection, log: Path, memory_id: str) -> list[Stored]:
    """The events that name a memory, in the one order of events, also where it no longer stands."""
    rows = db.execute(
        f"SELECT {EVENT_COLUMNS} FROM memory_events t"
        " JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
        " WHERE t.memory_id = ? ORDER BY e.ts, e.segment_no, e.offset",
        (memory_id,),
    ).fetchall()
    return [event_at(log, row) for row in rows]


def unknown(db: Connection, memory_ids: Sequence[str]) -> list[str]:
    """Those of `memory_ids` that no memory has, once each, in their order."""
    rows = db.execute(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT memory_id FROM memories) ORDER BY key",
        (msgspec.json.encode(memory_ids).decode(),),
    )
    return list(dict.fromkeys(memory_id for (memory_id,) in rows))


def _memory_of(row: tuple[Any, ...]) -> Memory:
    *values, stream, segment, offset, line = row
    members = dict(zip(Memory.__struct_fields__, values, strict=False))
    members["tags"] = msgspec.json.decode(members["tags"], type=list[str])
    return Memory(**members, position=LinePosition(stream, segment, offset, line))
