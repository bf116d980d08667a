"""Windows: the newest messages of a chat's current session, and those around one message."""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from memlog.projector.sqlite import Connection
from memlog.projector.tokens import count_tokens
from memlog.query.chats import check_known

DEFAULT_LAST = 50
"""How many messages a window has where neither a number nor a budget is given."""


class WindowMessage(msgspec.Struct, kw_only=True):
    """One message of a window; `meta` is the event's."""

    id: str
    role: str
    name: str | None
    content: str
    ts: str
    type: str
    meta: dict[str, Any] | None


class Window(msgspec.Struct):
    """The newest messages of a session, oldest first; session_start is the id of the session's first."""

    chat: str
    session_start: str | None
    messages: list[WindowMessage]


ORDER = ("created_at", "segment_no", "offset", "stream")
"""The columns of the one order of a chat's messages."""

_OLDEST_FIRST = "ORDER BY " + ", ".join(ORDER)
_NEWEST_FIRST = "ORDER BY " + ", ".join(f"{column} DESC" for column in ORDER)
_COLUMNS = "id, role, name, content, created_at, type, metadata"


def window(
    db: Connection, chat: tuple[str, str], *, last: int | None = None, tokens: int | None = None
) -> Window:
    """The newest messages of the chat (channel, chat_id) since its last session break.

    last: at most so many messages. tokens: only whole messages that together fit, counted in their contents
    with the shipped vocabulary. With neither, the last 50.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    if last is None and tokens is None:
        last = DEFAULT_LAST
    check_known(db, chat)
    since = _last_break(db, chat)
    within, values = _within(chat, since)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE {within} {_NEWEST_FIRST} LIMIT ?",
        [*values, -1 if last is None else last],
    )
    start = db.execute(f"SELECT id FROM messages WHERE {within} {_OLDEST_FIRST} LIMIT 1", values).fetchone()
    return Window(":".join(chat), start[0] if start else None, _fitting(rows, tokens)[::-1])


def window_around(db: Connection, key: tuple[str, str], neighbours: int) -> list[WindowMessage]:
    """A message (stream, id) with its neighbours of the same session, oldest first.

    neighbours: at most so many on either side.

    Empty where no message has this key: a session break has no window.
    """
    own = db.execute(
        f"SELECT channel, chat_id, {', '.join(ORDER)}, {_COLUMNS} FROM messages"
        " WHERE stream = ? AND id = ? AND type <> 'session_break'",
        key,
    ).fetchone()
    if own is None:
        return []
    place, message = own[:6], _message(*own[6:])
    before = _beside(db, place, f"< (?, ?, ?, ?) {_NEWEST_FIRST}", neighbours)
    behind = _beside(db, place, f"> (?, ?, ?, ?) {_OLDEST_FIRST}", neighbours)
    return [*before[::-1], message, *behind]


def _beside(db: Connection, place: Sequence[Any], side: str, limit: int) -> list[WindowMessage]:
    """The messages from a place (channel, chat_id, order) on, up to `limit` or a session break."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE channel = ? AND chat_id = ?"
        f" AND ({', '.join(ORDER)}) {side} LIMIT ?",
        [*place, limit],
    ).fetchall()
    messages = (_message(*row) for row in rows)
    return list(takewhile(lambda message: message.type != "session_break", messages))


def _fitting(newest_first: Any, tokens: int | None) -> list[WindowMessage]:  # noqa: ANN401 - a cursor
    messages = []
    left = tokens
    for message in (_message(*row) for row in newest_first):
        if left is not None:
            left -= count_tokens(message.content)
            if left < 0:
                break
        messages.append(message)
    return messages


def _message(
    event_id: str, role: str, name: str | None, content: str, ts: str, kind: str, metadata: str | None
) -> WindowMessage:
    meta = json.loads(metadata) if metadata is not None else None
    return WindowMessage(id=event_id, role=role, name=name, content=content, ts=ts, type=kind, meta=meta)


def _last_break(db: Connection, chat: tuple[str, str]) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = db.execute(
        f"SELECT {', '.join(ORDER)} FROM messages"
        f" WHERE channel = ? AND chat_id = ? AND type = 'session_break' {_NEWEST_FIRST} LIMIT 1",
        chat,
    ).fetchone()
    return row


def _within(chat: tuple[str, str], since: tuple[Any, ...] | None) -> tuple[str, list[Any]]:
    sql = "channel = ? AND chat_id = ? AND type <> 'session_break'"
    if since is None:
        return sql, [*chat]
    return f"{sql} AND ({', '.join(ORDER)}) > (?, ?, ?, ?)", [*chat, *since]
