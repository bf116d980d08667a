"""Sliding windows: the newest messages of a chat's current session."""

import json
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


_ORDER = ("created_at", "segment_no", "offset", "stream")
_NEWEST_FIRST = "ORDER BY " + ", ".join(f"{column} DESC" for column in _ORDER)


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
    columns = "id, role, name, content, created_at, type, metadata"
    within, values = _within(chat, since)
    rows = db.execute(
        f"SELECT {columns} FROM messages WHERE {within} {_NEWEST_FIRST} LIMIT ?",
        [*values, -1 if last is None else last],
    )
    start = db.execute(
        f"SELECT id FROM messages WHERE {within} ORDER BY {', '.join(_ORDER)} LIMIT 1", values
    ).fetchone()
    return Window(":".join(chat), start[0] if start else None, _fitting(rows, tokens)[::-1])


def _fitting(newest_first: Any, tokens: int | None) -> list[WindowMessage]:  # noqa: ANN401 - a cursor
    messages = []
    left = tokens
    for event_id, role, name, content, ts, kind, metadata in newest_first:
        if left is not None:
            left -= count_tokens(content)
            if left < 0:
                break
        meta = json.loads(metadata) if metadata is not None else None
        messages.append(
            WindowMessage(id=event_id, role=role, name=name, content=content, ts=ts, type=kind, meta=meta)
        )
    return messages


def _last_break(db: Connection, chat: tuple[str, str]) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = db.execute(
        f"SELECT {', '.join(_ORDER)} FROM messages"
        f" WHERE channel = ? AND chat_id = ? AND type = 'session_break' {_NEWEST_FIRST} LIMIT 1",
        chat,
    ).fetchone()
    return row


def _within(chat: tuple[str, str], since: tuple[Any, ...] | None) -> tuple[str, list[Any]]:
    sql = "channel = ? AND chat_id = ? AND type <> 'session_break'"
    if since is None:
        return sql, [*chat]
    return f"{sql} AND ({', '.join(_ORDER)}) > (?, ?, ?, ?)", [*chat, *since]
