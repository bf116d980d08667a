"""Messages, memories, facts, core memory and daily events as plain rows, for other programs."""

from collections.abc import Iterator
from typing import Any

from memlog.projector.sqlite import Connection

_TABLES = {
    "messages": (
        "SELECT m.stream || '/' || m.id AS key, m.id, channel, chat_id, role, type, name, content, metadata,"
        " created_at FROM messages m ORDER BY created_at, m.day, m.number, m.writer, m.offset, m.stream"
    ),
    "memories": (
        "SELECT memory_id, title, content, category, kind, importance, salience, access_count, last_accessed,"
        " source, topic, chat_id AS chat, tags, created_at, updated_at, archived_at FROM memories"
        " ORDER BY created_at, memory_id"
    ),
    "facts": (
        "SELECT fact_id, topic_key, kind, rank, value, chat_id AS chat, source_message_id, updated_at"
        " FROM facts ORDER BY topic_key, chat_id, kind, rank"
    ),
    "core_memory": (
        "SELECT section, key, nullif(chat_id, '') AS chat, value, source, updated_at"
        " FROM core_memory ORDER BY section, key, chat_id"
    ),
    "daily_events": (
        "SELECT id, event_date, channel, sender_id, chat_id AS chat, summary, raw_tokens, created_at"
        " FROM daily_events ORDER BY event_date, created_at, id"
    ),
}

PLAIN_TABLES = tuple(_TABLES)


def plain_rows(db: Connection, table: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The columns of one of `PLAIN_TABLES`, and its rows by column."""
    rows = db.execute(_TABLES[table])
    names = [column for column, *_ in rows.description]
    return names, (dict(zip(names, row, strict=True)) for row in rows)
