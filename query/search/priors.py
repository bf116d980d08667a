"""What a ranking knows of a candidate beside how well it matches: who said it, its topic, its length."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

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
_ASKING = "?\uff1f\u061f"
_WORD = re.compile(r"[^\W_]+")

LIKELIHOOD = (
    f"{_LENGTH_WEIGHT} * min(length({{0}}), {_LONG}) / {_LONG}.0"
    f" - {_ASKING_WEIGHT} * (substr(rtrim({{0}}), -1) IN ({', '.join(map(repr, _ASKING))}))"
)
"""An expression for how much more likely than others a text is to answer any question, where scores go from 0
to 1: what is short, or asks, is less. To be formatted with the text's column."""


class HasLikelihood(Protocol):
    """What has a likelihood, and perhaps a speaker."""

    @property
    def likelihood(self) -> float:
        """As `LIKELIHOOD`."""

    @property
    def speaker(self) -> str | None:
        """Whoever said it; None where nobody is known."""


class Passage(NamedTuple):
    """What a passage is like that is no message's.

    relevance: of a memory today; None of all else.
    topic: of a memory that has one, and of a fact its key.
    """

    likelihood: float
    relevance: float | None
    speaker: str | None = None
    topic: str | None = None

    @property
    def factor(self) -> float:
        """What a memory's score is multiplied by: 0.9 for one that has faded, 1 for a new one of importance
        0.5, 1.1 for the most important."""
        return 1.0 if self.relevance is None else 0.9 + 0.2 * self.relevance


def priors(said: Mapping[Ref, HasLikelihood], question: str) -> dict[Ref, float]:
    """How much more likely than others each is to answer a question, where scores go from 0 to 1.

    A speaker that the question names counts beside the likelihood, and a topic that it names.
    """
    asked = _words_of(question)
    speakers = {each.speaker for each in said.values() if each.speaker}
    named = {name for name in speakers if not asked.isdisjoint(_words_of_speaker(name))}
    counted = {
        ref: each.likelihood + (_SPEAKER_WEIGHT if each.speaker in named else 0.0)
        for ref, each in said.items()
    }
    topics = {ref: each.topic for ref, each in said.items() if isinstance(each, Passage) and each.topic}
    named_topics = _named_topics(set(topics.values()), asked)
    return counted | {
        ref: counted[ref] + _TOPIC_WEIGHT for ref, topic in topics.items() if topic in named_topics
    }


def named_topics(topics: set[str], question: str) -> set[str]:
    """Those topics that a question names by all of their words."""
    return _named_topics(topics, _words_of(question))


def _named_topics(topics: set[str], asked: frozenset[str]) -> set[str]:
    """Those of which all words are asked, in English in either number and spelling."""
    if not topics:
        return set()
    roots = set(map(_root, asked))
    words = {topic: {*map(_root, _words_of(topic))} for topic in topics}
    return {topic for topic in topics if words[topic] and words[topic] <= roots}


def _root(word: str) -> str:
    """What is the same for a word of English in either number and spelling."""
    return min(english_stem(word), english_stem(other_spelling(word) or word))


def passages_of(db: Connection, candidates: Iterable[Candidate]) -> dict[Ref, Passage]:
    """What the candidates are like that are no messages."""
    passages: dict[str, dict[int, Ref]] = {_MEMORIES: {}, _DOCUMENTS: {}}
    today = timestamps.today()
    for found in candidates:
        if found.message_no is None and found.chunk_no is not None:
            sql = _DOCUMENTS if found.kind == "document" else _MEMORIES
            passages[sql][found.chunk_no] = found.ref
    return {
        refs[number]: Passage(likelihood, _relevance(said, today), topic=topic)
        for sql, refs in passages.items()
        if refs
        for number, likelihood, topic, *said in db.execute(sql, (as_list(list(refs)),)).fetchall()
    }


def _relevance(said: Sequence[Any], today: str) -> float | None:
    importance, salience, category, updated_at = said
    if category is None:
        return None
    return relevance(importance, salience, category, age_in_days(updated_at, today))


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


# A few people say most of what is found; of questions none is kept.
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
