"""Hybrid search over messages and memories: full text and vectors, fused by rank."""

import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from memlog.eventlog.errors import EmbeddingError
from memlog.projector import vectors
from memlog.projector.embedding import Embedder
from memlog.projector.sqlite import Connection, transaction, why_no_vectors
from memlog.query.candidates import Candidate, memory_matches, message_matches, nearest
from memlog.query.filters import Filters, Kind
from memlog.query.fusion import best_possible, fused
from memlog.query.question import MAX_WORDS, Question, parse
from memlog.query.snippet import snippet

Mode = Literal["hybrid", "text", "vector"]

_DEPTH = 20
"""Candidates a side. Measured on LoCoMo: 100 finds less than 20 (R@10 .565 against .627)."""

_EMBEDDED_CHARACTERS = 4000
"""Of a question: more takes the model seconds and says nothing new."""


class LinePosition(msgspec.Struct, frozen=True):
    """Where an event's line is: `line` counts from 1, `offset` is its first byte."""

    stream: str
    segment: str
    offset: int
    line: int


class Hit(msgspec.Struct, kw_only=True):
    """A message or memory that was found.

    id: of the message's event, or the memory_id.
    event_id: of the event whose content this is.
    score: 0 to 1: the fused score over the best possible of the sides that took part.
    similarity: cosine similarity of its best passage, 0 to 1; None where only the full text found it.
    """

    kind: Kind
    id: str
    event_id: str
    score: float
    similarity: float | None
    snippet: str
    content: str
    chat: str | None
    role: str | None
    name: str | None
    title: str | None
    category: str | None
    source: str
    ts: str
    position: LinePosition


class SearchResult(msgspec.Struct, kw_only=True):
    """The hits, best first.

    synced: whether the read model had come up to the log.
    silent: what did not take part, and why: `vector`, `text`, `pending`.
    took_ms: milliseconds.
    """

    hits: list[Hit]
    mode: Mode
    synced: bool
    silent: dict[str, str]
    took_ms: float


def search(
    db: Connection,
    text: str,
    *,
    k: int,
    mode: Mode,
    filters: Filters,
    embedder: Embedder | None,
    min_similarity: float = 0.0,
) -> SearchResult:
    """The `k` distinct messages and memories that answer `text` best.

    embedder: for the vector side; None where there is none, or none is wanted.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    started = time.perf_counter()
    silent: dict[str, str] = {}
    question = parse(text)
    depth = max(_DEPTH, k)
    with transaction(db, "DEFERRED"):
        texts = _text_side(db, question, filters, depth, silent) if mode != "vector" else []
        near: list[Candidate] = []
        vector = _embedded(text, db, embedder, silent) if mode != "text" and embedder is not None else None
        if vector is not None:
            near = nearest(db, vector, filters, depth, min_similarity)
        sides = int(vector is not None) + int(mode != "vector" and question.expression is not None)
        similarities = {(found.kind, found.key): max(0.0, 1 - found.cost) for found in near}
        hits = [
            _hit(db, found, score / best_possible(sides), similarities.get((found.kind, found.key)), question)
            for found, score in fused([*texts, near])[:k]
        ]
    return SearchResult(
        hits=hits,
        mode=mode,
        synced=True,
        silent=silent,
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _text_side(
    db: Connection, question: Question, filters: Filters, depth: int, silent: dict[str, str]
) -> list[list[Candidate]]:
    """Two lists: bm25 of two tables cannot be compared, so messages and memories are ranked apart."""
    expression = question.expression
    if expression is None:
        silent["text"] = "the question has no word to look for"
        return []
    if question.left_out:
        silent["text"] = f"only the first {MAX_WORDS} of the question's words were looked up"
    return [
        message_matches(db, expression, filters, depth),
        memory_matches(db, expression, filters, depth),
    ]


def _embedded(text: str, db: Connection, embedder: Embedder, silent: dict[str, str]) -> bytes | None:
    """The question's vector; None, with the reason in `silent`, where it cannot be compared with any."""
    reason = why_no_vectors()
    model = vectors.model_of(db)
    if reason is None and model is None:
        reason = "no vectors yet: memlog project"
    elif reason is None and model != embedder.id:
        reason = f"the vectors are of {model}, the model is {embedder.id}: memlog project"
    if reason is None:
        if len(text) > _EMBEDDED_CHARACTERS:
            silent["vector"] = f"only the question's first {_EMBEDDED_CHARACTERS:,} characters were compared"
        try:
            return bytes(embedder.embed([text[:_EMBEDDED_CHARACTERS]])[0].tobytes())
        except EmbeddingError as error:
            reason = error.message
    silent["vector"] = reason
    return None


_EVENT = "e.id, e.stream, e.segment, e.offset, e.line"
_MESSAGE = (
    f"SELECT {_EVENT}, m.content, m.channel || ':' || m.chat_id, m.created_at, m.role, m.name,"
    " NULL, NULL, 'conversation', m.id FROM messages m JOIN events e USING (stream, id)"
    " WHERE m.stream = ? AND m.id = ?"
)
_MEMORY = (
    f"SELECT {_EVENT}, y.content, y.chat_id, y.updated_at, NULL, NULL,"
    " y.title, y.category, y.source, y.memory_id FROM memories y"
    " JOIN events e ON e.stream = y.stream AND e.id = y.event_id WHERE y.stream = ? AND y.memory_id = ?"
)


def _hit(db: Connection, found: Candidate, score: float, similarity: float | None, question: Question) -> Hit:
    row: Sequence[Any] = db.execute(_MESSAGE if found.kind == "message" else _MEMORY, found.key).fetchone()
    event_id, stream, segment, offset, line, content, chat, ts, role, name, title, category, source, key = row
    return Hit(
        kind=found.kind,
        id=key,
        event_id=event_id,
        score=round(score, 6),
        similarity=None if similarity is None else round(similarity, 6),
        snippet=snippet(content, [*question.words, *question.phrases], found.start, found.end),
        content=content,
        chat=chat,
        role=role,
        name=name,
        title=title,
        category=category,
        source=source,
        ts=ts,
        position=LinePosition(stream, segment, offset, line),
    )
