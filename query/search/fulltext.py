"""The full-text side of a search: the best matches by bm25."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from memlog.eventlog import timestamps
from memlog.projector.sqlite import Connection, to_json_list
from memlog.projector.text.stemming import english_stem
from memlog.projector.text.tokens import other_spelling
from memlog.query.conversations import ORDER
from memlog.query.event_index import Key, Sql
from memlog.query.facts.topic_keys import define_sql_function_topic_key
from memlog.query.filters import DOC_CHUNKS, MEMORY_CHUNKS, Filters, Kind
from memlog.query.memories import age_in_days, compute_relevance
from memlog.query.search import hits
from memlog.query.search.copies import Fetched, best_distinct_texts

_LONG = 240
_LENGTH_WEIGHT = 0.2
_SPEAKER_WEIGHT = 0.3
_TOPIC_WEIGHT = 0.3
_QUESTION_WEIGHT = 0.1
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_WORD = re.compile(r"[^\W_]+")

LIKELIHOOD = (
    f"{_LENGTH_WEIGHT} * min(length({{0}}), {_LONG}) / {_LONG}.0"
    f" - {_QUESTION_WEIGHT} * (substr(rtrim({{0}}), -1) IN ({', '.join(map(repr, QUESTION_MARKS))}))"
)
"""The SQL template of a text's prior, that is, how likely it answers any question: lower for short texts and
for questions. It is added to scores from 0 to 1, and is formatted with the column of the text."""


class SearchedMessage(NamedTuple):
    """A matching message, or a neighbour of one.

    likelihood: see `LIKELIHOOD`. is_wanted: whether the filters allow it as a hit.
    """

    key: tuple[str, str]
    ts: str
    speaker: str | None
    likelihood: float
    is_wanted: bool


class SearchedPassage(NamedTuple):
    """A matching passage of anything but a message.

    likelihood: see `LIKELIHOOD`. relevance: a memory's current relevance; None for other owners.
    topic: the topic of a memory or the key of a fact.
    """

    likelihood: float
    relevance: float | None
    topic: str | None = None

    @property
    def factor(self) -> float:
        """The factor for its score: 0.9 (faded) to 1.1 for a memory, 1 for anything else."""
        return 1.0 if self.relevance is None else 0.9 + 0.2 * self.relevance


def candidate_priors(
    messages: Mapping[int, SearchedMessage], passages: Mapping[hits.Ref, SearchedPassage], question: str
) -> dict[hits.Ref, float]:
    """Return each candidate's likelihood, plus a bonus if the question names its speaker or topic."""
    words = _casefold_words(question)
    speakers = {message.speaker for message in messages.values() if message.speaker}
    speakers = {name for name in speakers if not words.isdisjoint(_words_of_speaker(name))}
    topics = _named_topics({passage.topic for passage in passages.values() if passage.topic}, words)
    of_messages: dict[hits.Ref, float] = {
        number: message.likelihood + (_SPEAKER_WEIGHT if message.speaker in speakers else 0.0)
        for number, message in messages.items()
    }
    return of_messages | {
        ref: passage.likelihood + (_TOPIC_WEIGHT if passage.topic in topics else 0.0)
        for ref, passage in passages.items()
    }


def _named_topics(topics: set[str], words: frozenset[str]) -> set[str]:
    """Return the topics whose words are all in `words`, regardless of English number and spelling."""
    if not topics:
        return set()
    roots = set(map(_reduce_word_to_root, words))
    of_topics = {topic: {*map(_reduce_word_to_root, _casefold_words(topic))} for topic in topics}
    return {topic for topic, of_topic in of_topics.items() if of_topic and of_topic <= roots}


def _reduce_word_to_root(word: str) -> str:
    """Reduce both numbers and both spellings of an English word to one form."""
    return min(english_stem(word), english_stem(other_spelling(word) or word))


def find_matching_passages(
    db: Connection, candidates: Iterable[hits.Candidate]
) -> dict[hits.Ref, SearchedPassage]:
    """Return the matching passage of each candidate that is not a message."""
    refs: dict[str, dict[int, hits.Ref]] = {_MEMORIES: {}, _DOCUMENTS: {}}
    for candidate in candidates:
        if candidate.message_no is None and candidate.chunk_no is not None:
            sql = _DOCUMENTS if candidate.kind == "document" else _MEMORIES
            refs[sql][candidate.chunk_no] = candidate.ref
    today = timestamps.today()
    passages: dict[hits.Ref, SearchedPassage] = {}
    for sql, by_number in refs.items():
        rows = db.execute(sql, (to_json_list(list(by_number)),)).fetchall() if by_number else []
        for number, likelihood, topic, importance, salience, category, updated_at in rows:
            age = age_in_days(updated_at or today, today)
            relevant = None if category is None else compute_relevance(importance, salience, category, age)
            passages[by_number[number]] = SearchedPassage(likelihood, relevant, topic)
    return passages


