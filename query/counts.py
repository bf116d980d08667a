"""How much of what stands in a read model."""

from memlog.projector.sqlite import Connection, count_rows

Counts = dict[str, int]
"""How many there are by name, in the order of the names."""


def events_by_type_and_day(db: Connection) -> tuple[Counts, Counts]:
    """Accepted events by type, and by the UTC day on which they happened."""
    rows = db.execute("SELECT type, substr(ts, 1, 10), count(*) FROM events GROUP BY 1, 2").fetchall()
    by_type: Counts = {}
    by_day: Counts = {}
    for kind, day, count in rows:
        by_type[kind] = by_type.get(kind, 0) + count
        by_day[day] = by_day.get(day, 0) + count
    return _sorted(by_type), _sorted(by_day)


def messages_by_role_and_chat(db: Connection) -> tuple[Counts, Counts]:
    """Messages by role, and by `<channel>:<chat_id>`."""
    rows = db.execute(
        "SELECT role, channel || ':' || chat_id, count(*) FROM messages WHERE type <> 'session_break'"
        " GROUP BY channel, chat_id, role"
    ).fetchall()
    by_role: Counts = {}
    by_chat: Counts = {}
    for role, chat, count in rows:
        by_role[role] = by_role.get(role, 0) + count
        by_chat[chat] = by_chat.get(chat, 0) + count
    return _sorted(by_role), _sorted(by_chat)


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


def _sorted(counts: Counts) -> Counts:
    return dict(sorted(counts.items()))
