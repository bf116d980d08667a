"""Memories: their content, existence, use and salience.

A memory's row is recomputed from `versions`, `tombstones`, `decays`, `memory_events` and `undone_events`
whenever one of them changes, so the order in which events arrive does not matter.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import attrgetter, mul
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog import events as ev
from memlog.eventlog.categories import find_decay_rate, resolve_alias, resolve_rate_aliases
from memlog.eventlog.codec.content_ids import derive_memory_id
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import SourceText
from memlog.projector.sqlite import (
    Connection,
    Row,
    delete_rows,
    fetch_required_row,
    insert_rows,
    to_json_list,
    update_rows,
    upsert_row,
)
from memlog.projector.subjects.accepted import (
    Handlers,
    PositionedEvent,
    encode_as_json,
    find_highest_tombstone_precedence,
)
from memlog.projector.text.analyzer import choose_memory_label
from memlog.projector.text.phrases import reasons_to_always_tell_memory

STREAM = "memory"
TITLE_LENGTH = 80
_FIELDS = ("content", "title", "category", "kind", "importance", "source", "topic", "chat_id", "tags")

_TOUCH_COLUMNS = "memory_id, stream, event_id, precedence, extraction_id, chat_id, accesses, reads"

_TOUCHES = (
    "FROM memory_events t JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
    " WHERE t.memory_id = ? AND t.precedence > ? AND e.type = ? AND NOT EXISTS"
    " (SELECT 1 FROM undone_events u WHERE (u.stream, u.target_id) = (t.stream, t.event_id))"
)


def fold_memories(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Save, update, archive and delete memories, count accesses, apply decays, and undo changes."""
    touched = dict.fromkeys(memory_id for placed in events for memory_id in _record_change(db, placed))
    touched |= dict.fromkeys(_find_memories_with_undone_changes(db, events))
    decays = _Decays(db)
    for memory_id in touched:
        _refresh_memory(db, memory_id, decays, sizes)
    if any(isinstance(placed.event, ev.SalienceDecayed) for placed in events):
        recompute_salience(db, None)


def recompute_salience(db: Connection, memory_ids: Collection[str] | None) -> None:
    """Recompute the salience of some memories, or of all if `memory_ids` is None."""
    if memory_ids is not None and not memory_ids:
        return
    decays = _Decays(db)
    some = "" if memory_ids is None else " WHERE memory_id IN (SELECT value FROM json_each(?))"
    rows = db.execute(
        f"SELECT memory_id, salience_set, salience_precedence, category FROM memories{some}",
        () if memory_ids is None else (to_json_list(sorted(memory_ids)),),
    )
    faded = [(decays.apply_decays(*row), row[0]) for row in rows.fetchall()]
    update_rows(db, "memories", "salience", "memory_id = ?", faded)


def _record_change(db: Connection, placed: PositionedEvent) -> Iterable[str]:
    """Record what an event changes in memories; return their ids."""
    event = placed.event
    match event:
        case ev.MemorySaved():
            memory_ids = [event.memory_id or derive_memory_id(event.chat_id, event.content)]
            _record_fields(db, memory_ids[0], placed, saved=_list_given_fields(event))
        case ev.MemoryUpdated():
            memory_ids = [event.memory_id]
            given = _list_given_fields(event) | {"salience": event.salience}
            _record_fields(db, event.memory_id, placed, **{k: v for k, v in given.items() if v is not None})
        case ev.MemoryArchived():
            memory_ids = [event.memory_id]
            _record_fields(db, event.memory_id, placed, archived=True)
        case ev.MemoryDeleted():
            memory_ids = [event.memory_id]
            placed.write_tombstone(db, event.memory_id)
            older = (placed.stream, event.memory_id, placed.precedence)
            delete_rows(db, "versions", "stream = ? AND memory_id = ? AND precedence < ?", older)
        case ev.MemoryAccessed():
            memory_ids = list(dict.fromkeys(event.memory_ids))
            if event.by == "save":
                for memory_id in memory_ids:
                    _record_fields(db, memory_id, placed, salience=1.0, archived=False)
        case ev.SalienceDecayed():
            memory_ids = []
            row = (
                placed.stream,
                placed.id,
                encode_as_json(resolve_rate_aliases(event.rates)),
                placed.precedence,
            )
            insert_rows(db, "decays", "stream, id, rates, precedence", [row])
        case ev.ChangeUndone():
            memory_ids = []
            rows = [(placed.stream, each, placed.id, placed.precedence) for each in {*event.event_ids}]
            insert_rows(db, "undone_events", "stream, target_id, id, precedence", rows)
    extraction = getattr(event, "extraction", None)
    origin = (None, None) if extraction is None else (extraction.id, extraction.chat_id)
    accesses = event.times if isinstance(event, ev.MemoryAccessed) else 0
    counted = (accesses, accesses if getattr(event, "by", "") == "read" else 0)
    of_event = (placed.stream, placed.id, placed.precedence, *origin, *counted)
    insert_rows(db, "memory_events", _TOUCH_COLUMNS, [(memory_id, *of_event) for memory_id in memory_ids])
    return memory_ids


