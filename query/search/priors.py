"""What counts for a candidate beside its match: speaker, topic, length, being a question, relevance."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from memlog.eventlog import timestamps
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.projector.text.spelling import other_spelling
from memlog.projector.text.stemming import english_stem
from memlog.query.relevance import age_in_days, relevance
from memlog.query.search.candidates import Candidate, Ref

_LONG = 240
_LENGTH_WEIGHT = 0.2
_SPEAKER_WEIGHT = 0.3
_TOPIC_WEIGHT = 0.3
_ASKING_WEIGHT = 0.1
ASKING = ("?", "\uff1f", "\u061f")
_WORD = re.compile(r"[^\W_]+")

LIKELIHOOD = (
    f"{_LENGTH_WEIGHT} * min(length({{0}}), {_LONG}) / {_LONG}.0"
    f" - {_ASKING_WEIGHT} * (substr(rtrim({{0}}), -1) IN ({', '.join(map(repr, ASKING))}))"
)
"""An expression for the likelihood of a text as an answer to any question, added to scores from 0 to 1: short
texts and questions have less. To be formatted with the text's column."""


class SearchedMessage(NamedTuple):
    """A message that was found, or a neighbour of one.

    likelihood: see `LIKELIHOOD`. is_wanted: whether the filters allow it.
    """

    key: tuple[str, str]
    ts: str
    speaker: str | None
    likelihood: float
    is_wanted: bool


class SearchedPassage(NamedTuple):
    """A passage that was found, of anything but a message.

    likelihood: see `LIKELIHOOD`. relevance: of a memory today; else None.
    topic: of a memory, or the key of a fact.
    """

    likelihood: float
    relevance: float | None
    topic: str | None = None

    @property
    def factor(self) -> float:
        """The factor of a memory's score: 0.9 for a faded one, 1 for a new one of importance 0.5, 1.1 for the
        most important."""
        return 1.0 if self.relevance is None else 0.9 + 0.2 * self.relevance


def priors(
    messages: Mapping[int, SearchedMessage], passages: Mapping[Ref, SearchedPassage], question: str
) -> dict[Ref, float]:
    """The likelihood of each, plus a weight if the question names its speaker or its topic."""
    words = _words_of(question)
    speakers = {message.speaker for message in messages.values() if message.speaker}
    speakers = {name for name in speakers if not words.isdisjoint(_words_of_speaker(name))}
    topics = _named_topics({passage.topic for passage in passages.values() if passage.topic}, words)
    of_messages: dict[Ref, float] = {
        number: message.likelihood + (_SPEAKER_WEIGHT if message.speaker in speakers else 0.0)
        for number, message in messages.items()
    }
    return of_messages | {
        ref: passage.likelihood + (_TOPIC_WEIGHT if passage.topic in topics else 0.0)
        for ref, passage in passages.items()
    }


def named_topics(topics: set[str], question: str) -> set[str]:
    """The topics that a question names by all of their words."""
    return _named_topics(topics, _words_of(question))


def _named_topics(topics: set[str], words: frozenset[str]) -> set[str]:
    """The topics of which all words are among `words`, in English in either number and spelling."""
    if not topics:
        return set()
    roots = set(map(_root, words))
    of_topics = {topic: {*map(_root, _words_of(topic))} for topic in topics}
    return {topic for topic, of_topic in of_topics.items() if of_topic and of_topic <= roots}


def _root(word: str) -> str:
    """The common form of an English word in either number and spelling."""
    return min(english_stem(word), english_stem(other_spelling(word) or word))


def passages_of(db: Connection, candidates: Iterable[Candidate]) -> dict[Ref, SearchedPassage]:
    """The candidates that are no messages."""
    refs: dict[str, dict[int, Ref]] = {_MEMORIES: {}, _DOCUMENTS: {}}
    for candidate in candidates:
        if candidate.message_no is None and candidate.chunk_no is not None:
            sql = _DOCUMENTS if candidate.kind == "document" else _MEMORIES
            refs[sql][candidate.chunk_no] = candidate.ref
    today = timestamps.today()
    passages: dict[Ref, SearchedPassage] = {}
    for sql, by_number in refs.items():
        rows = db.execute(sql, (as_list(list(by_number)),)).fetchall() if by_number else []
        for number, likelihood, topic, importance, salience, category, updated_at in rows:
            age = age_in_days(updated_at or today, today)
            relevant = None if category is None else relevance(importance, salience, category, age)
            passages[by_number[number]] = SearchedPassage(likelihood, relevant, topic)
    return passages


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


# Most messages have few speakers. No question is kept.
_words_of_speaker = lru_cache(maxsize=256)(_words_of)

_MEMORIES = (
    f"SELECT chunk_no, {LIKELIHOOD.format('c.content')}, coalesce(y.topic, f.topic_key),"
    " y.importance, y.salience, y.category, y.updated_at"
    " FROM memory_chunks c LEFT JOIN memories y ON y.memory_id = c.memory_id"
    " LEFT JOIN facts f ON f.fact_id = c.fact_id"
    " WHERE chunk_no IN (SELECT value FROM json_each(?))"
)
_DOCUMENTS = (
    f"SELECT chunk_no, {LIKELIHOOD.format('content')}, NULL, NULL, NULL, NULL, NULL FROM doc_chunks"
    " WHERE chunk_no IN (SELECT value FROM json_each(?))"
)
