"""The full-text side of a search: what matches an expression best, by bm25.

Messages, memories and documents are ranked separately: bm25 of different tables cannot be compared.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memlog.projector.sqlite import Connection, as_list
from memlog.query.event_index import Sql
from memlog.query.facts.topic_keys import teach_topics
from memlog.query.filters import DOC_CHUNKS, MEMORY_CHUNKS, Filters
from memlog.query.search.copies import Fetched, best
from memlog.query.search.hits import DOC_PASSAGE, MEMORY_PASSAGE, MESSAGE, Candidate, Scores, candidate_of
from memlog.query.search.neighbours import Neighbourhood


class _Index(NamedTuple):
    """A full-text table, the rows behind its entries, and the columns that make a candidate of one."""

    table: str
    rows: str
    rowid: str
    columns: str
    condition: Callable[[Filters], Sql | None]


_INDEXES = (
    _Index("messages_fts", "messages m", "m.message_no", MESSAGE, Filters.of_messages),
    _Index("memory_chunks_fts", MEMORY_CHUNKS, "c.chunk_no", MEMORY_PASSAGE, Filters.of_memories),
    _Index("doc_chunks_fts", DOC_CHUNKS, "c.chunk_no", DOC_PASSAGE, Filters.of_documents),
)


def matches(db: Connection, expression: str, filters: Filters, depth: int) -> list[list[Candidate]]:
    """Return the `depth` messages, the `depth` memories and the `depth` documents that match best."""
    if filters.topic is not None:
        teach_topics(db)
    return [_matches(db, index, expression, filters, depth) for index in _INDEXES]


def among(db: Connection, table: str, numbers: Sequence[int], filters: Filters) -> list[Candidate]:
    """Return the candidates of some rows of a full-text table that filters allow."""
    (index,) = (index for index in _INDEXES if index.table == table)
    condition = index.condition(filters)
    if condition is None or not numbers:
        return []
    rows = db.execute(
        f"SELECT {index.columns} FROM {index.rows} WHERE {index.rowid} IN (SELECT value FROM json_each(?))"
        f" AND {condition[0]}",
        [as_list([*numbers]), *condition[1]],
    )
    return [candidate_of(row, 0.0) for row in rows]


def newest(db: Connection, table: str, filters: Filters, most: int) -> list[Candidate]:
    """Return the newest candidates of a full-text table that filters allow, whatever they say."""
    (index,) = (index for index in _INDEXES if index.table == table)
    condition = index.condition(filters)
    if condition is None:
        return []
    sql = f"SELECT {index.columns} FROM {index.rows} WHERE {condition[0]} ORDER BY 5 DESC, 4 LIMIT ?"
    return [candidate_of(row, 0.0) for row in db.execute(sql, [*condition[1], most])]


def with_neighbours(db: Connection, terms: Sequence[str], around: Neighbourhood) -> Scores:
    """Return the messages of `around`, each scored by the words that it and its neighbours have.

    A neighbour that the filters leave out counts for others, and is no candidate itself.
    terms: the words and phrases of the question, each an expression in FTS5's syntax.
    """
    total = [0.0] * len(around.line)
    places = around.places
    numbers = as_list(list(around.messages))
    for term in terms if around.messages else ():
        own = [(places[number], score) for number, score in _scores(db, term, numbers)]
        most = _WORD_LIMIT * max((score for _, score in own), default=0.0)
        spread = around.spread(own, _WEIGHTS)
        total = [
            before + (score if score < most else most) for before, score in zip(total, spread, strict=True)
        ]
        for place, score in own:
            total[place] += _OWN * score
    rounded = ((number, round(score, _DIGITS)) for number, score in around.by_number(total))
    return {number: score for number, score in rounded if score > 0 and around.messages[number].is_wanted}


_WEIGHTS = (0.6, 0.4)
"""Of a neighbour one and two turns away."""

_WORD_LIMIT = 0.8
"""The limit of a word's score, as a share of its best match: a neighbour that repeats the word adds little,
one with another word does. Without the limit nDCG@10 is .02 lower."""

_OWN = 0.1
"""The share of its own score that a message has beyond the limit: it comes before its neighbours."""

_DIGITS = 9
"""bm25 of a word that most texts have is about a millionth: its sixth digit is the last."""


def _scores(db: Connection, term: str, numbers: str) -> list[tuple[int, float]]:
    """Return the numbers and scores of the messages among `numbers`, a JSON list, that match one term."""
    rows: list[tuple[int, float]] = db.execute(
        "SELECT rowid, -bm25(messages_fts) FROM messages_fts WHERE messages_fts MATCH ?"
        # The plus: each number on its own would count the term's matches again.
        " AND +rowid IN (SELECT value FROM json_each(?))",
        (term, numbers),
    ).fetchall()
    return rows


def _matches(db: Connection, index: _Index, expression: str, filters: Filters, depth: int) -> list[Candidate]:
    condition = index.condition(filters)
    if condition is None:
        return []

    def fetch(limit: int) -> Fetched:
        rows = db.execute(
            # Ordering by bm25() was measured 1.3 to 3 times as fast as ordering by rank.
            f"SELECT {index.columns}, -bm25({index.table}) FROM {index.table}"
            # CROSS JOIN: the full text is queried once, not once for each row that the filters leave.
            f" CROSS JOIN {index.rows} WHERE {index.rowid} = {index.table}.rowid"
            f" AND {index.table} MATCH ? AND {condition[0]} ORDER BY bm25({index.table}) LIMIT ?",
            [expression, *condition[1], limit],
        ).fetchall()
        candidates = [candidate_of(row, round(score, _DIGITS)) for *row, score in rows]
        return Fetched(candidates, is_all=len(rows) < limit)

    return best(db, fetch, depth)
