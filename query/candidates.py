"""The two sides of a search: full text and vectors, each as a ranked list of candidates."""

import json
from collections.abc import Callable
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.filters import Filters, Kind, Sql

_SCORE_DIGITS = 6
# sqlite-vec refuses a larger k.
_NEAREST_LIMIT = 4096


class Candidate(NamedTuple):
    """A message or memory that one side found.

    key: (stream, event id) of a message, (stream, memory_id) of a memory.
    cost: lower is better; rounded, so that noise in the last digits decides nothing.
    start, end: its best passage, in code points; the whole where `end` is None.
    """

    kind: Kind
    key: tuple[str, str]
    cost: float
    ts: str
    start: int = 0
    end: int | None = None


def message_matches(db: Connection, expression: str, filters: Filters, depth: int) -> list[Candidate]:
    """The `depth` messages that match a full-text expression best (bm25)."""
    condition = filters.of_messages()
    if condition is None:
        return []

    def fetch(limit: int) -> _Fetched:
        rows = db.execute(
            "SELECT m.stream, m.id, bm25(messages_fts), m.created_at FROM messages_fts"
            # CROSS JOIN: the full text is asked once, not once for each row that the filters leave.
            " CROSS JOIN messages m ON m.message_no = messages_fts.rowid"
            # Ordering by bm25() was measured 1.3 to 3 times as fast as ordering by rank.
            f" WHERE messages_fts MATCH ? AND {condition[0]} ORDER BY bm25(messages_fts) LIMIT ?",
            [expression, *condition[1], limit],
        ).fetchall()
        found = [
            Candidate("message", (stream, event_id), round(cost, _SCORE_DIGITS), ts)
            for stream, event_id, cost, ts in rows
        ]
        return _Fetched(found, is_all=len(rows) < limit)

    return _best(fetch, depth)


def memory_matches(db: Connection, expression: str, filters: Filters, depth: int) -> list[Candidate]:
    """The `depth` memories that have the chunks that match a full-text expression best (bm25)."""
    condition = filters.of_memories()
    if condition is None:
        return []

    def fetch(limit: int) -> _Fetched:
        rows = db.execute(
            "SELECT y.stream, y.memory_id, bm25(memory_chunks_fts), y.updated_at, c.start_char, c.end_char"
            " FROM memory_chunks_fts CROSS JOIN memory_chunks c ON c.chunk_no = memory_chunks_fts.rowid"
            " JOIN memories y ON y.memory_id = c.memory_id"
            f" WHERE memory_chunks_fts MATCH ? AND {condition[0]} ORDER BY bm25(memory_chunks_fts) LIMIT ?",
            [expression, *condition[1], limit],
        ).fetchall()
        found = [
            Candidate("memory", (stream, memory_id), round(cost, _SCORE_DIGITS), ts, start, end)
            for stream, memory_id, cost, ts, start, end in rows
        ]
        return _Fetched(found, is_all=len(rows) < limit)

    return _best(fetch, depth)


def nearest(
    db: Connection, vector: bytes, filters: Filters, depth: int, min_similarity: float = 0.0
) -> list[Candidate]:
    """The `depth` messages and memories that have the passages nearest to a vector, by cosine distance.

    vector: float32, little endian, of the dimension of the generation's model.
    """
    allowed = _allowed_chunks(filters)

    def fetch(limit: int) -> _Fetched:
        distances = _nearest_chunks(db, vector, allowed, limit)
        owners = _owners(db, [chunk_no for chunk_no, _ in distances])
        found = [
            owners[chunk_no]._replace(cost=round(distance, _SCORE_DIGITS))
            for chunk_no, distance in distances
            if chunk_no in owners and 1 - distance >= min_similarity
        ]
        return _Fetched(found, is_all=len(distances) < limit or 1 - distances[-1][1] < min_similarity)

    return _best(fetch, depth)


class _Fetched(NamedTuple):
    """Candidates by rising cost, perhaps several of one message or memory; whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def _best(fetch: Callable[[int], _Fetched], depth: int) -> list[Candidate]:
    """The first `depth` distinct candidates.

    Fetches past the cut until the score changes, and orders equal scores by time (newer first), kind,
    stream and id: the same question on the same log gives the same answer.
    """
    limit = 2 * depth
    while True:
        candidates, is_all = fetch(limit)
        best: dict[tuple[Kind, tuple[str, str]], Candidate] = {}
        for candidate in candidates:
            best.setdefault((candidate.kind, candidate.key), candidate)
        costs = [candidate.cost for candidate in best.values()]
        if is_all or (len(costs) > depth and candidates[-1].cost > costs[depth - 1]):
            break
        limit *= 4
    ordered = sorted(best.values(), key=lambda candidate: (candidate.kind, candidate.key))
    ordered.sort(key=lambda candidate: candidate.ts, reverse=True)
    ordered.sort(key=lambda candidate: candidate.cost)
    return ordered[:depth]


def _allowed_chunks(filters: Filters) -> Sql | None:
    """A query for the numbers of the chunks that may be found; None where all may."""
    if filters.is_empty:
        return None
    messages, memories = filters.of_messages(), filters.of_memories()
    parts: list[Sql] = []
    if messages is not None:
        source = "messages m JOIN memory_chunks c ON c.stream = m.stream AND c.message_id = m.id"
        parts.append((f"SELECT c.chunk_no FROM {source} WHERE {messages[0]}", messages[1]))
    if memories is not None:
        source = "memories y JOIN memory_chunks c ON c.memory_id = y.memory_id"
        parts.append((f"SELECT c.chunk_no FROM {source} WHERE {memories[0]}", memories[1]))
    sql = " UNION ALL ".join(part for part, _ in parts)
    return sql or "SELECT 0 WHERE 0", [value for _, values in parts for value in values]


def _nearest_chunks(
    db: Connection, vector: bytes, allowed: Sql | None, limit: int
) -> list[tuple[int, float]]:
    """The numbers of the `limit` nearest chunks and their cosine distances."""
    within, values = ("", []) if allowed is None else (f" AND rowid IN ({allowed[0]})", allowed[1])
    if limit <= _NEAREST_LIMIT:
        sql = f"SELECT rowid, distance FROM vec_memory WHERE embedding MATCH ? AND k = ?{within}"
        return db.execute(f"{sql} ORDER BY distance", [vector, limit, *values]).fetchall()
    sql = f"SELECT rowid, vec_distance_cosine(embedding, ?) FROM vec_memory WHERE 1{within}"
    return db.execute(f"{sql} ORDER BY 2 LIMIT ?", [vector, *values, limit]).fetchall()


def _owners(db: Connection, chunk_numbers: list[int]) -> dict[int, Candidate]:
    """The message or memory of each chunk, at no cost yet."""
    rows = db.execute(
        "SELECT c.chunk_no, c.stream, c.message_id, c.memory_id, coalesce(m.created_at, y.updated_at),"
        " c.start_char, c.end_char FROM memory_chunks c"
        " LEFT JOIN messages m ON m.stream = c.stream AND m.id = c.message_id"
        " LEFT JOIN memories y ON y.memory_id = c.memory_id"
        " WHERE c.chunk_no IN (SELECT value FROM json_each(?))",
        (json.dumps(chunk_numbers),),
    )
    return {
        chunk_no: Candidate("memory", (stream, memory_id), 0.0, ts, start, end)
        if message_id is None
        else Candidate("message", (stream, message_id), 0.0, ts, start, end)
        for chunk_no, stream, message_id, memory_id, ts, start, end in rows
    }
