"""Memories, their current relevance, and their histories."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.categories import CATEGORIES, find_decay_rate, find_known_category_or_other
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import MemoryKind
from memlog.projector.sqlite import Connection
from memlog.query.event_index import POSITION, LinePosition, join_sql_conditions, make_struct_of_row
from memlog.query.facts.topic_keys import (
    define_sql_function_topic_key,
    normalise_key_for_comparison,
    normalise_stored_topic_key,
)
from memlog.query.filters import equivalent_forms_json, sql_condition_on_categories
from memlog.query.provenance import EVENT_COLUMNS, StoredEvent, read_event_of_row


def compute_freshness(category: str, age_days: int) -> float:
    """Return a memory's freshness at this age, from 0 to 1.

    Freshness halves with every half-life of the category, down to the category's floor. It changes daily, so
    it is never stored.
    """
    curve = CATEGORIES[find_known_category_or_other(category)]
    return max(curve.floor, math.pow(0.5, age_days / curve.half_life))


def compute_relevance(importance: float, salience: float, category: str, age_days: int) -> float:
    """Return a memory's relevance, from 0 to 1: importance × salience × freshness."""
    return importance * salience * compute_freshness(category, age_days)


def age_in_days(since: str, today: str) -> int:
    """Return the whole days from `since` to `today`, at least 0. Answers therefore stay the same all day.

    since: a timestamp in the log's format. today: a UTC date, 2026-02-24.
    """
    return max(0, (date.fromisoformat(today) - date.fromisoformat(since[:10])).days)


class Memory(msgspec.Struct, kw_only=True):
    """A memory.

    importance: from 0 to 1, as given.
    salience: from 0 to 1: 1 when first saved, or as set by an update, times any decays since.
    age_days: from `updated_at` to today (UTC).
    freshness: from 0 to 1, by age and the curve of its category.
    relevance: importance × salience × freshness.
    access_count, last_accessed: how often and when last it was given to an agent.
    content: its text; empty in a list without contents.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    created_at: when it was first saved (after its last deletion, if any). updated_at: when its content
        changed.
    archived_at: when it was archived, which hides it from searches; otherwise None.
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
"""Members that depend on the day and are not stored."""

_COLUMNS = ", ".join(
    f"m.{'chat_id' if name == 'chat' else name}"
    for name in Memory.__struct_fields__
    if name not in (*_OF_TODAY, "position")
)


_COLUMNS_WITHOUT_CONTENT = _COLUMNS.replace("m.content", "''")


def select_memories(
    db: Connection, rest: str, values: Sequence[Any], *, light: bool = False
) -> Iterator[Memory]:
    """Yield the memories an SQL query selects.

    rest: its clauses after `FROM memories m`. light: leave the contents empty, without reading them.
    """
    today = timestamps.today()
    rows = db.execute(
        f"SELECT {_COLUMNS_WITHOUT_CONTENT if light else _COLUMNS}, {POSITION} FROM memories m"
        f" JOIN events e ON e.stream = m.stream AND e.id = m.event_id {rest}",
        values,
    )
    for row in rows:
        memory = make_struct_of_row(Memory, row, **_OF_TODAY)
        memory.age_days = age_in_days(memory.updated_at, today)
        memory.freshness = compute_freshness(memory.category, memory.age_days)
        memory.relevance = compute_relevance(
            memory.importance, memory.salience, memory.category, memory.age_days
        )
        yield memory


def find_memory(db: Connection, memory_id: str) -> Memory | None:
    """Return the memory `memory_id`, or None."""
    return next(select_memories(db, "WHERE m.memory_id = ?", (memory_id,)), None)


def find_memories(
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
    light: bool = False,
) -> list[Memory]:
    """Return the memories that match all filters, by descending salience, then last changed first.

    chat: `<channel>:<chat_id>`. archived: return archived memories instead of active ones.
    light: leave the contents empty, without reading them.
    """
    if topic is not None:
        define_sql_function_topic_key(db)
    condition, values = join_sql_conditions(
        ("m.kind = ?", kind),
        ("m.chat_id = ?", chat),
        (
            "topic_key(m.topic) = ?",
            None if topic is None else normalise_key_for_comparison(normalise_stored_topic_key(topic)),
        ),
        (
            "EXISTS (SELECT 1 FROM json_each(m.tags) t JOIN json_each(?) g ON t.value = g.value)",
            equivalent_forms_json(tag),
        ),
        ("m.salience >= ?", min_salience),
        ("(m.archived_at IS NOT NULL) = ?", archived),
        *([] if category is None else [sql_condition_on_categories("m.category", [category])]),
    )
    order = "ORDER BY m.salience DESC, m.updated_at DESC, m.memory_id LIMIT ?"
    values = [*values, -1 if limit is None else limit]
    return list(select_memories(db, f"WHERE {condition} {order}", values, light=light))


def find_faded_memories(db: Connection, *, categories: Iterable[str], at_most: float) -> list[Memory]:
    """Return active memories of `categories` whose relevance is at most `at_most`, lowest first."""
    condition, values = sql_condition_on_categories("m.category", categories)
    unarchived = select_memories(db, f"WHERE m.archived_at IS NULL AND {condition}", values)
    chosen = [memory for memory in unarchived if memory.relevance <= at_most]
    return sorted(chosen, key=lambda memory: (memory.relevance, memory.memory_id))


def history_of_memory(db: Connection, log: Path, memory_id: str) -> list[StoredEvent]:
    """Return a memory's events, and those that undid them, by precedence, even if it was deleted."""
    rows = db.execute(
        "WITH touched AS (SELECT stream, event_id, precedence FROM memory_events WHERE memory_id = ?)"
        f" SELECT {EVENT_COLUMNS} FROM (SELECT * FROM touched UNION SELECT u.stream, u.id, u.precedence"
        " FROM touched JOIN undone_events u ON (u.stream, u.target_id) = (touched.stream, event_id)) t"
        " JOIN events e ON e.stream = t.stream AND e.id = t.event_id ORDER BY t.precedence",
        (memory_id,),
    ).fetchall()
    return [read_event_of_row(log, row) for row in rows]


