"""Answers from facts, each with the rule and topic that it came from."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from memlog.projector.sqlite import Connection
from memlog.query.facts.current import Fact, Topic, all_topics, called, topics

NOT_STORED = "I don't have that stored yet"
"""The answer when no fact is found."""

Rule = Literal["key", "rank", "list", "single", "first"]
"""How an answer was found.

key: by the topic's key. rank: by a place in the list. list: by a question for the whole list.
single: the topic has one value. first: by a question in the singular, which means the first of the list.
"""

Choice = Callable[[Sequence[Topic]], Topic | None]
"""Picks one of the topics of one chat, which come newest first."""


class Route(msgspec.Struct, kw_only=True):
    """Where an answer came from.

    rule: see `Rule`.
    language: of the question; None for a key.
    topic_key: the topic that answers.
    ranks: places in its list; empty for the whole list and for a single value.
    chat: the fact's chat, `<channel>:<chat_id>`; None for the store's own scope.
    most_recent: whether the question named no topic, so that the one set last answers.
    other_chat: whether the fact is of another chat than the question.
    """

    rule: Rule
    language: str | None
    topic_key: str
    ranks: list[int]
    chat: str | None
    most_recent: bool = False
    other_chat: bool = False


class FactAnswer(msgspec.Struct, kw_only=True):
    """The answer to a question or a key.

    answer: the value, the lines of a list, or `I don't have that stored yet`.
    facts: the facts in the answer, by rank; empty if none was found.
    route: where they came from; None if none was found.
    why: why none was found; else None.
    """

    found: bool
    answer: str
    facts: list[Fact]
    route: Route | None
    why: str | None


def not_stored(why: str) -> FactAnswer:
    """The answer when no fact is found."""
    return FactAnswer(found=False, answer=NOT_STORED, facts=[], route=None, why=why)


def answered(facts: Sequence[Fact], route: Route) -> FactAnswer:
    """The answer from these facts."""
    return FactAnswer(found=True, answer=_lines(facts), facts=list(facts), route=route, why=None)


def by_key(db: Connection, key: str, *, rank: int | None, chat: str | None, any_chat: bool) -> FactAnswer:
    """The facts of the topic `key`, else of its other number or spelling, or the one at a rank."""
    topic = find(db, lambda topics: called(topics, [key]), chat=chat, any_chat=any_chat)
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


def find(db: Connection, choose: Choice, *, chat: str | None, any_chat: bool) -> Topic | None:
    """The topic chosen from a chat; if it has none and with `any_chat`, the newest from the other chats."""
    own = choose(topics(db, chat))
    if own is not None or not any_chat:
        return own
    others: dict[str | None, list[Topic]] = {}
    for topic in all_topics(db):
        if topic.chat != chat:
            others.setdefault(topic.chat, []).append(topic)
    chosen = map(choose, others.values())
    return max(filter(None, chosen), key=lambda topic: topic.precedence, default=None)


def where(chat: str | None, *, any_chat: bool) -> str:
    """The scope of a search, for messages."""
    if any_chat:
        return "in any chat"
    return "in the store's own scope" if chat is None else f"in {chat}"


def no_rank(topic: Topic, rank: int) -> str:
    """Why a topic has no fact at a rank, for messages."""
    if topic.kind == "single":
        return f"{topic.key} is a single value, without ranks"
    return f"{topic.key} has no rank {rank}, but {', '.join(str(fact.rank) for fact in topic.facts)}"


def _lines(facts: Sequence[Fact]) -> str:
    if len(facts) == 1:
        return facts[0].value
    # A value of several lines may not pass for several ranks.
    return "\n".join(f"{fact.rank}. {' '.join(fact.value.split())}" for fact in facts)
