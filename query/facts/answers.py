"""Answers questions from facts, with the rule and topic behind each answer."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import FactKind
from memlog.projector.sqlite import Connection
from memlog.projector.text import stemming
from memlog.projector.text.stemming import ENGLISH
from memlog.query.event_index import POSITION, LinePosition, make_struct_of_row
from memlog.query.facts import topic_keys
from memlog.query.facts.question_parser import Question, parse_questions


class Fact(msgspec.Struct, kw_only=True):
    """One value of a topic.

    topic_key: as in its event.
    rank: from 1 in a ranked list; 0 for a single value.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    source_message_id: the message it comes from, if known.
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
        """The fact's id: `favorite_colors/2/telegram:7`."""
        key = self.topic_key.replace("%", "%25").replace("/", "%2F")
        return f"{key}/{self.rank}" + (f"/{self.chat}" if self.chat else "")


class Topic(msgspec.Struct, frozen=True):
    """The current facts on one topic in one chat: a ranked list or a single value, whichever was set last.

    key: see `make_topic_key`. keys: all spellings in events.
    facts: by rank; at least one, in the latest spelling. precedence: the newest fact's.
    """

    key: str
    keys: Sequence[str]
    facts: Sequence[Fact]
    precedence: str

    @property
    def kind(self) -> FactKind:
        """`ranked` for a list, `single` for a single value."""
        return self.facts[0].kind

    @property
    def chat(self) -> str | None:
        """The chat, `<channel>:<chat_id>`; None for the store's own scope."""
        return self.facts[0].chat

    def find_fact_at_rank(self, rank: int) -> Fact | None:
        """Return the fact at `rank`, or None."""
        return next((fact for fact in self.facts if fact.rank == rank), None)


_Row = tuple[str, Fact]
"""The precedence of a fact, and the fact."""

_FACTS = (
    "SELECT f.precedence, f.topic_key, f.kind, f.rank, f.value,"
    f" nullif(f.chat_id, ''), f.source_message_id, f.updated_at, f.event_id, {POSITION}"
    " FROM facts f JOIN events e ON e.stream = f.stream AND e.id = f.event_id"
)


def topics_of_chat(db: Connection, chat: str | None) -> list[Topic]:
    """Return the chat's topics, newest first.

    chat: `<channel>:<chat_id>`; None for the store's own scope.
    """
    return _group_topics(db.execute(f"{_FACTS} WHERE f.chat_id = ?", (chat or "",)).fetchall())


def topic_with_key(topics: Sequence[Topic], keys: Sequence[str]) -> Topic | None:
    """Return the first topic whose key is in `keys`, or None."""
    return next((topic for topic in topics if topic.key in keys), None)


def topic_with_key_or_spelling(topics: Sequence[Topic], keys: Sequence[str]) -> Topic | None:
    """Return the first topic whose key is in `keys`, else one that matches apart from number or spelling."""
    alike = {topic_keys.normalise_key_for_comparison(key) for key in keys}
    return topic_with_key(topics, keys) or next(
        (topic for topic in topics if topic_keys.normalise_key_for_comparison(topic.key) in alike), None
    )


def all_topics(db: Connection) -> list[Topic]:
    """Return the topics of all chats, newest first."""
    return _group_topics(db.execute(_FACTS).fetchall())


def _group_topics(rows: Sequence[tuple[Any, ...]]) -> list[Topic]:
    facts = sorted(((row[0], make_struct_of_row(Fact, row[1:])) for row in rows), key=_scope_and_key_of_row)
    topics = [_make_topic(key, list(group)) for (_, key), group in groupby(facts, key=_scope_and_key_of_row)]
    return sorted(topics, key=lambda topic: topic.precedence, reverse=True)


def _scope_and_key_of_row(row: _Row) -> tuple[str, str]:
    return row[1].chat or "", topic_keys.normalise_stored_topic_key(row[1].topic_key)


def _make_topic(key: str, rows: Sequence[_Row]) -> Topic:
    precedence, newest = max(rows, key=lambda row: row[0])
    facts = [fact for _, fact in rows if (fact.topic_key, fact.kind) == (newest.topic_key, newest.kind)]
    keys = sorted({fact.topic_key for _, fact in rows})
    return Topic(key, keys, sorted(facts, key=lambda fact: fact.rank), precedence)


NOT_STORED = "I don't have that stored yet"
"""The answer when no fact is found."""

Rule = Literal["key", "rank", "list", "single", "first"]
"""How an answer was found.

key: by the topic's key. rank: by a rank in the list. list: by a question that asks for the whole list.
single: the topic has one value. first: by a question in the singular, which asks for the first entry.
"""

