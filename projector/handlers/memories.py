"""Memories: what they say, which of them stand, how often they were used, how far they have faded.

A memory's row is made anew from `versions`, `tombstones`, `decays` and `memory_events` whenever one of them
changes, so that it does not matter in which order events arrive.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import attrgetter, mul
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog.categories import rate_of, rates_by_category, read_as
from memlog.eventlog.content_ids import derived_memory_id
from memlog.eventlog.events import (
    MemoryAccessed,
    MemoryArchived,
    MemoryDeleted,
    MemorySaved,
    MemoryUpdated,
    SalienceDecayed,
)
from memlog.projector.handlers.accepted import Placed, as_json, buried, bury
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import Row, delete, insert, update, upsert
from memlog.projector.sqlite import Connection, required_row
from memlog.projector.text.analyzer import memory_label

STREAM = "memory"
_TITLE_LENGTH = 80
_FIELDS = ("content", "title", "category", "kind", "importance", "source", "topic", "chat_id", "tags")


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Save, change, archive, delete, count and fade memories."""
    touched = dict.fromkeys(memory_id for placed in events for memory_id in _record(db, placed))
    decays = _Decays(db)
    for memory_id in touched:
        _refresh(db, memory_id, decays, sizes)
    if any(isinstance(placed.event, SalienceDecayed) for placed in events):
        _fade_all(db, decays)


def _record(db: Connection, placed: Placed) -> Iterable[str]:
    """Keep what `placed` says, and return the memories that it touches."""
    event = placed.event
    match event:
        case MemorySaved():
            memory_ids = [event.memory_id or derived_memory_id(event.chat_id, event.content)]
            _set(db, memory_ids[0], placed, saved=_said(event))
        case MemoryUpdated():
            memory_ids = [event.memory_id]
            given = _said(event) | {"salience": event.salience}
            _set(db, event.memory_id, placed, **{k: v for k, v in given.items() if v is not None})
        case MemoryArchived():
            memory_ids = [event.memory_id]
            _set(db, event.memory_id, placed, archived=True)
        case MemoryDeleted():
            memory_ids = [event.memory_id]
            _delete(db, event.memory_id, placed)
        case MemoryAccessed():
            memory_ids = list(dict.fromkeys(event.memory_ids))
        case SalienceDecayed():
            memory_ids = []
            row = (placed.stream, placed.id, as_json(rates_by_category(event.rates)), placed.precedence)
            insert(db, "decays", ("stream", "id", "rates", "precedence"), [row])
    insert(
        db,
        "memory_events",
        ("memory_id", "stream", "event_id", "precedence"),
        [(memory_id, placed.stream, placed.id, placed.precedence) for memory_id in memory_ids],
    )
    return memory_ids


def _said(event: MemorySaved | MemoryUpdated) -> dict[str, Any]:
    """What the event says of a memory, under the category that it means."""
    said = {name: getattr(event, name) for name in _FIELDS}
    return said | {"category": event.category and read_as(event.category)}


def _set(db: Connection, memory_id: str, placed: Placed, **fields: Any) -> None:  # noqa: ANN401
    """Keep what `placed` sets, where nothing newer does, and the memory was not deleted since."""
    if placed.precedence < buried(db, placed.stream, memory_id):
        return
    for field, value in fields.items():
        row = {
            "stream": placed.stream,
            "memory_id": memory_id,
            "field": field,
            "value": as_json(value),
            "event_id": placed.id,
            "ts": placed.ts,
            "precedence": placed.precedence,
        }
        upsert(db, "versions", ("stream", "memory_id", "field"), row, newer_by="precedence")


def _delete(db: Connection, memory_id: str, placed: Placed) -> None:
    bury(db, memory_id, placed)
    older = (placed.stream, memory_id, placed.precedence)
    delete(db, "versions", "stream = ? AND memory_id = ? AND precedence < ?", older)


class _Version(NamedTuple):
    """precedence, ts: of the event that set the value; what is compared, and what is shown."""

    precedence: str
    ts: str
    event_id: str
    value: Any


class _Decays:
    """All decays, in their order, as what they make of a salience."""

    def __init__(self, db: Connection) -> None:
        rows = db.execute("SELECT precedence, rates FROM decays ORDER BY precedence, stream, id").fetchall()
        self._precedences: list[str] = [precedence for precedence, _ in rows]
        self._rates: list[dict[str, float]] = [msgspec.json.decode(rates) for _, rates in rows]
        self._known: dict[tuple[float, str, int], float] = {}

    def applied(self, salience: float, since: str, category: str) -> float:
        """What a salience that was set with the precedence `since` has become by all that is newer."""
        start = bisect_right(self._precedences, since)
        known = (salience, category, start)
        if known not in self._known:
            factors = (rate_of(rates, category) for rates in self._rates[start:])
            self._known[known] = reduce(mul, factors, salience)
        return self._known[known]