_STREAM = "memory"


class Decay(msgspec.Struct, frozen=True):
    """A `salience_decayed` event. rates: factors from 0 to 1, by category."""

    event_id: str
    ts: str
    rates: dict[str, float]
    position: LinePosition


def find_decay(db: Connection, event_id: str) -> Decay | None:
    """Return the decay `event_id`, or None if there is no such event.

    Raises:
        BadInput: the event was forgotten, or is not a decay.
    """
    row = db.execute(
        f"SELECT d.id, e.ts, d.rates, {POSITION} FROM decays d"
        " JOIN events e ON e.stream = d.stream AND e.id = d.id WHERE d.stream = ? AND d.id = ?",
        (_STREAM, event_id),
    ).fetchone()
    if row is not None:
        return make_struct_of_row(Decay, row)
    other = db.execute(
        "SELECT 1 FROM events WHERE stream = ?1 AND id = ?2"
        " UNION ALL SELECT 1 FROM redactions WHERE stream = ?1 AND target_id = ?2",
        (_STREAM, event_id),
    ).fetchone()
    if other is not None:
        raise BadInput(
            f"{event_id} cannot decay anything: it was forgotten, or another event has this id",
            hint="run the decay on another day, which uses another id",
        )
    return None


def count_decayed_memories(db: Connection, decay: Decay) -> int:
    """Count the memories whose salience `decay` lowered, including archived ones."""
    counts = db.execute(
        "SELECT m.category, count(*) FROM memories m JOIN decays d ON d.stream = ? AND d.id = ?"
        " WHERE m.salience_set > 0 AND m.salience_precedence < d.precedence"
        " AND NOT EXISTS (SELECT 1 FROM best_in_contexts b WHERE b.memory_id = m.memory_id AND b.day = ?)"
        " GROUP BY m.category",
        (_STREAM, decay.event_id, decay.ts[:10]),
    )
    return sum(count for category, count in counts if find_decay_rate(decay.rates, category) < 1)