def _find_memories_with_undone_changes(db: Connection, events: Sequence[PositionedEvent]) -> list[str]:
    """Return the memories with undone changes, in one query, since it scans all changes."""
    undone = {
        each
        for placed in events
        if isinstance(placed.event, ev.ChangeUndone)
        for each in placed.event.event_ids
    }
    if not undone:
        return []
    rows = db.execute(
        "SELECT DISTINCT memory_id FROM memory_events"
        " WHERE stream = ? AND event_id IN (SELECT value FROM json_each(?)) ORDER BY memory_id",
        (STREAM, to_json_list([*undone])),
    )
    return [memory_id for (memory_id,) in rows]


def _list_given_fields(event: ev.MemorySaved | ev.MemoryUpdated) -> dict[str, Any]:
    """Return an event's memory fields; None for those that it does not set."""
    fields = {name: getattr(event, name) for name in _FIELDS}
    return fields | {"category": event.category and resolve_alias(event.category)}


def _record_fields(db: Connection, memory_id: str, placed: PositionedEvent, **fields: Any) -> None:  # noqa: ANN401
    """Record the fields that an event sets, unless a newer event deleted the memory."""
    if placed.precedence < find_highest_tombstone_precedence(db, placed.stream, memory_id):
        return
    of_event = (placed.stream, memory_id, placed.id, placed.ts, placed.precedence)
    rows = [(*of_event, field, encode_as_json(value)) for field, value in fields.items()]
    insert_rows(db, "versions", "stream, memory_id, event_id, ts, precedence, field, value", rows)


class _Version(NamedTuple):
    """A value and the event that set it. The event's precedence is compared; its `ts` is shown."""

    precedence: str
    ts: str
    event_id: str
    value: Any


class _Decays:
    """All decays of salience, in order."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        rows = db.execute(
            "SELECT d.precedence, d.rates, substr(e.ts, 1, 10) FROM decays d"
            " JOIN events e ON e.stream = d.stream AND e.id = d.id ORDER BY d.precedence, d.stream, d.id"
        ).fetchall()
        self._precedences: list[str] = [precedence for precedence, *_ in rows]
        self._rates: list[dict[str, float]] = [msgspec.json.decode(rates) for _, rates, _ in rows]
        self._days: list[str] = [day for *_, day in rows]
        self._known: dict[tuple[float, str, int, frozenset[str]], float] = {}

    def apply_decays(self, memory_id: str, salience: float, since: str, category: str) -> float:
        """Return `salience`, set with the precedence `since`, after all decays with a higher precedence.

        Skips decays on days when the memory was one of the two best for a message.
        """
        start = bisect_right(self._precedences, since)
        days = self._db.execute("SELECT day FROM best_in_contexts WHERE memory_id = ?", (memory_id,))
        spared = frozenset(day for (day,) in days)
        known = (salience, category, start, spared)
        if known not in self._known:
            decays = zip(self._rates[start:], self._days[start:], strict=True)
            factors = (find_decay_rate(rates, category) for rates, day in decays if day not in spared)
            self._known[known] = reduce(mul, factors, salience)
        return self._known[known]


def _refresh_memory(db: Connection, memory_id: str, decays: _Decays, sizes: ChunkSizes) -> None:
    """Update a memory's row and passages from its versions."""
    before = _passage_columns(db, memory_id)
    versions = _read_versions_of_fields(db, memory_id)
    row = _compute_memory_row(db, memory_id, versions, decays) if "saved" in versions else None
    if row is not None:
        upsert_row(db, "memories", ("memory_id",), row)
        if _passage_columns(db, memory_id) == before:
            return
    if before is not None:
        index.remove_passages(db, index.MEMORY, "memory_id = ?", (memory_id,))
    if row is None:
        delete_rows(db, "memories", "memory_id = ?", (memory_id,))
    elif row["archived_at"] is None:
        index.add_passages(db, "memory_id", [_to_source_text(row)], sizes)


