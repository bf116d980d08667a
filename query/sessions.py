"""Sessions, the parts of a conversation between session breaks, with their texts and summaries."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from memlog.eventlog.fields import Chat
from memlog.projector.sqlite import Connection
from memlog.query.conversations import (
    WindowMessage,
    first_message_of_session,
    messages_of_window,
    sql_condition_on_chat,
)
from memlog.query.event_index import POSITION, LinePosition, make_struct_of_row


class Session(msgspec.Struct, kw_only=True):
    """Part of a conversation, between two session breaks.

    session_start: the id of its first message, if any.
    model: as named by the break before it, or by the last message whose meta names one.
    title, parent_chat, folder, project, labels: of the chat, as `chat_described` set them.
    created_at: when the break, if any, or else the first message was written.
    messages: the number of its messages, excluding breaks.
    """

    chat: str
    session_start: str | None
    model: str | None
    created_at: str
    messages: int
    title: str | None = None
    parent_chat: str | None = None
    folder: str | None = None
    project: str | None = None
    labels: list[str] = []


def current_sessions(db: Connection, chat: Chat | None = None, *, is_all: bool = False) -> list[Session]:
    """Return the current session of `chat`, or of each chat, newest first.

    is_all: include earlier sessions.

    Raises:
        NotFound: the store has events, but none of this chat.
    """
    condition, values = sql_condition_on_chat(db, chat)
    rows = db.execute(
        "SELECT channel || ':' || chat_id, session_start, model, created_at, messages, channel, chat_id"
        f" FROM sessions WHERE {condition} ORDER BY channel, chat_id, session_no",
        values,
    ).fetchall()
    # The last session of each chat stays.
    kept = rows if is_all else {row[-2:]: row for row in rows}.values()
    described = _descriptions_by_chat(db)
    newest_first = [
        make_struct_of_row(Session, row[:-2], **described.get(row[-2:], {})) for row in reversed([*kept])
    ]
    return sorted(newest_first, key=lambda session: session.created_at, reverse=True)


def _descriptions_by_chat(db: Connection) -> dict[tuple[str, str], dict[str, Any]]:
    """Return each chat's description; for a chat with two streams, the latest."""
    found: defaultdict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for channel, chat_id, member, value in db.execute(
        "SELECT channel, chat_id, member, value FROM chat_descriptions ORDER BY precedence"
    ):
        found[channel, chat_id][member] = json.loads(value)
    return found


class SessionContent(msgspec.Struct, kw_only=True):
    """The messages of a conversation as one text.

    content: each message as its speaker, `: `, and its unchanged content, joined by newlines.
    session_start: the id of the current session's first message, if any.
    messages: the number of messages in `content`.
    """

    chat: str
    session_start: str | None
    messages: int
    content: str


def current_session_content(
    db: Connection, chat: Chat, *, last: int | None, tokens: int | None, across_sessions: bool
) -> SessionContent:
    """Return the messages of a chat's current session as one text, oldest first.

    last: the most messages. tokens: the budget for whole messages with their speakers, by the `model` counter
        of contexts. across_sessions: include earlier sessions.

    Raises:
        NotFound: the store has events, but none of this chat.
    """
    messages = messages_of_window(
        db, chat, last=last, tokens=tokens, across_sessions=across_sessions, text=_format_line
    )
    return SessionContent(
        chat=":".join(chat),
        session_start=first_message_of_session(db, chat),
        messages=len(messages),
        content="\n".join(map(_format_line, messages)),
    )


def _format_line(message: WindowMessage) -> str:
    return f"{message.speaker}: {message.content}"


class Summary(msgspec.Struct, kw_only=True):
    """A summary of part of a conversation, from one message id to another."""

    id: str
    chat: str
    from_message_id: str | None
    to_message_id: str | None
    content: str
    created_at: str
    position: LinePosition


def list_summaries(db: Connection, chat: Chat | None = None) -> list[Summary]:
    """Return all summaries, or those of `chat`, oldest first.

    Raises:
        NotFound: the store has events, but none of this chat.
    """
    condition, values = sql_condition_on_chat(db, chat)
    return _read_summaries(db, condition, values)


def summary_by_event(db: Connection, stream: str, event_id: str) -> Summary | None:
    """Return the summary written by an event, or None."""
    return next(iter(_read_summaries(db, "stream = ? AND id = ?", (stream, event_id))), None)


def _read_summaries(db: Connection, condition: str, values: Sequence[str]) -> list[Summary]:
    rows = db.execute(
        "SELECT id, channel || ':' || chat_id, from_message_id, to_message_id, content, created_at,"
        f" {POSITION}"
        f" FROM summaries JOIN events e USING (stream, id) WHERE {condition}"
        " ORDER BY created_at, e.day, e.number, e.writer, e.offset, stream",
        values,
    )
    return [make_struct_of_row(Summary, row) for row in rows]