Choice = Callable[[Sequence[Topic]], Topic | None]
"""Chooses one of a chat's topics, which are sorted newest first."""


class Route(msgspec.Struct, kw_only=True):
    """How an answer was found.

    rule: see `Rule`.
    language: of the question; None for a key.
    topic_key: the topic that answers.
    ranks: ranks in its list; empty for the whole list or a single value.
    chat: the fact's chat, `<channel>:<chat_id>`; None for the store's own scope.
    most_recent: whether the question named no topic, so that the topic set last answers it.
    other_chat: whether the fact is from a different chat than the question.
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
    facts: the facts in the answer, by rank.
    route: how the answer was found; None without facts.
    why: why there are no facts; None if there are some.
    """

    found: bool
    answer: str
    facts: list[Fact]
    route: Route | None
    why: str | None


def make_answer_when_nothing_is_stored(why: str) -> FactAnswer:
    """Return the answer when no facts are stored."""
    return FactAnswer(found=False, answer=NOT_STORED, facts=[], route=None, why=why)


def answer_from_facts(facts: Sequence[Fact], route: Route) -> FactAnswer:
    """Return the answer made of `facts`."""
    # A value with several lines must not look like several ranks.
    lines = (f"{fact.rank}. {' '.join(fact.value.split())}" for fact in facts)
    answer = facts[0].value if len(facts) == 1 else "\n".join(lines)
    return FactAnswer(found=True, answer=answer, facts=list(facts), route=route, why=None)


def answer_by_key(
    db: Connection, key: str, *, rank: int | None, chat: str | None, any_chat: bool
) -> FactAnswer:
    """Answer with the topic's facts, or just the one at `rank`. `key` may differ in number or spelling."""
    topic = find_topic(
        db, lambda topics: topic_with_key_or_spelling(topics, [key]), chat=chat, any_chat=any_chat
    )
    if topic is None:
        return make_answer_when_nothing_is_stored(f"no topic {key} {describe_place(chat, any_chat=any_chat)}")
    facts = topic.facts if rank is None else [fact for fact in [topic.find_fact_at_rank(rank)] if fact]
    if not facts:
        return make_answer_when_nothing_is_stored(missing_rank_message(topic, rank or 0))
    route = Route(
        rule="key",
        language=None,
        topic_key=topic.key,
        ranks=[] if rank is None else [rank],
        chat=topic.chat,
        other_chat=topic.chat != chat,
    )
    return answer_from_facts(facts, route)


def find_topic(db: Connection, choose: Choice, *, chat: str | None, any_chat: bool) -> Topic | None:
    """Return the topic that `choose` picks in `chat` or else, with `any_chat`, its newest pick elsewhere."""
    own = choose(topics_of_chat(db, chat))
    if own is not None or not any_chat:
        return own
    others: dict[str | None, list[Topic]] = {}
    for topic in all_topics(db):
        if topic.chat != chat:
            others.setdefault(topic.chat, []).append(topic)
    chosen = map(choose, others.values())
    return max(filter(None, chosen), key=lambda topic: topic.precedence, default=None)


def describe_place(chat: str | None, *, any_chat: bool) -> str:
    """Describe where facts were looked up, for use in messages: `in telegram:7`."""
    if any_chat:
        return "in any chat"
    return "in the store's own scope" if chat is None else f"in {chat}"


def missing_rank_message(topic: Topic, rank: int) -> str:
    """Return a message saying that `topic` has no fact at `rank`."""
    if topic.kind == "single":
        return f"{topic.key} is a single value, without ranks"
    return f"{topic.key} has no rank {rank}, but {', '.join(str(fact.rank) for fact in topic.facts)}"


def answer_question(db: Connection, text: str, *, chat: str | None, any_chat: bool) -> FactAnswer:
    """Answer a question from a chat's facts.

    chat: `<channel>:<chat_id>`; None for the store's own scope.
    any_chat: if this chat lacks the topic, use the chat that set it last.
    """
    questions = list(parse_questions(text))
    if not questions:
        return make_answer_when_nothing_is_stored("memlog does not understand it as a question about a fact")
    for question in questions:
        topic = _find_topic_of_question(db, question, chat=chat, any_chat=any_chat)
        if topic is not None:
            return _make_answer(question, topic, chat)
    named = " or ".join(dict.fromkeys(question.name for question in questions))
    return make_answer_when_nothing_is_stored(f"no topic {named} {describe_place(chat, any_chat=any_chat)}")


# The topic


