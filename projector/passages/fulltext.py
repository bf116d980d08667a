"""Keeps the full-text tables in step with the rows that they are made from.

They are contentless, so an entry is removed by telling FTS5 the text it was made of, recomputed here from
the raw rows before those change. (`contentless_delete=1` would leave the old words in the ranking
statistics, and an incremental read model would rank unlike a fresh one.)
https://www.sqlite.org/fts5.html#the_delete_command
"""

from collections.abc import Iterable

from memlog.projector.sqlite import Connection
from memlog.projector.text.analyzer import analysed, passage

MESSAGES = "messages_fts"

TABLES = (MESSAGES, "memory_chunks_fts", "doc_chunks_fts")
"""The full-text tables."""

Entry = tuple[int, str]
"""The rowid and the analysed text of an entry."""


def entry(rowid: int, label: str | None, content: str) -> Entry:
    """What is indexed of a passage or message that says something."""
    return rowid, analysed(passage(label, content))


def add(db: Connection, table: str, entries: Iterable[Entry]) -> None:
    """Index entries."""
    db.executemany(f"INSERT INTO {table} (rowid, content) VALUES (?, ?)", entries)


def remove(db: Connection, table: str, entries: Iterable[Entry]) -> None:
    """Take entries out of the index: they must be what was added."""
    db.executemany(f"INSERT INTO {table} ({table}, rowid, content) VALUES ('delete', ?, ?)", entries)


def remove_messages(db: Connection, stream: str) -> None:
    """Take all messages of `stream` out of the index, before their rows go."""
    bounds = "SELECT (SELECT min(stream) FROM messages), (SELECT max(stream) FROM messages)"
    if db.execute(bounds).fetchone() == (stream, stream):
        # No other stream has messages: nothing has to be analysed again.
        db.execute(f"INSERT INTO {MESSAGES} ({MESSAGES}) VALUES ('delete-all')")
        return
    rows = db.execute("SELECT message_no, name, content FROM messages WHERE stream = ?", (stream,)).fetchall()
    remove(db, MESSAGES, [entry(*row) for row in rows if row[2].strip()])