def _refresh(db: Connection, memory_id: str, decays: _Decays, sizes: ChunkSizes) -> None:
    """Make the row of a memory, and its passages, what its versions say."""
    before = _cut_from(db, memory_id)
    versions = _versions(db, memory_id)
    row = _row(db, memory_id, versions, decays) if "saved" in versions else None
    if row is not None:
        upsert(db, "memories", ("memory_id",), row)
        if _cut_from(db, memory_id) == before:
            return
    if before is not None:
        index.remove(db, index.MEMORY, "memory_id = ?", (memory_id,))
    if row is None:
        delete(db, "memories", "memory_id = ?", (memory_id,))
    elif row["archived_at"] is None:
        index.add(db, "memory_id", [_whole(row)], sizes)


def _cut_from(db: Connection, memory_id: str) -> tuple[Any, ...] | None:
    """What the passages of a memory are made from; None where it does not stand."""
    row: tuple[Any, ...] | None = db.execute(
        "SELECT content, title, source, chat_id, created_at, updated_at, archived_at IS NULL FROM memories"
        " WHERE memory_id = ?",
        (memory_id,),
    ).fetchone()
    return row


def _versions(db: Connection, memory_id: str) -> dict[str, _Version]:
    rows = db.execute(
        "SELECT field, precedence, ts, event_id, value FROM versions WHERE stream = ? AND memory_id = ?",
        (STREAM, memory_id),
    )
    return {
        field: _Version(precedence, ts, event_id, msgspec.json.decode(value))
        for field, precedence, ts, event_id, value in rows
    }


def _row(db: Connection, memory_id: str, versions: dict[str, _Version], decays: _Decays) -> Row:
    """The row of a memory that was saved: what is newer than the save changes a field of it."""
    saved = versions["saved"]
    newer = {name: version for name, version in versions.items() if version.precedence > saved.precedence}
    changes = {name: newer[name] for name in _FIELDS if name in newer}
    said: Row = saved.value | {name: version.value for name, version in changes.items()}
    since = buried(db, STREAM, memory_id)
    created_at, first = _first_saved(db, memory_id, since)
    access_count, last_accessed = _accessed(db, memory_id, since)
    set_salience = versions.get("salience", _Version(first, "", "", 1.0))
    return said | {
        "memory_id": memory_id,
        "stream": STREAM,
        "event_id": changes.get("content", saved).event_id,
        "title": said["title"] or said["content"][:_TITLE_LENGTH],
        "salience": decays.applied(set_salience.value, set_salience.precedence, said["category"]),
        "salience_set": set_salience.value,
        "salience_precedence": set_salience.precedence,
        "access_count": access_count,
        "last_accessed": last_accessed,
        "topic": said["topic"] or None,
        "chat_id": said["chat_id"] or None,
        "tags": as_json(said["tags"] or []),
        "created_at": created_at,
        "updated_at": max((saved, *changes.values()), key=attrgetter("precedence")).ts,
        "archived_at": newer["archived"].ts if "archived" in newer else None,
    }


_TOUCHES = (
    " FROM memory_events t JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
    " WHERE t.memory_id = ? AND t.precedence > ? AND e.type = ?"
)


def _first_saved(db: Connection, memory_id: str, since: str) -> tuple[str, str]:
    """When a memory was first saved after `since`, and the precedence of that event."""
    saved = db.execute(
        f"SELECT e.ts, t.precedence {_TOUCHES} ORDER BY t.precedence LIMIT 1",
        (memory_id, since, "memory_saved"),
    )
    ts, precedence = required_row(saved)
    return ts, precedence


def _accessed(db: Connection, memory_id: str, since: str) -> tuple[int, str | None]:
    """How often a memory was accessed after `since`, and when last."""
    count, last = db.execute(
        f"SELECT count(*), max(e.ts) {_TOUCHES}", (memory_id, since, "memory_accessed")
    ).fetchone()
    return count, last


def _whole(row: Row) -> Whole:
    label = memory_label(row["title"], row["content"])
    return Whole(
        stream=STREAM,
        id=row["memory_id"],
        source=row["source"],
        chat_id=row["chat_id"],
        label=label,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        content=row["content"],
    )


def _fade_all(db: Connection, decays: _Decays) -> None:
    rows = db.execute(
        "SELECT memory_id, category, salience_set, salience_precedence FROM memories"
    ).fetchall()
    faded = (
        (decays.applied(salience, precedence, category), memory_id)
        for memory_id, category, salience, precedence in rows
    )
    update(db, "memories", "salience", "memory_id = ?", faded)
