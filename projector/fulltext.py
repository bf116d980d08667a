"""Keeps the full-text tables in step with the rows that they are made from.

They are contentless, so an entry is removed by telling FTS5 the text it was made of, recomputed here from
the raw rows before those change. (`contentless_delete=1` would leave the old words in the ranking
statistics, and an incremental read model would rank unlike a fresh one.)
https://www.sqlite.org/fts5.html#the_delete_command
"""

from collections.abc import Iterable

from memlog.projector.analysis import analysed, passage
from memlog.projector.sqlite import Connection

TABLES = ("messages_fts", "memory_chunks_fts")
"""The full-text tables."""

Entry = tuple[int, str]
"""The rowid and the analysed text of an entry."""


def message_entry(message_no: int, name: str | None, content: str) -> Entry | None:
    """The entry of one message; None where it says nothing."""
    return (message_no, analysed(passage(name, content))) if content.strip() else None


def add_messages(db: Connection, entries: Iterable[Entry]) -> None:
    """Index messages."""
    db.executemany("INSERT INTO messages_fts (rowid, content) VALUES (?, ?)", entries)


def remove_messages(db: Connection, stream: str) -> None:
    """Take all messages of `stream` out of the index, before their rows go."""
    rows = db.execute("SELECT message_no, name, content FROM messages WHERE stream = ?", (stream,)).fetchall()
    entries = [entry for row in rows if (entry := message_entry(*row)) is not None]
    db.executemany("INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', ?, ?)", entries)


def add_memory(db: Connection, memory_id: str) -> None:
    """Index the chunks of a memory, after its rows were written."""
    db.executemany(
        "INSERT INTO memory_chunks_fts (rowid, content) VALUES (?, ?)", _memory_entries(db, memory_id)
    )


def remove_memory(db: Connection, memory_id: str) -> None:
    """Take the chunks of a memory out of the index, before its rows change."""
    db.executemany(
        "INSERT INTO memory_chunks_fts (memory_chunks_fts, rowid, content) VALUES ('delete', ?, ?)",
        _memory_entries(db, memory_id),
    )


def _memory_entries(db: Connection, memory_id: str) -> list[Entry]:
    rows = db.execute("SELECT chunk_no, label, content FROM memory_chunks WHERE memory_id = ?", (memory_id,))
    return [(chunk_no, analysed(passage(label, content))) for chunk_no, label, content in rows]
