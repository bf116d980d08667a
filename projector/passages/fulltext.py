"""Keeps the full-text tables in sync with their source rows.

The tables are contentless, so removing an entry requires passing its text to FTS5, recomputed from the source
rows before they change. (`contentless_delete=1` would leave the old words in the ranking statistics, and an
incremental read model would rank differently from a fresh one.)
https://www.sqlite.org/fts5.html#the_delete_command
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memlog.eventlog.secrets.outgoing import SPAN, TextToCheck, tell_which_parts_hold_keys, text_has_key
from memlog.projector.sqlite import Connection
from memlog.projector.text.analyzer import analyse_for_index, choose_memory_label, format_passage_text

MESSAGES = "messages_fts"

TABLES = (MESSAGES, "memory_chunks_fts", "doc_chunks_fts")
"""The full-text tables."""

Text = tuple[int, str | None, str]
"""A non-blank passage or message: its number, label and content."""


def add_texts_to_index(db: Connection, table: str, texts: Iterable[Text]) -> None:
    """Add texts to a full-text table."""
    db.executemany(f"INSERT INTO {table} (rowid, content) VALUES (?, ?)", _analyse_texts(texts))


def remove_texts_from_index(db: Connection, table: str, texts: Iterable[Text]) -> None:
    """Remove texts from the index; they must be exactly as they were added."""
    sql = f"INSERT INTO {table} ({table}, rowid, content) VALUES ('delete', ?, ?)"
    db.executemany(sql, _analyse_texts(texts))


def _analyse_texts(texts: Iterable[Text]) -> Iterator[tuple[int, str]]:
    return (
        (number, analyse_for_index(format_passage_text(label, content))) for number, label, content in texts
    )


def remove_messages_from_index(db: Connection, stream: str) -> None:
    """Remove all messages of `stream` from the index, before their rows are deleted."""
    bounds = "SELECT (SELECT min(stream) FROM messages), (SELECT max(stream) FROM messages)"
    if db.execute(bounds).fetchone() == (stream, stream):
        # No other stream has messages, so none needs to be analysed again.
        db.execute(f"INSERT INTO {MESSAGES} ({MESSAGES}) VALUES ('delete-all')")
        return
    rows = db.execute("SELECT message_no, name, content FROM messages WHERE stream = ?", (stream,)).fetchall()
    remove_texts_from_index(db, MESSAGES, [row for row in rows if row[2].strip()])


# A key may be split over several messages of a chat.

ORDER = ("created_at", "day", "number", "writer", "offset", "stream")
"""The columns that order a chat's messages."""

_COLUMNS = ", ".join(ORDER)
_BACKWARDS = ", ".join(f"{column} DESC" for column in ORDER)
_PLACE = ", ".join("?" * len(ORDER))


def message_holds_key(db: Connection, where: str, values: Sequence[Any]) -> bool:
    """Whether the message that matches `where` contains a key or a piece of one."""
    row = db.execute(f"SELECT role, name, content FROM messages WHERE {where}", values).fetchone()
    if row is None:
        return False
    before, behind = read_neighbouring_messages(db, where, values)
    return tell_which_parts_hold_keys([*before, message_to_text_to_check(*row), *behind])[len(before)]


def fact_holds_key(db: Connection, fact_id: str) -> bool:
    """Whether a fact's value contains a key, taking its topic into account."""
    row = db.execute("SELECT value, topic_key FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()
    return row is not None and text_has_key(row[0], row[1:])


def select_memory_names(db: Connection, memory_id: str) -> list[str]:
    """Return a memory's names: its title, topic and tags; [] if it does not exist."""
    row = db.execute(
        "SELECT title, content, topic, tags FROM memories WHERE memory_id = ?", (memory_id,)
    ).fetchone()
    return [] if row is None else memory_names(row[0], row[1], row[2], json.loads(row[3]))


def memory_names(title: str, content: str, topic: str | None, tags: Sequence[str]) -> list[str]:
    """Return a memory's names, leaving out a title that only repeats the start of the content."""
    return [name for name in (choose_memory_label(title, content), topic, *tags) if name]


def read_newest_messages(db: Connection, chat: Sequence[str]) -> list[TextToCheck]:
    """Return the last few messages of a chat, oldest first."""
    where = "channel = ? AND chat_id = ? AND type <> 'session_break'"
    rows = db.execute(
        f"SELECT role, name, content FROM messages WHERE {where} ORDER BY {_BACKWARDS} LIMIT {SPAN + 1}", chat
    ).fetchall()
    return [message_to_text_to_check(*row) for row in rows[::-1]]


def read_neighbouring_messages(
    db: Connection, where: str, values: Sequence[Any]
) -> tuple[list[TextToCheck], list[TextToCheck]]:
    """Return the messages before and after the one that matches `where`, each oldest first."""
    place = db.execute(f"SELECT channel, chat_id, {_COLUMNS} FROM messages WHERE {where}", values).fetchone()
    if place is None:
        return [], []
    before = _select_neighbours(db, place, f"< ({_PLACE}) ORDER BY {_BACKWARDS}")
    return before[::-1], _select_neighbours(db, place, f"> ({_PLACE}) ORDER BY {_COLUMNS}")


def message_to_text_to_check(role: str, name: str | None, content: str) -> TextToCheck:
    """Convert a message to the `TextToCheck` that the gate inspects."""
    return TextToCheck(content, (name,) if name else (), f"{role}/{name or ''}")


def _select_neighbours(db: Connection, place: Sequence[Any], side: str) -> list[TextToCheck]:
    rows = db.execute(
        "SELECT role, name, content FROM messages WHERE channel = ? AND chat_id = ?"
        f" AND type <> 'session_break' AND ({_COLUMNS}) {side} LIMIT {SPAN}",
        place,
    )
    return [message_to_text_to_check(*row) for row in rows]
