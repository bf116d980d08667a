"""Keeps the full-text tables in step with the rows that they are made from.

They are contentless, so an entry is removed by telling FTS5 the text that it was made of, recomputed from the
raw rows before those change. (`contentless_delete=1` would leave the old words in the ranking statistics, and
an incremental read model would rank unlike a fresh one.)
https://www.sqlite.org/fts5.html#the_delete_command
"""

from collections.abc import Iterable, Iterator

from memlog.projector.sqlite import Connection
from memlog.projector.text.analyzer import analysed, passage

MESSAGES = "messages_fts"

TABLES = (MESSAGES, "memory_chunks_fts", "doc_chunks_fts")
"""The full-text tables."""

Text = tuple[int, str | None, str]
"""A passage or message that is not blank: its number, label and content."""


def add(db: Connection, table: str, texts: Iterable[Text]) -> None:
    """Index texts."""
    db.executemany(f"INSERT INTO {table} (rowid, content) VALUES (?, ?)", _entries(texts))


def remove(db: Connection, table: str, texts: Iterable[Text]) -> None:
    """Remove texts from the index, as they were added."""
    sql = f"INSERT INTO {table} ({table}, rowid, content) VALUES ('delete', ?, ?)"
    db.executemany(sql, _entries(texts))


def _entries(texts: Iterable[Text]) -> Iterator[tuple[int, str]]:
    return ((number, analysed(passage(label, content))) for number, label, content in texts)


def remove_messages(db: Connection, stream: str) -> None:
    """Remove all messages of `stream` from the index, before their rows."""
    bounds = "SELECT (SELECT min(stream) FROM messages), (SELECT max(stream) FROM messages)"
    if db.execute(bounds).fetchone() == (stream, stream):
        # No other stream has messages: nothing has to be analysed again.
        db.execute(f"INSERT INTO {MESSAGES} ({MESSAGES}) VALUES ('delete-all')")
        return
    rows = db.execute("SELECT message_no, name, content FROM messages WHERE stream = ?", (stream,)).fetchall()
    remove(db, MESSAGES, [row for row in rows if row[2].strip()])
