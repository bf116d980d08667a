"""How much of what stands in a read model."""

from collections import Counter
from collections.abc import Iterable

from memlog.projector.sqlite import Connection, count_rows

Counts = dict[str, int]
"""How many there are by name, in the order of the names."""


def events_by_type_and_day(db: Connection) -> tuple[Counts, Counts]:
    """Accepted events by type, and by the UTC day on which they happened."""
    rows = db.execute("SELECT type, substr(ts, 1, 10), count(*) FROM events GROUP BY 1, 2").fetchall()
    return _by_each(rows)


def messages_by_role_and_chat(db: Connection) -> tuple[Counts, Counts]:
    """Messages by role, and by `<channel>:<chat_id>`."""
    rows = db.execute(
        "SELECT role, channel || ':' || chat_id, count(*) FROM messages WHERE type <> 'session_break'"
        " GROUP BY channel, chat_id, role"
    ).fetchall()
    return _by_each(rows)


def memories_by(db: Connection, column: str) -> Counts:
    """Memories that stand, archived ones too, by a column of theirs."""
    return dict(db.execute(f"SELECT {column}, count(*) FROM memories GROUP BY 1 ORDER BY 1").fetchall())


def counters(db: Connection, events_by_type: Counts) -> Counts:
    """What a program counts that watches memory at work; from events, so that a replay gives the same.

    memory.saved.count: saves, also of a memory that stood already or no longer does.
    memory.retrieved.count: memories given to an agent, each as often as it was.
    """
    retrieved = count_rows(
        db,
        "memory_events t JOIN events e ON e.stream = t.stream AND e.id = t.event_id"
        " WHERE e.type = 'memory_accessed'",
    )
    return {
        "memory.saved.count": events_by_type.get("memory_saved", 0),
        "memory.retrieved.count": retrieved,
    }


def _by_each(rows: Iterable[tuple[str, str, int]]) -> tuple[Counts, Counts]:
    """What rows of two names count, by the first and by the second."""
    totals: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for *names, count in rows:
        for total, name in zip(totals, names, strict=True):
            total[name] += count
    first, second = (dict(sorted(total.items())) for total in totals)
    return first, second
