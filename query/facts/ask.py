"""Answers questions of facts in plain words, only by the topic that is named: rather not than wrongly."""

from collections.abc import Sequence

from memlog.eventlog.errors import BadInput
from memlog.projector.sqlite import Connection
from memlog.projector.text import stemming
from memlog.projector.text.stemming import ENGLISH
from memlog.query.facts.answers import (
    Choice,
    FactAnswer,
    Route,
    Rule,
    answered,
    find,
    no_rank,
    not_stored,
    where,
)
from memlog.query.facts.current import Fact, Topic
from memlog.query.facts.question_parser import Question, understood
from memlog.query.facts.topic_keys import built_in, fact_words, favorite_part, is_plural, key_of


def ask(db: Connection, text: str, *, chat: str | None, any_chat: bool) -> FactAnswer:
    """What the facts of a chat answer to a question; with `any_chat`, where they have no such topic, those of
    the chat that set it last.
    """
    questions = list(understood(text))
    if not questions:
        return not_stored("it is not understood as a question of a fact")
    for question in questions:
        topic = _asked(db, question, chat=chat, any_chat=any_chat)
        if topic is not None:
            return _answer(question, topic, chat)
    named = " or ".join(dict.fromkeys(question.name for question in questions))
    return not_stored(f"no topic {named} {where(chat, any_chat=any_chat)}")


# Which topic


def _asked(db: Connection, question: Question, *, chat: str | None, any_chat: bool) -> Topic | None:
    """The topic that is asked for; None where that is not certain."""
    if question.names_a_topic:
        return find(db, _chosen(question), chat=chat, any_chat=any_chat)
    newest = find(db, lambda those: next(iter(those), None), chat=chat, any_chat=any_chat)
    return newest if newest and (not question.is_favorite or _is_favorite(newest)) else None


def _chosen(question: Question) -> Choice:
    """Picks the topic that is asked for; None where that is not certain."""

    def chosen(topics: Sequence[Topic]) -> Topic | None:
        if question.names:
            keys = [key_of(name) for name in question.names]
            return next((topic for topic in topics if topic.key in keys), None)
        return _named(question, topics)

    return chosen


def _named(question: Question, topics: Sequence[Topic]) -> Topic | None:
    key = _key(question)
    if key is not None:
        return next((topic for topic in topics if topic.key == key), None)
    by_name = {topic.key: _name(topic, question) for topic in topics}
    for alike in (_same, _same_stems):
        found = [
            topic
            for topic in topics
            if (name := by_name[topic.key]) is not None and alike(name, question.words, question.language)
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _key(question: Question) -> str | None:
    """The one key that a question can mean; None where inflection leaves it open."""
    if question.language != ENGLISH:
        return built_in(question.words, question.language) if question.is_favorite else None
    words = ["favorite", *question.words] if question.is_favorite else question.words
    try:
        return key_of(" ".join(words))
    except BadInput:
        return ""


def _name(topic: Topic, question: Question) -> Sequence[str] | None:
    """The words of a topic's key that can be those of the question."""
    words = topic.key.split("_")
    part = favorite_part(words, question.language)
    return part if question.is_favorite else (words if part is None else None)


def _same(one: Sequence[str], other: Sequence[str], language: str) -> bool:  # noqa: ARG001 - as `_same_stems`
    return [*one] == [*other]


def _same_stems(one: Sequence[str], other: Sequence[str], language: str) -> bool:
    return len(one) == len(other) and all(
        _stem(word, language) == _stem(asked, language) and not _is_of_others(asked, language)
        for word, asked in zip(one, other, strict=True)
    )


def _stem(word: str, language: str) -> str:
    stem = next((stem for _, stem in stemming.stems([word], [language])), word)
    # kaupunki, kaupungin: of the gradations the one that two words are not told apart by.
    gradation = fact_words()[language].gradation
    return stem.replace(*gradation) if gradation else stem


def _is_of_others(word: str, language: str) -> bool:
    """Whether a word says that it is yours, theirs or ours, and not mine: `lempivärisi`."""
    return word.endswith(tuple(fact_words()[language].other_suffixes.split()))


def _is_favorite(topic: Topic) -> bool:
    return any(favorite_part(topic.key.split("_"), language) is not None for language in fact_words())


# What of it


def _answer(question: Question, topic: Topic, chat: str | None) -> FactAnswer:
    rule, facts = _facts(question, topic)
    if not facts or None in facts:
        missing = next((rank for rank in _ranks(question) if topic.at(rank) is None), 1)
        return not_stored(no_rank(topic, missing))
    route = Route(
        rule=rule,
        language=question.language,
        topic_key=topic.key,
        ranks=_ranks(question) or ([1] if rule == "first" else []),
        chat=topic.chat,
        most_recent=not question.names_a_topic,
        other_chat=topic.chat != chat,
    )
    return answered([fact for fact in facts if fact], route)


def _facts(question: Question, topic: Topic) -> tuple[Rule, Sequence[Fact | None]]:
    ranks = _ranks(question)
    if ranks or question.top is not None:
        is_list = topic.kind == "ranked"
        return "rank", [topic.at(rank) if is_list else None for rank in ranks]
    if topic.kind == "single":
        return "single", topic.facts
    if _is_of_several(question) or not question.is_favorite:
        return "list", topic.facts
    return "first", [topic.at(1)]


def _ranks(question: Question) -> list[int]:
    return [*question.ranks] if question.top is None else [*range(1, question.top + 1)]


def _is_of_several(question: Question) -> bool:
    """Whether a question without a rank asks for all of a list."""
    if question.is_list or not question.words:
        return question.is_list
    last = question.words[-1]
    ending = fact_words()[question.language].plural_ending
    return is_plural(last) if question.language == ENGLISH else ending != "" and last.endswith(ending)
