"""The vector side of a search: the passages nearest to a vector, by cosine distance."""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from memlog.projector.passages import index
from memlog.projector.passages.index import Shelf
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.filters import DOC_CHUNKS, MEMORY_CHUNKS, Filters
from memlog.query.rows import Sql
from memlog.query.search.candidates import (
    DOC_PASSAGE,
    MEMORY_PASSAGE,
    SCORE_DIGITS,
    Candidate,
    Fetched,
    Scores,
    as_document,
    as_passage,
    best,
)
from memlog.query.search.neighbours import Neighbourhood
from memlog.query.search.similarity import nearest_first, similarities
from memlog.query.search.vector_cache import HeldVectors

# sqlite-vec refuses a larger k.
_NEAREST_LIMIT = 4096

_FEW = 20
"""Where no more than one in so many passages may be found, they are looked up one by one, at 16 µs each; else
vec0 goes through all, at 1 µs each. Measured on 50,000 vectors: 1 ms in the place of 30 for one in 1,000."""


_READ = 400
"""So much of a passage tells in what script it is, in code points."""


def nearest(
    db: Connection,
    vector: bytes,
    filters: Filters,
    depth: int,
    min_similarity: float | None = None,
    can_read: Callable[[str], bool] | None = None,
    held: HeldVectors | None = None,
) -> list[Candidate]:
    """The `depth` messages, memories and documents that have the passages nearest to a vector, with their
    cosine similarities.

    vector: float32, little endian, of the dimension of the generation's model.
    min_similarity: leaves out what is less similar; None for nothing.
    can_read: whether the model can read a text, so that its vector means anything; None where it always can.
    held: what the asking process holds in memory; None where it asks once.
    """
    held = HeldVectors() if held is None else held
    least = -math.inf if min_similarity is None else min_similarity

    def fetch(limit: int) -> Fetched:
        found: list[Candidate] = []
        horizon = -math.inf
        for source in _SOURCES:
            similarities = _nearest_chunks(db, source.shelf, vector, source.allowed(filters), limit, held)
            close = {number: score for number, score in similarities.items() if score >= least}
            found += _candidates(db, source, close, can_read)
            if len(close) == limit:
                horizon = max(horizon, min(close.values()))
        # Behind the horizon there may be nearer passages of the other kind that were not fetched.
        within = [each for each in found if each.score is not None and each.score >= horizon]
        return Fetched(sorted(within, key=attrgetter("score"), reverse=True), is_all=horizon == -math.inf)

    return best(fetch, depth)


def with_neighbours(scores: Scores, around: Neighbourhood, *, add: bool) -> Scores:
    """`scores`, with what the neighbours of each message mean.

    What counts is how much nearer something is than the farthest of the list; all that is not on the list
    counts as the farthest.
    add: whether neighbours that are not on the list become candidates.
    """
    farthest = min(scores.values(), default=0.0)
    nearer = {ref: score - farthest for ref, score in scores.items()}
    places = around.places
    own = [(places[ref], score) for ref, score in nearer.items() if isinstance(ref, int)]
    for number, score in around.by_number(around.spread(own, _WEIGHTS)):
        if number in nearer or (add and score > 0 and around.messages[number].is_wanted):
            nearer[number] = score
    return {ref: round(score, SCORE_DIGITS) for ref, score in nearer.items()}


_WEIGHTS = (0.3,)
"""What a neighbour counts, one turn away."""


def _allowed_memory_chunks(filters: Filters) -> Sql | None:
    """A query for the numbers of the chunks that may be found; None where all may."""
    if filters.is_empty:
        return None
    messages, memories = filters.of_messages(), filters.of_memories()
    parts: list[Sql] = []
    if messages is not None:
        source = "messages m JOIN memory_chunks c ON c.stream = m.stream AND c.message_id = m.id"
        parts.append((f"SELECT c.chunk_no FROM {source} WHERE {messages[0]}", messages[1]))
    if memories is not None:
        parts.append(
            (
                f"SELECT c.chunk_no FROM {MEMORY_CHUNKS} WHERE c.chunk_no IN ({_NOT_OF_MESSAGES})"
                f" AND {memories[0]}",
                memories[1],
            )
        )
    sql = " UNION ALL ".join(part for part, _ in parts)
    return sql or _NOTHING, [value for _, values in parts for value in values]


