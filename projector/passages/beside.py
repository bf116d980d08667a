"""What is said beside a message, in whatever session: a key may be split over several messages."""

from collections.abc import Sequence
from typing import Any

from memlog.eventlog.outgoing import SPAN, Part
from memlog.projector.sqlite import Connection

ORDER = ("created_at", "day", "number", "writer", "offset", "stream")
"""The columns by which a chat's messages are ordered."""

_COLUMNS = ", ".join(ORDER)
_BACKWARDS = ", ".join(f"{column} DESC" for column in ORDER)
_PLACE = ", ".join("?" * len(ORDER))


def beside(db: Connection, where: str, values: Sequence[Any]) -> tuple[list[Part], list[Part]]:
    """Return what is said before the message that meets `where`, and behind it, oldest first."""
    place = db.execute(f"SELECT channel, chat_id, {_COLUMNS} FROM messages WHERE {where}", values).fetchone()
    if place is None:
        return [], []
    before = _said(db, place, f"< ({_PLACE}) ORDER BY {_BACKWARDS}")
    return before[::-1], _said(db, place, f"> ({_PLACE}) ORDER BY {_COLUMNS}")


def said(role: str, name: str | None, content: str) -> Part:
    """Return a message as the gate looks at it."""
    return Part(content, (name,) if name else (), f"{role}/{name or ''}")


def _said(db: Connection, place: Sequence[Any], side: str) -> list[Part]:
    rows = db.execute(
        "SELECT role, name, content FROM messages WHERE channel = ? AND chat_id = ?"
        f" AND type <> 'session_break' AND ({_COLUMNS}) {side} LIMIT {SPAN}",
        place,
    )
    return [said(*row) for row in rows]
