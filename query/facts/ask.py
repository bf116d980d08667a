"""Answers questions about facts. An uncertain question gets no answer, rather than a wrong one."""

from collections.abc import Sequence

from memlog.eventlog.errors import BadInput
from memlog.projector.sqlite import Connection
from memlog.projector.text import stemming
from memlog.projector.text.stemming import ENGLISH
from memlog.query.facts.answers import FactAnswer, Route, Rule, answered, find, no_rank, not_stored, where
from memlog.query.facts.current import Fact, Topic, called
from memlog.query.facts.question_parser import Question, parse
from memlog.query.facts.topic_keys import built_in, fact_words, favorite_part, is_plural, key_of


def ask(db: Connection, text: str, *, chat: str | None, any_chat: bool) -> FactAnswer:
    """Answers a question from the facts of a chat.

    any_chat: if the chat has no such topic, use the chat that set it last.
    """
    questions = list(parse(text))
    if not questions:
        return not_stored("it is not a question about a fact that memlog understands")
    for question in questions:
        topic = _topic(db, question, chat=chat, any_chat=any_chat)
        if topic is not None:
            return _answer(question, topic, chat)
    named = " or ".join(dict.fromkeys(question.name for question in questions))
    return not_stored(f"no topic {named} {where(chat, any_chat=any_chat)}")


# The topic


def _topic(db: Connection, question: Question, *, chat: str | None, any_chat: bool) -> Topic | None:
    """The topic that a question asks for; None if that is not certain."""
    if question.names_a_topic:
        return find(db, lambda topics: _named(question, topics), chat=chat, any_chat=any_chat)
    newest = find(db, lambda topics: next(iter(topics), None), chat=chat, any_chat=any_chat)
    return newest if newest and (not question.is_favorite or _is_favorite(newest)) else None


def _named(question: Question, topics: Sequence[Topic]) -> Topic | None:
    keys = _keys(question)
    if keys is not None:
        return called(topics, keys)
    names = [(topic, name) for topic in topics if (name := _name(topic, question)) is not None]
    same = [topic for topic, name in names if [*name] == [*question.words]]
    alike = same or [topic for topic, name in names if _has_same_stems(name, question)]
    return alike[0] if len(alike) == 1 else None


def _keys(question: Question) -> Sequence[str] | None:
    """The keys that a question can mean; None if only the inflection of its words can tell."""
    if question.names:
        return [key_of(name) for name in question.names]
    if question.language != ENGLISH:
        key = built_in(question.words, question.language) if question.is_favorite else None
        return None if key is None else [key]
    words = ["favorite", *question.words] if question.is_favorite else question.words
    try:
        return [key_of(" ".join(words))]
    except BadInput:
        return []


def _name(topic: Topic, question: Question) -> Sequence[str] | None:
    """The words of a topic's key to compare with those of the question; None if the topic cannot be meant."""
    words = topic.key.split("_")
    part = favorite_part(words, question.language)
    return part if question.is_favorite else (words if part is None else None)


def _has_same_stems(name: Sequence[str], question: Question) -> bool:
    language = question.language
    # lempivärisi (your favourite colour) is not mine.
    others = tuple(fact_words()[language].other_suffixes.split())
    return len(name) == len(question.words) and all(
        _stem(own, language) == _stem(word, language) and not word.endswith(others)
        for own, word in zip(name, question.words, strict=True)
    )


def _stem(word: str, language: str) -> str:
    stem = next((stem for _, stem in stemming.stems([word], [language])), word)
    # kaupunki, kaupungin: one of the two gradations stands for both.
    gradation = fact_words()[language].gradation
    return stem.replace(*gradation) if gradation else stem


def _is_favorite(topic: Topic) -> bool:
    return any(favorite_part(topic.key.split("_"), language) is not None for language in fact_words())


# The answer


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
    """Whether a question without a rank asks for the whole list."""
    if question.is_list or not question.words:
        return question.is_list
    last = question.words[-1]
    ending = fact_words()[question.language].plural_ending
    return is_plural(last) if question.language == ENGLISH else ending != "" and last.endswith(ending)
