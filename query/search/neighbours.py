"""Neighbours of messages: their scores count for a message, so that the question before it finds "Yes, last
May.".

Each search adds the scores up; nothing is stored, so a late message is a neighbour of others at once. On
LoCoMo this finds as much as a full-text column with the neighbours' text, which would be five times the index
(docs/search.md).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from memlog.eventlog import timestamps
from memlog.projector.sqlite import Connection, as_list
from memlog.projector.text.stemming import english_stem
from memlog.projector.text.tokens import other_spelling
from memlog.query.conversations import ORDER
from memlog.query.event_index import Key
from memlog.query.filters import Filters
from memlog.query.memories import age_in_days, relevance
from memlog.query.search.hits import Candidate, Ref

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
        """Return the factor of a memory's score.

        It is 0.9 for a faded one, 1 for a new one of importance 0.5, 1.1 for the most important.
        """
        return 1.0 if self.relevance is None else 0.9 + 0.2 * self.relevance


def priors(
    messages: Mapping[int, SearchedMessage], passages: Mapping[Ref, SearchedPassage], question: str
) -> dict[Ref, float]:
    """Return the likelihood of each candidate, plus a weight if the question names its speaker or topic."""
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
    """Return the topics that a question names by all of their words."""
    return _named_topics(topics, _words_of(question))


def _named_topics(topics: set[str], words: frozenset[str]) -> set[str]:
    """Return the topics whose words are all among `words`, in English in either number and spelling."""
    if not topics:
        return set()
    roots = set(map(_root, words))
    of_topics = {topic: {*map(_root, _words_of(topic))} for topic in topics}
    return {topic for topic, of_topic in of_topics.items() if of_topic and of_topic <= roots}


def _root(word: str) -> str:
    """Return the common form of an English word in either number and spelling."""
    return min(english_stem(word), english_stem(other_spelling(word) or word))


def passages_of(db: Connection, candidates: Iterable[Candidate]) -> dict[Ref, SearchedPassage]:
    """Return the candidates that are not messages."""
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


SPAN = 2
"""Turns on each side that are neighbours."""


class Neighbourhood(msgspec.Struct, frozen=True, dict=True):
    """Messages and their neighbours, by message number.

    line: the numbers in order, with a gap where a session ends or the next message is no neighbour.
    """

    messages: dict[int, SearchedMessage]
    line: list[int | None]

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each message on the line."""
        return {number: place for place, number in enumerate(self.line) if number is not None}

    def behind(self, key: Key) -> Key | None:
        """Return the next message of the session behind one; None without, or if it is not known."""
        for number, message in self.messages.items():
            if message.key == key and (place := self.places.get(number)) is not None:
                following = self.line[place + 1] if place + 1 < len(self.line) else None
                return None if following is None else self.messages[following].key
        return None

    def by_number(self, values: Iterable[float]) -> Iterator[tuple[int, float]]:
        """Return the messages with their values, which are given by place on the line."""
        return (
            (number, value) for number, value in zip(self.line, values, strict=True) if number is not None
        )

    def spread(self, scores: Iterable[tuple[int, float]], weights: Sequence[float]) -> list[float]:
        """Return the score of each place on the line, with the weighted scores of its neighbours.

        scores: by place. weights: of neighbours one turn away, two turns away.
        """
        spread = [0.0] * len(self.line)
        for place, score in scores:
            spread[place] += score
            for turns, weight in enumerate(weights, start=1):
                spread[place - turns] += weight * score
                spread[place + turns] += weight * score
        return spread


NO_NEIGHBOURS = Neighbourhood({}, [])


def neighbourhood_of(
    db: Connection, numbers: Iterable[int], filters: Filters, *, alone: bool
) -> Neighbourhood:
    """Return the messages with these numbers and, unless `alone`, up to two on each side.

    The neighbours are in the same session.
    """
    condition = filters.of_messages()
    chosen = as_list(list(numbers))
    if condition is None or chosen == "[]":
        return Neighbourhood({}, [])
    # Messages and breaks in order; a window that reaches beyond its chat has nulls at that end.
    with_nulls = [] if alone else db.execute(_WINDOWS, (chosen,)).fetchall()
    windows: list[list[int]] = [[number for number in row if number is not None] for row in with_nulls]
    around = {number for window in windows for number in window}
    rows = db.execute(
        f"SELECT message_no, type = 'session_break', stream, id, created_at, {LIKELIHOOD.format('content')},"
        f" name, ({condition[0]}) FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))",
        [*condition[1], as_list(sorted(around)) if windows else chosen],
    ).fetchall()
    messages = {
        number: SearchedMessage((stream, event_id), ts, speaker, likelihood, bool(is_wanted))
        for number, is_break, stream, event_id, ts, likelihood, speaker, is_wanted in rows
        if not is_break
    }
    pairs = (pair for window in windows for pair in pairwise(window))
    following = {number: behind for number, behind in pairs if number in messages and behind in messages}
    return Neighbourhood(messages, _line(messages, following))


def _line(messages: Iterable[int], following: dict[int, int]) -> list[int | None]:
    """Return the numbers in order, with gaps that no score crosses.

    following: the next message of each, unless a session break is between them.
    """
    gap = [None] * SPAN
    line: list[int | None] = [*gap]
    behind_others = set(following.values())
    for number in messages:
        if number in behind_others:
            continue
        line.append(number)
        # pop: in a damaged index a message may follow itself.
        while number := following.pop(number, 0):
            line.append(number)
        line += gap
    return line


def _beside(turns: int) -> str:
    """Return the number of the message `turns` after one; before it if negative."""
    sign, direction = (">", "ASC") if turns > 0 else ("<", "DESC")
    columns, own = (", ".join(f"{table}.{column}" for column in ORDER) for table in "nm")
    order = ", ".join(f"n.{column} {direction}" for column in ORDER)
    return (
        "(SELECT n.message_no FROM messages n WHERE n.channel = m.channel AND n.chat_id = m.chat_id"
        f" AND ({columns}) {sign} ({own}) ORDER BY {order} LIMIT 1 OFFSET {abs(turns) - 1})"
    )


_WINDOWS = (
    f"SELECT {', '.join(_beside(turns) if turns else 'message_no' for turns in range(-SPAN, SPAN + 1))}"
    " FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))"
)
