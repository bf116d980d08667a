"""Memories, as the log leaves them, and the events that touched each."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.event_fields import MemoryKind
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.facts.topic_keys import compared, same_key, teach_topics
from memlog.query.filters import in_any_form, of_categories
from memlog.query.provenance import EVENT_COLUMNS, StoredEvent, event_at
from memlog.query.relevance import age_in_days, freshness, relevance
from memlog.query.rows import POSITION, all_of, record


class Memory(msgspec.Struct, kw_only=True):
    """A memory.

    importance: from 0 to 1, as given.
    salience: from 0 to 1: 1 when first saved, or what an update set, times later decays.
    age_days: from `updated_at` to today, in UTC.
    freshness: from 0 to 1, by its age and the curve of its category.
    relevance: importance × salience × freshness.
    access_count, last_accessed: how often it was given to an agent, and when last.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    created_at: when it was first saved since the last deletion. updated_at: when its content changed.
    archived_at: None while it is searched.
    event_id, position: of the event with its content.
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


_OF_TODAY = {"age_days": 0, "freshness": 0.0, "relevance": 0.0}
"""Members that depend on the day; no table has them."""

_COLUMNS = ", ".join(
    f"m.{'chat_id' if name == 'chat' else name}"
    for name in Memory.__struct_fields__
    if name not in (*_OF_TODAY, "position")
)


def select(db: Connection, rest: str, values: Sequence[Any]) -> Iterator[Memory]:
    """The memories `m` of a query that goes on with `rest`."""
    today = timestamps.today()
    rows = db.execute(
        f"SELECT {_COLUMNS}, {POSITION} FROM memories m"
        f" JOIN events e ON e.stream = m.stream AND e.id = m.event_id {rest}",
        values,
    )
    for row in rows:
        memory = record(Memory, row, **_OF_TODAY)
        memory.age_days = age_in_days(memory.updated_at, today)
        memory.freshness = freshness(memory.category, memory.age_days)
        memory.relevance = relevance(memory.importance, memory.salience, memory.category, memory.age_days)
        yield memory


def memory(db: Connection, memory_id: str) -> Memory | None:
    """The memory with this id, or None."""
    return next(select(db, "WHERE m.memory_id = ?", (memory_id,)), None)


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
    """The memories with all of these properties: by falling salience, the last changed first, by id.

    chat: `<channel>:<chat_id>`. archived: archived memories instead of the others.
    """
    if topic is not None:
        teach_topics(db)
    condition, values = all_of(
        ("m.kind = ?", kind),
        ("m.chat_id = ?", chat),
        ("topic_key(m.topic) = ?", None if topic is None else compared(same_key(topic))),
        (
            "EXISTS (SELECT 1 FROM json_each(m.tags) t JOIN json_each(?) g ON t.value = g.value)",
            in_any_form(tag),
        ),
        ("m.salience >= ?", min_salience),
        ("(m.archived_at IS NOT NULL) = ?", archived),
        *([] if category is None else [of_categories("m.category", [category])]),
    )
    order = "ORDER BY m.salience DESC, m.updated_at DESC, m.memory_id LIMIT ?"
    return list(select(db, f"WHERE {condition} {order}", [*values, -1 if limit is None else limit]))


def faded(db: Connection, *, categories: Iterable[str], at_most: float) -> list[Memory]:
    """The memories of `categories` with a relevance of `at_most` today, by relevance and id; no archived
    ones."""
    condition, values = of_categories("m.category", categories)
    unarchived = select(db, f"WHERE m.archived_at IS NULL AND {condition}", values)
    chosen = [memory for memory in unarchived if memory.relevance <= at_most]
    return sorted(chosen, key=lambda memory: (memory.relevance, memory.memory_id))


def history(db: Connection, log: Path, memory_id: str) -> list[StoredEvent]:
    """The events that touched a memory, also a deleted one, and those that took them back, by precedence."""
    rows = db.execute(
        "WITH touched AS (SELECT stream, event_id, precedence FROM memory_events WHERE memory_id = ?)"
        f" SELECT {EVENT_COLUMNS} FROM (SELECT * FROM touched UNION SELECT u.stream, u.id, u.precedence"
        " FROM touched JOIN undone_events u ON (u.stream, u.target_id) = (touched.stream, event_id)) t"
        " JOIN events e ON e.stream = t.stream AND e.id = t.event_id ORDER BY t.precedence",
        (memory_id,),
    ).fetchall()
    return [event_at(log, row) for row in rows]
