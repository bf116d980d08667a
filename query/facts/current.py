"""The current facts of each chat, by topic.

A topic has a ranked list or a single value, under one spelling of its key: the ones that were set last.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from memlog.eventlog.event_fields import FactKind
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.facts.topic_keys import compared, same_key
from memlog.query.rows import POSITION, record


class Fact(msgspec.Struct, kw_only=True):
    """One value of a topic.

    topic_key: as in its event.
    rank: from 1 in a ranked list; 0 for a single value.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    source_message_id: the message that it comes from, if the event names one.
    updated_at: when it was set.
    event_id, position: of the event that set it.
    """

    topic_key: str
    kind: FactKind
    rank: int
    value: str
    chat: str | None
    source_message_id: str | None
    updated_at: str
    event_id: str
    position: LinePosition

    @property
    def fact_id(self) -> str:
        """Its id: `favorite_colors/2/telegram:7`."""
        key = self.topic_key.replace("%", "%25").replace("/", "%2F")
        return f"{key}/{self.rank}" + (f"/{self.chat}" if self.chat else "")


class Topic(msgspec.Struct, frozen=True):
    """The current facts of one topic in one chat.

    key: as `key_of` makes it. keys: all spellings in events.
    facts: by rank; at least one. precedence: of the newest one.
    """

    key: str
    keys: Sequence[str]
    facts: Sequence[Fact]
    precedence: str

    @property
    def kind(self) -> FactKind:
        """Whether it is a list or a single value."""
        return self.facts[0].kind

    @property
    def chat(self) -> str | None:
        """`<channel>:<chat_id>`; None for the store's own scope."""
        return self.facts[0].chat

    def at(self, rank: int) -> Fact | None:
        """The fact at this rank, or None."""
        return next((fact for fact in self.facts if fact.rank == rank), None)


_Row = tuple[str, Fact]
"""A fact behind its precedence."""

_FACTS = (
    "SELECT f.precedence, f.topic_key, f.kind, f.rank, f.value,"
    f" nullif(f.chat_id, ''), f.source_message_id, f.updated_at, f.event_id, {POSITION}"
    " FROM facts f JOIN events e ON e.stream = f.stream AND e.id = f.event_id"
)


def topics(db: Connection, chat: str | None) -> list[Topic]:
    """The topics of a chat, `<channel>:<chat_id>` or None for the store's own scope; the newest first."""
    return _topics(db.execute(f"{_FACTS} WHERE f.chat_id = ?", (chat or "",)).fetchall())


def exactly(topics: Sequence[Topic], keys: Sequence[str]) -> Topic | None:
    """The first topic with one of these keys, for what is written."""
    return next((topic for topic in topics if topic.key in keys), None)


def called(topics: Sequence[Topic], keys: Sequence[str]) -> Topic | None:
    """The first topic with one of these keys; else the first that differs in number or spelling alone."""
    alike = {compared(key) for key in keys}
    return exactly(topics, keys) or next((topic for topic in topics if compared(topic.key) in alike), None)


def all_topics(db: Connection) -> list[Topic]:
    """The topics of every chat; the newest first."""
    return _topics(db.execute(_FACTS).fetchall())


def _topics(rows: Sequence[tuple[Any, ...]]) -> list[Topic]:
    facts = sorted(((row[0], record(Fact, row[1:])) for row in rows), key=_scope)
    topics = [_topic(key, list(group)) for (_, key), group in groupby(facts, key=_scope)]
    return sorted(topics, key=lambda topic: topic.precedence, reverse=True)


def _scope(row: _Row) -> tuple[str, str]:
    return row[1].chat or "", same_key(row[1].topic_key)


def _topic(key: str, rows: Sequence[_Row]) -> Topic:
    """The topic in the spelling and kind that were set last."""
    precedence, newest = max(rows, key=lambda row: row[0])
    facts = [fact for _, fact in rows if (fact.topic_key, fact.kind) == (newest.topic_key, newest.kind)]
    keys = sorted({fact.topic_key for _, fact in rows})
    return Topic(key, keys, sorted(facts, key=lambda fact: fact.rank), precedence)
