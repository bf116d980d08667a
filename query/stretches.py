"""The parts of conversations that no summary covers yet."""

from operator import attrgetter

import msgspec

from memlog.eventlog.chat import Chat
from memlog.projector.sqlite import Connection
from memlog.query.rows import record
from memlog.query.window import ORDER, WindowMessage

_MESSAGES = (
    "SELECT id, role, name, content, created_at, type, metadata FROM messages"
    f" WHERE channel = ? AND chat_id = ? ORDER BY {', '.join(ORDER)}"
)


class Unsummarised(msgspec.Struct):
    """The messages of a session that no summary covers, oldest first.

    first: the id of the session's first message. before: the summary of what came before; "" without one.
    covered: the ids of the messages before.
    is_over: whether the session has ended.
    """

    first: str
    before: str
    messages: list[WindowMessage]
    is_over: bool
    covered: list[str] = []


def chats_with_news(db: Connection, since: int) -> tuple[list[Chat], int]:
    """The chats with messages behind the number `since`, and the last number. A rebuild numbers anew."""
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    rows = db.execute(
        "SELECT DISTINCT channel, chat_id FROM messages WHERE message_no > ? ORDER BY channel, chat_id",
        (since if since <= last else 0,),
    )
    return [Chat(*row) for row in rows], int(last)


def stretches(db: Connection, chat: Chat) -> list[Unsummarised]:
    """The stretches of a chat, without empty ones."""
    rows = db.execute(
        "SELECT to_message_id, content FROM summaries WHERE channel = ? AND chat_id = ?"
        " AND to_message_id IS NOT NULL ORDER BY created_at",
        chat,
    )
    summary_to = dict(rows.fetchall())
    found: list[Unsummarised] = []
    current: Unsummarised | None = None
    for row in db.execute(_MESSAGES, chat):
        message = record(WindowMessage, row)
        if message.type == "session_break":
            if current is not None:
                current.is_over = True
                found.append(current)
            current = None
            continue
        if current is None:
            current = Unsummarised(message.id, "", [], is_over=False)
        if message.role != "system":
            current.messages.append(message)
        if message.id in summary_to:
            current.covered += [each.id for each in current.messages]
            current.before, current.messages = summary_to[message.id], []
    if current is not None:
        found.append(current)
    return [*filter(attrgetter("messages"), found)]