def _allowed_doc_chunks(filters: Filters) -> Sql | None:
    if filters.is_empty:
        return None
    documents = filters.of_documents()
    if documents is None:
        return _NOTHING, []
    return f"SELECT c.chunk_no FROM {DOC_CHUNKS} WHERE {documents[0]}", documents[1]


# Their indexes say it at once; `message_id IS NULL` would read the passages of all messages.
_NOT_OF_MESSAGES = " UNION ALL ".join(
    f"SELECT chunk_no FROM memory_chunks WHERE {owner} IS NOT NULL"
    for owner in ("memory_id", "summary_id", "fact_id", "daily_event_id", "document_id")
)
_NOTHING = "SELECT 0 AS chunk_no WHERE 0"


class _VectorSource(NamedTuple):
    """Passages with vectors, and what makes a candidate of one."""

    shelf: Shelf
    columns: str
    candidate: Callable[..., Candidate]
    allowed: Callable[[Filters], Sql | None]


_SOURCES = (
    _VectorSource(index.MEMORY, MEMORY_PASSAGE, as_passage, _allowed_memory_chunks),
    _VectorSource(index.DOCS, DOC_PASSAGE, as_document, _allowed_doc_chunks),
)


def _nearest_chunks(
    db: Connection, shelf: Shelf, vector: bytes, allowed: Sql | None, limit: int, held: HeldVectors
) -> dict[int, float]:
    """The numbers of the `limit` nearest chunks, nearest first, and their cosine similarities."""
    found = None if allowed is not None else held.nearest(db, shelf, vector, limit)
    if found is not None:
        return found
    few = None if allowed is None else _few(db, shelf, allowed)
    numbers = _nearest_by_vec0(db, shelf, vector, allowed, limit) if few is None else few
    return nearest_first(similarities(db, shelf, numbers, vector), limit)


def _nearest_by_vec0(
    db: Connection, shelf: Shelf, vector: bytes, allowed: Sql | None, limit: int
) -> list[int]:
    within, values = ("", []) if allowed is None else (f" AND rowid IN ({allowed[0]})", allowed[1])
    if limit <= _NEAREST_LIMIT:
        sql = f"SELECT rowid FROM {shelf.vectors} WHERE embedding MATCH ? AND k = ?{within}"
        rows = db.execute(sql, [vector, limit, *values])
    else:
        sql = f"SELECT rowid FROM {shelf.vectors} WHERE 1{within} ORDER BY vec_distance_cosine(embedding, ?)"
        rows = db.execute(f"{sql} LIMIT ?", [*values, vector, limit])
    return [number for (number,) in rows]


def _few(db: Connection, shelf: Shelf, allowed: Sql) -> list[int] | None:
    """The numbers of the chunks that may be found; None where they are too many to look each of them up."""
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    most = last // _FEW
    rows = db.execute(f"SELECT chunk_no FROM ({allowed[0]}) LIMIT ?", [*allowed[1], most + 1]).fetchall()
    return [chunk_no for (chunk_no,) in rows] if len(rows) <= most else None


def _candidates(
    db: Connection,
    source: _VectorSource,
    similarities: dict[int, float],
    can_read: Callable[[str], bool] | None,
) -> list[Candidate]:
    rows = db.execute(
        f"SELECT {source.columns}, c.chunk_no, substr(c.content, 1, {_READ})"
        f" FROM {source.shelf.chunks} c WHERE c.chunk_no IN (SELECT value FROM json_each(?))",
        (as_list(list(similarities)),),
    ).fetchall()
    by_number = {chunk_no: values for *values, chunk_no, text in rows if can_read is None or can_read(text)}
    return [
        source.candidate(*by_number[number], round(similarity, SCORE_DIGITS))
        for number, similarity in similarities.items()
        if number in by_number
    ]
