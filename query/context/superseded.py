"""Messages that said what is no longer so: a fact names one as its source, and does not stand any more.

What a message says is known by such links alone. A message that also said something that stands is not
superseded.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memlog.eventlog.reader import is_about
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.facts.current import topics
from memlog.query.summaries import Summary
from memlog.query.window import ORDER

Key = tuple[str, str]
"""(stream, id) of a message."""


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
    """Those of `messages` of which all that facts took from them stands no more."""
    asked = list(messages)
    sources = _sources(db, [message.id for message in asked])
    standing = _standing(db, {source.chat for source in sources})
    found = set()
    for message in asked:
        said = [each for each in sources if each.message_id == message.id and _means(db, each, message)]
        if said and not any(source.event_id in standing for source in said):
            found.add((message.stream, message.id))
    return found


def sums_up_superseded(db: Connection, summary: Summary) -> bool:
    """Whether a summary is of a stretch in which a superseded message stands.

    Where it does not name its first or last message, or no such one stands, the stretch begins with the chat,
    or ends where the summary was written.
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
    """The condition on a message to stand on one side of a place, which may be a time alone."""
    return f"({', '.join(ORDER[: len(place)])}) {sign} ({', '.join('?' * len(place))})"


def _streams(db: Connection, chat: str) -> str:
    """The streams of a chat, as a JSON list: messages are found by stream and id."""
    channel, _, chat_id = chat.partition(":")
    rows = db.execute("SELECT DISTINCT stream FROM checkpoints")
    return as_list([stream for (stream,) in rows if is_about(stream, (channel, chat_id))])


def _place(db: Connection, streams: str, message_id: str | None) -> tuple[object, ...]:
    """Where a message of some streams stands in the order of its chat; empty where it does not."""
    row: tuple[object, ...] | None = db.execute(
        f"SELECT {', '.join(ORDER)} FROM messages"
        " WHERE stream IN (SELECT value FROM json_each(?)) AND id = ?",
        (streams, message_id),
    ).fetchone()
    return row or ()


def _sources(db: Connection, message_ids: Sequence[str]) -> list[_FactSource]:
    rows = db.execute(
        "SELECT source_message_id, chat_id, event_id FROM fact_sources"
        " WHERE source_message_id IN (SELECT value FROM json_each(?))",
        (as_list(message_ids),),
    )
    return [_FactSource(*row) for row in rows]


def _standing(db: Connection, chats: Iterable[str]) -> set[str]:
    """The events of the facts of these chats that stand."""
    return {fact.event_id for chat in chats for topic in topics(db, chat or None) for fact in topic.facts}


def _means(db: Connection, source: _FactSource, message: ChatMessage) -> bool:
    """Whether a fact means this message by its id: one of its own chat, where that has such a message."""
    if source.chat in ("", message.chat):
        return True
    return not _place(db, _streams(db, source.chat), source.message_id)