def _passage_columns(db: Connection, memory_id: str) -> tuple[Any, ...] | None:
    """Return the columns that determine a memory's passages; None if the memory does not exist."""
    row: tuple[Any, ...] | None = db.execute(
        "SELECT content, title, source, chat_id, created_at, updated_at, archived_at IS NULL FROM memories"
        " WHERE memory_id = ?",
        (memory_id,),
    ).fetchone()
    return row


def _read_versions_of_fields(db: Connection, memory_id: str) -> dict[str, _Version]:
    rows = db.execute(
        "SELECT field, precedence, ts, event_id, value FROM current_versions"
        " WHERE stream = ? AND memory_id = ?",
        (STREAM, memory_id),
    )
    return {
        field: _Version(precedence, ts, event_id, msgspec.json.decode(value))
        for field, precedence, ts, event_id, value in rows
    }


def _compute_memory_row(
    db: Connection, memory_id: str, versions: dict[str, _Version], decays: _Decays
) -> Row:
    """Return the row of a saved memory, with the fields changed by newer events."""
    saved = versions["saved"]
    newer = {name: version for name, version in versions.items() if version.precedence > saved.precedence}
    changes = {name: newer[name] for name in _FIELDS if name in newer}
    fields: Row = saved.value | {name: version.value for name, version in changes.items()}
    since = find_highest_tombstone_precedence(db, STREAM, memory_id)
    saves = db.execute(
        f"SELECT e.ts, t.precedence {_TOUCHES} ORDER BY t.precedence LIMIT 1",
        (memory_id, since, "memory_saved"),
    )
    created_at, first = fetch_required_row(saves)
    accesses = db.execute(
        f"SELECT coalesce(sum(accesses), 0), max(e.ts) {_TOUCHES}", (memory_id, since, "memory_accessed")
    )
    access_count, last_accessed = fetch_required_row(accesses)
    archived = newer.get("archived")
    holding = reasons_to_always_tell_memory(
        fields["title"], fields["content"], fields["kind"], fields["category"]
    )
    set_salience = versions.get("salience", _Version(first, "", "", 1.0))
    return fields | {
        "memory_id": memory_id,
        "stream": STREAM,
        "event_id": changes.get("content", saved).event_id,
        "title": fields["title"] or fields["content"][:TITLE_LENGTH],
        "salience": decays.apply_decays(
            memory_id, set_salience.value, set_salience.precedence, fields["category"]
        ),
        "salience_set": set_salience.value,
        "salience_precedence": set_salience.precedence,
        "access_count": access_count,
        "last_accessed": last_accessed,
        "topic": fields["topic"] or None,
        "chat_id": fields["chat_id"] or None,
        "tags": encode_as_json(fields["tags"] or []),
        "created_at": created_at,
        "updated_at": max((saved, *changes.values()), key=attrgetter("precedence")).ts,
        "holds": int(holding),
        "archived_at": archived.ts if archived and archived.value else None,
    }


def _to_source_text(row: Row) -> SourceText:
    label = choose_memory_label(row["title"], row["content"])
    columns = ("source", "content", "created_at", "updated_at", "chat_id")
    return SourceText(STREAM, row["memory_id"], **{name: row[name] for name in columns}, label=label)


HANDLERS: Handlers = {
    fold_memories: (
        ev.MemorySaved,
        ev.MemoryUpdated,
        ev.MemoryArchived,
        ev.MemoryDeleted,
        ev.MemoryAccessed,
        ev.SalienceDecayed,
        ev.ChangeUndone,
    )
}
