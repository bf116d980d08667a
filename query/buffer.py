"""The buffer of a chat: its messages that nobody has distilled yet. It is computed, and no table."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import msgspec

from memlog.eventlog.chat import Chat
from memlog.projector.sqlite import Connection
from memlog.query.window import ORDER


class BufferedMessage(msgspec.Struct, frozen=True):
    """A message that no extraction covers."""

    id: str
    role: str
    name: str | None
    content: str
    ts: str


class Buffer(msgspec.Struct):
    """The messages of a chat that no extraction covers, oldest first."""

    chat: str
    messages: list[BufferedMessage]


_ORDER = ", ".join(ORDER)
_PLACE = ", ".join(f"m.{column}" for column in ORDER)
_THROUGH = ", ".join(f"t.{column}" for column in ORDER)
_BACKWARDS = ", ".join(f"x.{column} DESC" for column in ORDER)

# `through` has a row per chat that another program distils: its last message that is distilled.
_WAITING = f"""
WITH through AS MATERIALIZED (
    SELECT channel, chat_id, {_ORDER} FROM (
        SELECT x.channel, x.chat_id, {", ".join(f"x.{column}" for column in ORDER)},
            row_number() OVER (PARTITION BY x.channel, x.chat_id ORDER BY {_BACKWARDS}) AS nth
        FROM extractions d JOIN messages x
            ON x.channel = d.channel AND x.chat_id = d.chat_id AND x.id = d.through_message_id
    ) WHERE nth = 1
)
SELECT m.channel || ':' || m.chat_id, m.id, m.role, m.name, m.content, m.created_at FROM messages m
LEFT JOIN through t ON t.channel = m.channel AND t.chat_id = m.chat_id
WHERE m.type <> 'session_break' AND m.role <> 'system'
AND NOT EXISTS (
    SELECT 1 FROM extracted_messages e WHERE e.chat_id = m.channel || ':' || m.chat_id AND e.message_id = m.id
)
AND (t.channel IS NULL OR ({_PLACE}) > ({_THROUGH}))
"""


def buffers(db: Connection, chat: Chat | None = None) -> Iterator[Buffer]:
    """The buffers of all chats, or of one, without empty ones; what a program says as the system is in none.

    An `extraction_completed` of another program covers all messages up to the one that it names; a
    `memories_extracted` covers those that it lists.
    """
    where = "" if chat is None else " AND m.channel = ? AND m.chat_id = ?"
    rows = db.execute(f"{_WAITING}{where} ORDER BY m.channel, m.chat_id, {_PLACE}", [*(chat or ())])
    for name, of_chat in groupby(rows, key=itemgetter(0)):
        yield Buffer(name, [BufferedMessage(*row) for _, *row in of_chat])


def count_of_session(db: Connection, chat: Chat, source: str, ts: str) -> int:
    """Return how many memories of a chat came from a source in the session of a time."""
    breaks = "SELECT {}(created_at) FROM messages WHERE (channel, chat_id, type) = (?1, ?2, 'session_break')"
    (count,) = db.execute(
        "SELECT count(*) FROM memories WHERE source = ?3 AND chat_id = ?4"
        f" AND created_at >= coalesce(({breaks.format('max')} AND created_at <= ?5), '')"
        f" AND created_at <= coalesce(({breaks.format('min')} AND created_at > ?5), '~')",
        (*chat, source, str(chat), ts),
    ).fetchone()
    return int(count)