def _find_topic_of_question(
    db: Connection, question: Question, *, chat: str | None, any_chat: bool
) -> Topic | None:
    if question.names_a_topic:
        return find_topic(
            db, lambda topics: _choose_named_topic(question, topics), chat=chat, any_chat=any_chat
        )
    newest = find_topic(db, lambda topics: next(iter(topics), None), chat=chat, any_chat=any_chat)
    if newest is None or not question.is_favorite:
        return newest
    words = newest.key.split("_")
    named = (topic_keys.strip_word_for_favorite(words, each) for each in topic_keys.load_fact_words())
    return newest if any(part is not None for part in named) else None


def _choose_named_topic(question: Question, topics: Sequence[Topic]) -> Topic | None:
    keys = _list_possible_topic_keys(question)
    if keys is not None:
        return topic_with_key_or_spelling(topics, keys)
    names = [(topic, name) for topic in topics if (name := _comparable_words(topic, question)) is not None]
    same = [topic for topic, name in names if [*name] == [*question.words]]
    alike = same or [topic for topic, name in names if _has_same_stems(name, question)]
    return alike[0] if len(alike) == 1 else None


def _list_possible_topic_keys(question: Question) -> Sequence[str] | None:
    """Return the keys a question may mean; None if the stems of its words must be compared instead."""
    if question.names:
        return [topic_keys.make_topic_key(name) for name in question.names]
    if question.language != ENGLISH:
        key = (
            topic_keys.find_built_in_topic_key(question.words, question.language)
            if question.is_favorite
            else None
        )
        return None if key is None else [key]
    words = ["favorite", *question.words] if question.is_favorite else question.words
    try:
        return [topic_keys.make_topic_key(" ".join(words))]
    except BadInput:
        return []


def _comparable_words(topic: Topic, question: Question) -> Sequence[str] | None:
    """Return the words of the topic's key to compare with the question; None if it can't mean this topic."""
    words = topic.key.split("_")
    part = topic_keys.strip_word_for_favorite(words, question.language)
    return part if question.is_favorite else (words if part is None else None)


def _has_same_stems(name: Sequence[str], question: Question) -> bool:
    language = question.language
    # lempivärisi (your favourite colour) is not the user's.
    others = tuple(topic_keys.load_fact_words()[language].other_suffixes.split())
    return len(name) == len(question.words) and all(
        _stem_word(own, language) == _stem_word(word, language) and not word.endswith(others)
        for own, word in zip(name, question.words, strict=True)
    )


def _stem_word(word: str, language: str) -> str:
    stem = next((stem for _, stem in stemming.stem_words([word], [language])), word)
    # kaupunki, kaupungin: one of the two gradations represents both.
    gradation = topic_keys.load_fact_words()[language].gradation
    return stem.replace(*gradation) if gradation else stem


# The answer


def _make_answer(question: Question, topic: Topic, chat: str | None) -> FactAnswer:
    rule, facts = _choose_facts(question, topic)
    if not facts or None in facts:
        missing = next(
            (rank for rank in _find_ranks_asked_for(question) if topic.find_fact_at_rank(rank) is None), 1
        )
        return make_answer_when_nothing_is_stored(missing_rank_message(topic, missing))
    route = Route(
        rule=rule,
        language=question.language,
        topic_key=topic.key,
        ranks=_find_ranks_asked_for(question) or ([1] if rule == "first" else []),
        chat=topic.chat,
        most_recent=not question.names_a_topic,
        other_chat=topic.chat != chat,
    )
    return answer_from_facts([fact for fact in facts if fact], route)


def _choose_facts(question: Question, topic: Topic) -> tuple[Rule, Sequence[Fact | None]]:
    ranks = _find_ranks_asked_for(question)
    if ranks or question.top is not None:
        is_list = topic.kind == "ranked"
        return "rank", [topic.find_fact_at_rank(rank) if is_list else None for rank in ranks]
    if topic.kind == "single":
        return "single", topic.facts
    if _asks_for_list(question) or not question.is_favorite:
        return "list", topic.facts
    return "first", [topic.find_fact_at_rank(1)]


def _find_ranks_asked_for(question: Question) -> list[int]:
    return [*question.ranks] if question.top is None else [*range(1, question.top + 1)]


def _asks_for_list(question: Question) -> bool:
    if question.is_list or not question.words:
        return question.is_list
    last = question.words[-1]
    if question.language == ENGLISH:
        return topic_keys.is_plural(last)
    ending = topic_keys.load_fact_words()[question.language].plural_ending
    return ending != "" and last.endswith(ending)