def _casefold_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


# Cached for the names of speakers, which are few, but not for questions.
_words_of_speaker = lru_cache(maxsize=256)(_casefold_words)

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
"""The number of turns on each side of a message that count as its neighbours."""


class Neighbourhood(msgspec.Struct, frozen=True, dict=True):
    """Messages and their neighbours, keyed by message number.

    line: the numbers in order, with a gap where a session ends or the next message is not a neighbour.
    """

    messages: dict[int, SearchedMessage]
    line: list[int | None]

    @cached_property
    def places_by_number(self) -> dict[int, int]:
        """Each message's place on the line."""
        return {number: place for place, number in enumerate(self.line) if number is not None}

    def find_message_after(self, key: Key) -> Key | None:
        """Return the key of the next message in the session; None if unknown."""
        for number, message in self.messages.items():
            if message.key == key and (place := self.places_by_number.get(number)) is not None:
                following = self.line[place + 1] if place + 1 < len(self.line) else None
                return None if following is None else self.messages[following].key
        return None

    def pair_numbers_with_values(self, values: Iterable[float]) -> Iterator[tuple[int, float]]:
        """Pair each message number on the line with its value. values: one per place, gaps included."""
        return (
            (number, value) for number, value in zip(self.line, values, strict=True) if number is not None
        )

    def add_neighbour_scores(
        self, scores: Iterable[tuple[int, float]], weights: Sequence[float]
    ) -> list[float]:
        """Return each place's score plus the weighted scores of its neighbours.

        scores: by place. weights: of neighbours one turn away, two turns away, and so on.
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
    """Return the messages with these numbers and, unless `alone`, up to two neighbours on each side."""
    condition = filters.of_messages()
    chosen = to_json_list(list(numbers))
    if condition is None or chosen == "[]":
        return NO_NEIGHBOURS
    # Messages and breaks in order; a window that extends beyond its chat has nulls at that end.
    with_nulls = [] if alone else db.execute(_WINDOWS, (chosen,)).fetchall()
    windows: list[list[int]] = [[number for number in row if number is not None] for row in with_nulls]
    around = {number for window in windows for number in window}
    rows = db.execute(
        f"SELECT message_no, type = 'session_break', stream, id, created_at, {LIKELIHOOD.format('content')},"
        f" name, ({condition[0]}) FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))",
        [*condition[1], to_json_list(sorted(around)) if windows else chosen],
    ).fetchall()
    messages = {
        number: SearchedMessage((stream, event_id), ts, speaker, likelihood, bool(is_wanted))
        for number, is_break, stream, event_id, ts, likelihood, speaker, is_wanted in rows
        if not is_break
    }
    pairs = (pair for window in windows for pair in pairwise(window))
    following = {number: behind for number, behind in pairs if number in messages and behind in messages}
    return Neighbourhood(messages, _chain_with_gaps(messages, following))


def _chain_with_gaps(messages: Iterable[int], following: dict[int, int]) -> list[int | None]:
    """Return the numbers in order, with gaps that scores do not cross.

    following: maps each message to the next one, unless a session break lies between them.
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


def _sql_for_number_of_neighbour(turns: int) -> str:
    """Return SQL for the number of the message `turns` after `m`, or before it if negative."""
    sign, direction = (">", "ASC") if turns > 0 else ("<", "DESC")
    columns, own = (", ".join(f"{table}.{column}" for column in ORDER) for table in "nm")
    order = ", ".join(f"n.{column} {direction}" for column in ORDER)
    return (
        "(SELECT n.message_no FROM messages n WHERE n.channel = m.channel AND n.chat_id = m.chat_id"
        f" AND ({columns}) {sign} ({own}) ORDER BY {order} LIMIT 1 OFFSET {abs(turns) - 1})"
    )


_NUMBERS = ", ".join(
    _sql_for_number_of_neighbour(turns) if turns else "message_no" for turns in range(-SPAN, SPAN + 1)
)
_WINDOWS = f"SELECT {_NUMBERS} FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))"


class FulltextIndex(NamedTuple):
    """A full-text table, the rows it indexes, and the columns of a candidate."""

    table: str
    rows: str
    rowid: str
    columns: str
    condition: Callable[[Filters], Sql | None]


_OF_MEMORIES = (
    "memory_chunks_fts",
    MEMORY_CHUNKS,
    "c.chunk_no",
    hits.MEMORY_PASSAGE,
    Filters.of_memories,
)
_OF_DOCUMENTS = ("doc_chunks_fts", DOC_CHUNKS, "c.chunk_no", hits.DOC_PASSAGE, Filters.of_documents)
INDEXES: dict[Kind, FulltextIndex] = {
    "message": FulltextIndex("messages_fts", "messages m", "m.message_no", hits.MESSAGE, Filters.of_messages),
    "memory": FulltextIndex(*_OF_MEMORIES),
    "document": FulltextIndex(*_OF_DOCUMENTS),
}


