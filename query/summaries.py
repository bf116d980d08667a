"""Summaries of conversations, as agents wrote them."""

from collections.abc import Sequence

import msgspec

from memlog.eventlog.chat import Chat
from memlog.projector.sqlite import Connection
from memlog.query.chats import within
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION, record


class Summary(msgspec.Struct, kw_only=True):
    """A summary of a stretch of a conversation, from one message id to another."""

    id: str
    chat: str
    from_message_id: str | None
    to_message_id: str | None
    content: str
    created_at: str
    position: LinePosition


def summaries(db: Connection, chat: Chat | None = None) -> list[Summary]:
    """All summaries, or those of one chat, in the order of writing.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    condition, values = within(db, chat)
    return _summaries(db, condition, values)


def summary(db: Connection, stream: str, event_id: str) -> Summary | None:
    """The summary of this event, or None."""
    return next(iter(_summaries(db, "stream = ? AND id = ?", (stream, event_id))), None)


def _summaries(db: Connection, condition: str, values: Sequence[str]) -> list[Summary]:
    rows = db.execute(
        "SELECT id, channel || ':' || chat_id, from_message_id, to_message_id, content, created_at,"
        f" {POSITION}"
        f" FROM summaries JOIN events e USING (stream, id) WHERE {condition}"
        " ORDER BY created_at, e.day, e.number, e.writer, e.offset, stream",
        values,
    )
    return [record(Summary, row) for row in rows]
