"""What the facts answer, and by which way the answer was found."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from memlog.projector.sqlite import Connection
from memlog.query.facts.current import Fact, Topic, all_topics, topics

NOT_STORED = "I don't have that stored yet"
"""The answer where nothing that was asked for is stored."""

Rule = Literal["key", "rank", "list", "single", "first"]
"""How an answer was found.

key: the topic was named by its key. rank: a place in the list was named. list: the list was asked for.
single: the topic has one value. first: what was asked for in the singular is first in its list.
"""


Choice = Callable[[Sequence[Topic]], Topic | None]
"""Picks one of the topics of one chat, which come newest first."""


class Route(msgspec.Struct, kw_only=True):
    """The way to an answer.

    rule: see `Rule`.
    language: in which the question was understood; None where a key was named.
    topic_key: the topic that answers.
    ranks: the places in its list that were asked for; none for all of it, and for a single value.
    chat: whose fact it is, `<channel>:<chat_id>`; None for the store's own scope.
    most_recent: no topic was named, and this is the one that was set last.
    other_chat: it is not the chat that was asked in.
    """

    rule: Rule
    language: str | None
    topic_key: str
    ranks: list[int]
    chat: str | None
    most_recent: bool = False
    other_chat: bool = False


class FactAnswer(msgspec.Struct, kw_only=True):
    """What facts answer.

    answer: the value, the lines of a list, or `I don't have that stored yet`.
    facts: those that answer, by rank; none where nothing was found.
    route: the way to them; None where nothing was found.
    why: why nothing was found; None where something was.
    """

    found: bool
    answer: str
    facts: list[Fact]
    route: Route | None
    why: str | None


def not_stored(why: str) -> FactAnswer:
    """The answer that there is none."""
    return FactAnswer(found=False, answer=NOT_STORED, facts=[], route=None, why=why)


def answered(facts: Sequence[Fact], route: Route) -> FactAnswer:
    """The answer that these facts give."""
    return FactAnswer(found=True, answer=_told(facts), facts=list(facts), route=route, why=None)


def by_key(db: Connection, key: str, *, rank: int | None, chat: str | None, any_chat: bool) -> FactAnswer:
    """What stands of the topic `key`, or at one rank of its list."""
    topic = topic_of(db, key, chat=chat, any_chat=any_chat)
    if topic is None:
        return not_stored(f"no topic {key} {where(chat, any_chat=any_chat)}")
    facts = topic.facts if rank is None else [fact for fact in [topic.at(rank)] if fact]
    if not facts:
        return not_stored(no_rank(topic, rank or 0))
    route = Route(
        rule="key",
        language=None,
        topic_key=topic.key,
        ranks=[] if rank is None else [rank],
        chat=topic.chat,
        other_chat=topic.chat != chat,
    )
    return answered(facts, route)


def topic_of(db: Connection, key: str, *, chat: str | None, any_chat: bool) -> Topic | None:
    """The topic `key` of a chat; with `any_chat`, and where there is none, the newest of others."""

    def of_key(those: Sequence[Topic]) -> Topic | None:
        return next((topic for topic in those if topic.key == key), None)

    return find(db, of_key, chat=chat, any_chat=any_chat)


def find(db: Connection, choose: Choice, *, chat: str | None, any_chat: bool) -> Topic | None:
    """The topic chosen of a chat; with `any_chat`, and where there is none, the newest chosen of others."""
    own = choose(topics(db, chat))
    if own is not None or not any_chat:
        return own
    others: dict[str | None, list[Topic]] = {}
    for topic in all_topics(db):
        if topic.chat != chat:
            others.setdefault(topic.chat, []).append(topic)
    chosen = (choose(those) for those in others.values())
    return max(filter(None, chosen), key=lambda topic: topic.precedence, default=None)


def where(chat: str | None, *, any_chat: bool) -> str:
    """Where was looked, for people."""
    if any_chat:
        return "in any chat"
    return "in the store's own scope" if chat is None else f"in {chat}"


def no_rank(topic: Topic, rank: int) -> str:
    """Why a topic has nothing at a rank, for people."""
    if topic.kind == "single":
        return f"{topic.key} is a single value, without ranks"
    return f"{topic.key} has no rank {rank}, but {', '.join(str(fact.rank) for fact in topic.facts)}"


def _told(facts: Sequence[Fact]) -> str:
    if len(facts) == 1:
        return facts[0].value
    # What others wrote may have lines, and none of them may pass for another rank.
    return "\n".join(f"{fact.rank}. {' '.join(fact.value.split())}" for fact in facts)