def find_best_matches(
    db: Connection, expression: str, filters: Filters, depth: int
) -> list[list[hits.Candidate]]:
    """Return the best messages, memories and documents, up to `depth` of each."""
    if filters.topic is not None:
        define_sql_function_topic_key(db)
    return [_search_index(db, index, expression, filters, depth) for index in INDEXES.values()]


def find_allowed_candidates_among(
    db: Connection, kind: Kind, numbers: Sequence[int], filters: Filters
) -> list[hits.Candidate]:
    """Return the rows `numbers` of a full-text table that the filters allow, as candidates."""
    among = f"AND {INDEXES[kind].rowid} IN (SELECT value FROM json_each(?))"
    return _unscored_candidates(db, kind, filters, among, to_json_list([*numbers]))


def newest_candidates(db: Connection, kind: Kind, filters: Filters, most: int) -> list[hits.Candidate]:
    """Return the newest `most` candidates in a full-text table that the filters allow."""
    return _unscored_candidates(db, kind, filters, "ORDER BY 5 DESC, 4 LIMIT ?", most)


def _unscored_candidates(
    db: Connection, kind: Kind, filters: Filters, end: str, value: str | int
) -> list[hits.Candidate]:
    index = INDEXES[kind]
    if (condition := index.condition(filters)) is None:
        return []
    sql = f"SELECT {index.columns} FROM {index.rows} WHERE {condition[0]} {end}"
    return [hits.make_candidate_of_row(row, 0.0) for row in db.execute(sql, [*condition[1], value])]


def score_with_neighbours(db: Connection, terms: Sequence[str], around: Neighbourhood) -> hits.Scores:
    """Score the messages in `around` by their own words and those of their neighbours.

    A neighbour excluded by the filters adds to others' scores, but gets none.

    terms: the question's words and phrases, each an FTS5 expression.
    """
    total = [0.0] * len(around.line)
    places = around.places_by_number
    numbers = to_json_list(list(around.messages))
    for term in terms if around.messages else ():
        own = [(places[number], score) for number, score in db.execute(_TERM_SCORES, (term, numbers))]
        most = _WORD_LIMIT * max((score for _, score in own), default=0.0)
        spread = around.add_neighbour_scores(own, _WEIGHTS)
        total = [
            before + (score if score < most else most) for before, score in zip(total, spread, strict=True)
        ]
        for place, score in own:
            total[place] += _OWN_SHARE * score
    rounded = ((number, round(score, _DIGITS)) for number, score in around.pair_numbers_with_values(total))
    return {number: score for number, score in rounded if score > 0 and around.messages[number].is_wanted}


_WEIGHTS = (0.6, 0.4)
"""The weights of a neighbour one turn and two turns away."""

_WORD_LIMIT = 0.8
"""The most that a word adds to a message's score, as a share of the word's best match."""

_OWN_SHARE = 0.1
"""The share of its own score that a message gets on top of the limit, so that it precedes its neighbours."""

_DIGITS = 9
"""The digits to which scores are rounded. Six are too few: the bm25 of a word that most texts contain is
about a millionth."""


# The plus keeps SQLite from running the match again for each number.
_TERM_SCORES = (
    "SELECT rowid, -bm25(messages_fts) FROM messages_fts WHERE messages_fts MATCH ?"
    " AND +rowid IN (SELECT value FROM json_each(?))"
)


def _search_index(
    db: Connection, index: FulltextIndex, expression: str, filters: Filters, depth: int
) -> list[hits.Candidate]:
    condition = index.condition(filters)
    if condition is None:
        return []

    def fetch_candidates(limit: int) -> Fetched:
        rows = db.execute(
            # Ordering by bm25() was measured 1.3 to 3 times as fast as ordering by rank.
            f"SELECT {index.columns}, -bm25({index.table}) FROM {index.table}"
            # CROSS JOIN: query the full text once, not once for each row that passes the filters.
            f" CROSS JOIN {index.rows} WHERE {index.rowid} = {index.table}.rowid"
            f" AND {index.table} MATCH ? AND {condition[0]} ORDER BY bm25({index.table}) LIMIT ?",
            [expression, *condition[1], limit],
        ).fetchall()
        candidates = [hits.make_candidate_of_row(row, round(score, _DIGITS)) for *row, score in rows]
        return Fetched(candidates, is_all=len(rows) < limit)

    return best_distinct_texts(db, fetch_candidates, depth)
