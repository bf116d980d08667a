"""What stands beside a text and may tell that it holds a key: the title of a memory, the messages around one.

A key may be split over several messages, in whatever session.
"""

import json
from collections.abc import Sequence
from typing import Any

from memlog.eventlog.outgoing import SPAN, SentText, has_key, with_keys
from memlog.projector.sqlite import Connection
from memlog.projector.text.analyzer import memory_label

ORDER = ("created_at", "day", "number", "writer", "offset", "stream")
"""The columns by which a chat's messages are ordered."""

_COLUMNS = ", ".join(ORDER)
_BACKWARDS = ", ".join(f"{column} DESC" for column in ORDER)
_PLACE = ", ".join("?" * len(ORDER))


def message_holds_key(db: Connection, where: str, values: Sequence[Any]) -> bool:
    """Whether the message that meets `where` holds a key, or a piece of one."""
    row = db.execute(f"SELECT role, name, content FROM messages WHERE {where}", values).fetchone()
    if row is None:
        return False
    before, behind = beside(db, where, values)
    return with_keys([*before, said(*row), *behind])[len(before)]


def fact_holds_key(db: Connection, fact_id: str) -> bool:
    """Whether the value of a fact is a key, or holds one, by its topic."""
    row = db.execute("SELECT value, topic_key FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()
    return row is not None and has_key(row[0], row[1:])


def names_of_memory(db: Connection, memory_id: str) -> list[str]:
    """Return what a memory is called: its title, its topic, its tags."""
    row = db.execute(
        "SELECT title, content, topic, tags FROM memories WHERE memory_id = ?", (memory_id,)
    ).fetchone()
    return [] if row is None else names_of(row[0], row[1], row[2], json.loads(row[3]))


def names_of(title: str, content: str, topic: str | None, tags: Sequence[str]) -> list[str]:
    """Return what a memory is called, without a title that only repeats its beginning."""
    return [name for name in (memory_label(title, content), topic, *tags) if name]


def newest(db: Connection, chat: Sequence[str]) -> list[SentText]:
    """Return the newest messages of a chat, oldest first."""
    where = "channel = ? AND chat_id = ? AND type <> 'session_break'"
    rows = db.execute(
        f"SELECT role, name, content FROM messages WHERE {where} ORDER BY {_BACKWARDS} LIMIT {SPAN + 1}", chat
    ).fetchall()
    return [said(*row) for row in rows[::-1]]


def beside(db: Connection, where: str, values: Sequence[Any]) -> tuple[list[SentText], list[SentText]]:
    """Return what is said before the message that meets `where`, and behind it, oldest first."""
    place = db.execute(f"SELECT channel, chat_id, {_COLUMNS} FROM messages WHERE {where}", values).fetchone()
    if place is None:
        return [], []
    before = _said(db, place, f"< ({_PLACE}) ORDER BY {_BACKWARDS}")
    return before[::-1], _said(db, place, f"> ({_PLACE}) ORDER BY {_COLUMNS}")


def said(role: str, name: str | None, content: str) -> SentText:
    """Return a message as the gate looks at it."""
    return SentText(content, (name,) if name else (), f"{role}/{name or ''}")


def _said(db: Connection, place: Sequence[Any], side: str) -> list[SentText]:
    rows = db.execute(
        "SELECT role, name, content FROM messages WHERE channel = ? AND chat_id = ?"
        f" AND type <> 'session_break' AND ({_COLUMNS}) {side} LIMIT {SPAN}",
        place,
    )
    return [said(*row) for row in rows]
