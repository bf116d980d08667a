"""Memories: what was kept beyond conversations, as the log leaves it, and the events that made it so."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.events import MemoryKind
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query import ids
from memlog.query.event_index import LinePosition
from memlog.query.filters import of_categories
from memlog.query.provenance import EVENT_COLUMNS, StoredEvent, event_at
from memlog.query.relevance import age_in_days, freshness, relevance


class Memory(msgspec.Struct, kw_only=True):
    """A memory that stands.

    importance: from 0 to 1, as it was given.
    salience: from 0 to 1, as events leave it: 1 when first saved, or what an update set, times later decays.
    age_days: how many days today is after `updated_at`, in UTC.
    freshness: from 0 to 1, what that age leaves, by the curve of its category.
    relevance: importance × salience × freshness.
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
    age_days: int
    freshness: float
    relevance: float
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


_COLUMNS = {"chat": "chat_id"}
"""Columns of another name than their member."""

_OF_TODAY = ("age_days", "freshness", "relevance")
"""What a memory is on the day on which it is asked for; no table has it."""

_STORED = [name for name in Memory.__struct_fields__ if name not in (*_OF_TODAY, "position")]
_MEMORIES = (
    f"SELECT {', '.join(f'm.{_COLUMNS.get(name, name)}' for name in _STORED)},"
    " e.stream, e.segment, e.offset, e.line"
    " FROM memories m JOIN events e ON e.stream = m.stream AND e.id = m.event_id"
)


def memory(db: Connection, memory_id: str) -> Memory | None:
    """The memory of this id; None where none stands."""
    row = db.execute(f"{_MEMORIES} WHERE m.memory_id = ?", (memory_id,)).fetchone()
    return None if row is None else _memory_of(row, timestamps.today())


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
        ("m.kind = ?", kind),
        ("m.chat_id = ?", chat),
        ("m.topic = ?", topic),
        ("EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)", tag),
        ("m.salience >= ?", min_salience),
        ("(m.archived_at IS NOT NULL) = ?", archived),
    ]
    asked = [(condition, [value]) for condition, value in conditions if value is not None]
    if category is not None:
        asked.append(of_categories("m.category", [category]))
    rows = db.execute(
        f"{_MEMORIES} WHERE {' AND '.join(condition for condition, _ in asked)}"
        " ORDER BY m.salience DESC, m.updated_at DESC, m.memory_id LIMIT ?",
        (*(value for _, values in asked for value in values), -1 if limit is None else limit),
    )
    today = timestamps.today()
    return [_memory_of(row, today) for row in rows]


def faded(db: Connection, *, categories: Iterable[str], at_most: float) -> list[Memory]:
    """The memories of `categories`, but archived ones, whose relevance is `at_most` today: the least first,
    then by id."""
    condition, values = of_categories("m.category", categories)
    rows = db.execute(
        "SELECT m.memory_id, m.importance, m.salience, m.category, m.updated_at FROM memories m"
        f" WHERE m.archived_at IS NULL AND {condition}",
        values,
    )
    today = timestamps.today()
    relevances = {
        memory_id: relevance(importance, salience, category, age_in_days(updated_at, today))
        for memory_id, importance, salience, category, updated_at in rows
    }
    chosen = [memory_id for memory_id, score in relevances.items() if score <= at_most]
    found = db.execute(
        f"{_MEMORIES} WHERE m.memory_id IN (SELECT value FROM json_each(?))",
        (as_list(chosen),),
    )
    return sorted(
        (_memory_of(row, today) for row in found), key=lambda each: (each.relevance, each.memory_id)
    )


def history(db: Connection, log: Path, memory_id: str) -> list[StoredEvent]:
    """The events that name a memory, also a deleted one: of two changes the one that holds comes later."""
    rows = db.execute(
        f"SELECT {EVENT_COLUMNS} FROM memory_events t"
        " JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
        " WHERE t.memory_id = ? ORDER BY t.precedence",
        (memory_id,),
    ).fetchall()
    return [event_at(log, row) for row in rows]


def unknown(db: Connection, memory_ids: Sequence[str]) -> list[str]:
    """Those of `memory_ids` that no memory has, once each, in their order."""
    return ids.unknown(db, memory_ids, "SELECT memory_id FROM memories")


def _memory_of(row: tuple[Any, ...], today: str) -> Memory:
    *values, stream, segment, offset, line = row
    stored = dict(zip(_STORED, values, strict=True))
    stored["tags"] = msgspec.json.decode(stored["tags"], type=list[str])
    importance, salience, category = stored["importance"], stored["salience"], stored["category"]
    age_days = age_in_days(stored["updated_at"], today)
    return Memory(
        **stored,
        age_days=age_days,
        freshness=freshness(category, age_days),
        relevance=relevance(importance, salience, category, age_days),
        position=LinePosition(stream, segment, offset, line),
    )
