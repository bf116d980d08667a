"""Superseded messages: every fact that names one as its source was replaced or removed.

Only such links tell what a message says. A message with a current fact is not superseded.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memlog.eventlog.reader import is_about
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.event_index import Key
from memlog.query.facts.current import topics
from memlog.query.summaries import Summary
from memlog.query.window import ORDER


class ChatMessage(NamedTuple):
    """A message; chat: `<channel>:<chat_id>`."""

    stream: str
    id: str
    chat: str


class _FactSource(NamedTuple):
    """A fact_stored that names a message; chat: the fact's, "" for the store's own scope."""

    message_id: str
    chat: str
    event_id: str


def superseded(db: Connection, messages: Iterable[ChatMessage]) -> set[Key]:
    """The keys of the superseded `messages`."""
    messages = list(messages)
    rows = db.execute(
        "SELECT source_message_id, chat_id, event_id FROM fact_sources"
        " WHERE source_message_id IN (SELECT value FROM json_each(?))",
        (as_list([message.id for message in messages]),),
    )
    sources = [_FactSource(*row) for row in rows]
    known = [topic for chat in {source.chat for source in sources} for topic in topics(db, chat or None)]
    current = {fact.event_id for topic in known for fact in topic.facts}
    keys = set()
    for message in messages:
        own = [each for each in sources if each.message_id == message.id and _means(db, each, message)]
        if own and not any(source.event_id in current for source in own):
            keys.add((message.stream, message.id))
    return keys


def sums_up_superseded(db: Connection, summary: Summary) -> bool:
    """Whether the stretch of a summary contains a superseded message.

    If its first or last message is unknown, the stretch begins with the chat, or ends with the summary.
    """
    streams = _streams(db, summary.chat)
    first = _place(db, streams, summary.from_message_id) or ("",)
    last = _place(db, streams, summary.to_message_id) or (summary.created_at,)
    rows = db.execute(
        # CROSS JOIN: a chat may have more messages than there are facts.
        "SELECT stream, id FROM (SELECT DISTINCT source_message_id AS id FROM fact_sources)"
        " CROSS JOIN messages USING (id) WHERE stream IN (SELECT value FROM json_each(?))"
        f" AND {_compared('>=', first)} AND {_compared('<=', last)}",
        (streams, *first, *last),
    ).fetchall()
    return bool(superseded(db, (ChatMessage(stream, name, summary.chat) for stream, name in rows)))


def _compared(sign: str, place: Sequence[object]) -> str:
    """The condition that a message is on one side of a place, which may be only a time."""
    return f"({', '.join(ORDER[: len(place)])}) {sign} ({', '.join('?' * len(place))})"


def _streams(db: Connection, chat: str) -> str:
    """The streams of a chat, as a JSON list: messages are found by stream and id."""
    channel, _, chat_id = chat.partition(":")
    rows = db.execute("SELECT DISTINCT stream FROM checkpoints")
    return as_list([stream for (stream,) in rows if is_about(stream, (channel, chat_id))])


def _place(db: Connection, streams: str, message_id: str | None) -> tuple[object, ...]:
    """The place of a message in the order of its chat; empty for an unknown message."""
    row: tuple[object, ...] | None = db.execute(
        f"SELECT {', '.join(ORDER)} FROM messages"
        " WHERE stream IN (SELECT value FROM json_each(?)) AND id = ?",
        (streams, message_id),
    ).fetchone()
    return row or ()


def _means(db: Connection, source: _FactSource, message: ChatMessage) -> bool:
    """Whether a fact's source id means this message: not if the fact's own chat has such a message."""
    if source.chat in ("", message.chat):
        return True
    return not _place(db, _streams(db, source.chat), source.message_id)
