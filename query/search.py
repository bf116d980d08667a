"""Hybrid search over messages, memories and documents: full text and vectors, fused by rank."""

import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from memlog.eventlog.errors import BadInput, EmbeddingError
from memlog.projector import vectors
from memlog.projector.embedding import Embedder
from memlog.projector.sqlite import Connection, error_types, is_of_the_statement, transaction, why_no_vectors
from memlog.query.candidates import Candidate, Owner
from memlog.query.filters import SUMMARIES, Filters, Kind
from memlog.query.fusion import best_possible, fused
from memlog.query.question import MAX_WORDS, Question, parse, raw
from memlog.query.snippet import snippet
from memlog.query.text_side import matches
from memlog.query.vector_side import nearest

Mode = Literal["hybrid", "text", "vector"]

DEPTH = 20
"""Candidates a side. Measured on LoCoMo: 100 finds less than 20 (R@10 .565 against .627)."""

_EMBEDDED_CHARACTERS = 4000
"""Of a question: more takes the model seconds and says nothing new."""


class LinePosition(msgspec.Struct, frozen=True):
    """Where an event's line is: `line` counts from 1, `offset` is its first byte."""

    stream: str
    segment: str
    offset: int
    line: int

    def __str__(self) -> str:
        """For people: `memory/2026-02-24.jsonl:12`."""
        return f"{self.stream}/{self.segment}:{self.line}"


class Evidence(msgspec.Struct, frozen=True):
    """Why one side of a search found a hit.

    rank: from 1, among the hits of that side; the full text ranks each kind apart.
    score: as that side has it: bm25 (lower is better), or the cosine similarity.
    """

    rank: int
    score: float


class Hit(msgspec.Struct, kw_only=True):
    """A message, memory or document that was found. Summaries are found as memories.

    id: of the message's or summary's event, the memory_id, or `source_id/file` of a document.
    event_id: of the event whose content this is.
    score: 0 to 1: the fused score over the best possible of the sides that took part.
    similarity: cosine similarity of its best passage, 0 to 1; None where only the full text found it.
    content: all that it says; of a document the passage.
    source: `conversation`, `manual`, `summary` …; of a document its source.
    file, section, start_line, end_line: of a document's passage; lines count from 1.
    explain: by side (`text`, `vector`); None where it was not asked for.
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
    file: str | None = None
    section: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    explain: dict[str, Evidence] | None = None


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
    min_similarity: float | None = None,
    is_raw: bool = False,
    explain: bool = False,
    depth: int = DEPTH,
) -> SearchResult:
    """The `k` distinct messages, memories and documents that answer `text` best.

    depth: candidates that each side gives, and never fewer than `k`.
    embedder: for the vector side; None where there is none, or none is wanted.
    min_similarity: leave out what only meaning finds and is less similar; None for nothing.
    is_raw: the full text takes `text` as FTS5's own syntax.
    explain: say of each hit which side found it, and how.

    Raises:
        BadInput: `is_raw`, and FTS5 does not understand it.
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    started = time.perf_counter()
    silent: dict[str, str] = {}
    question = raw(text) if is_raw else parse(text)
    depth = max(depth, k)
    with transaction(db, "DEFERRED"):
        texts = _text_side(db, question, filters, depth, silent) if mode != "vector" else []
        near: list[Candidate] = []
        vector = _embedded(text, db, embedder, silent) if mode != "text" and embedder is not None else None
        if vector is not None:
            near = nearest(db, vector, filters, depth, min_similarity)
        sides = int(vector is not None) + int(mode != "vector" and question.expression is not None)
        hits = [
            _hit(db, found, score / best_possible(sides), question)
            for found, score in fused([*texts, near])[:k]
        ]
    _add_evidence(hits, texts, near, explain=explain)
    return SearchResult(
        hits=[hit for _, hit in hits],
        mode=mode,
        synced=True,
        silent=silent,
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _text_side(
    db: Connection, question: Question, filters: Filters, depth: int, silent: dict[str, str]
) -> list[list[Candidate]]:
    expression = question.expression
    if expression is None:
        silent["text"] = "the question has no word to look for"
        return []
    if question.left_out:
        silent["text"] = f"only the first {MAX_WORDS} of the question's words were looked up"
    try:
        return matches(db, expression, filters, depth)
    except error_types() as error:
        if not (question.is_raw and is_of_the_statement(error)):
            raise
        raise BadInput(
            f"FTS5 does not understand {expression!r}: {error}",
            hint="https://www.sqlite.org/fts5.html#full_text_query_syntax, or leave --raw out",
        ) from error


def _add_evidence(
    hits: list[tuple[Candidate, Hit]], texts: list[list[Candidate]], near: list[Candidate], *, explain: bool
) -> None:
    """Say how near each hit is, and which side found it at which rank."""
    by_text = {found.name: (rank, found.cost) for side in texts for rank, found in enumerate(side, start=1)}
    by_vector = {found.name: (rank, 1 - found.cost) for rank, found in enumerate(near, start=1)}
    for found, hit in hits:
        if found.name in by_vector:
            hit.similarity = round(max(0.0, by_vector[found.name][1]), 6)
        if explain:
            sides = {"text": by_text.get(found.name), "vector": by_vector.get(found.name)}
            hit.explain = {
                side: Evidence(rank, round(score, 6))
                for side, (rank, score) in ((side, seen) for side, seen in sides.items() if seen is not None)
            }


def _embedded(text: str, db: Connection, embedder: Embedder, silent: dict[str, str]) -> bytes | None:
    """The question's vector; None, with the reason in `silent`, where it cannot be compared with any."""
    reason = why_no_vectors()
    if reason is None and vectors.model_of(db) is None:
        reason = "no vectors yet: memlog project"
    reason = reason or vectors.why_unlike(db, embedder)
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
_OF_EVENT = "JOIN events e ON e.stream = o.stream AND e.id ="
_ROWS: dict[Owner, str] = {
    "message": f"SELECT {_EVENT}, o.content, o.channel || ':' || o.chat_id, o.created_at, o.role, o.name,"
    f" NULL, NULL, 'conversation' FROM messages o {_OF_EVENT} o.id WHERE o.stream = ? AND o.id = ?",
    "memory": f"SELECT {_EVENT}, o.content, o.chat_id, o.updated_at, NULL, NULL,"
    " o.title, o.category, o.source"
    f" FROM memories o {_OF_EVENT} o.event_id WHERE o.stream = ? AND o.memory_id = ?",
    "summary": f"SELECT {_EVENT}, o.content, o.channel || ':' || o.chat_id, o.created_at, NULL, NULL,"
    f" NULL, '{SUMMARIES}', 'summary' FROM summaries o {_OF_EVENT} o.id WHERE o.stream = ? AND o.id = ?",
    "document": f"SELECT {_EVENT}, o.content, NULL, o.indexed_at, NULL, NULL, o.file, NULL, o.source_id"
    f" FROM documents o {_OF_EVENT} o.event_id WHERE o.stream = ? AND o.document_id = ?",
}
"""Of each owner, by (stream, id): its event, and what it says."""


def _hit(db: Connection, found: Candidate, score: float, question: Question) -> tuple[Candidate, Hit]:
    row: Sequence[Any] = db.execute(_ROWS[found.owner], found.key).fetchone()
    event_id, stream, segment, offset, line, content, chat, ts, role, name, title, category, source = row
    hit = Hit(
        kind=found.kind,
        id=found.key[1],
        event_id=event_id,
        score=round(score, 6),
        similarity=None,
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
    if found.owner == "document":
        _say_passage(db, found, hit)
    return found, hit


def _say_passage(db: Connection, found: Candidate, hit: Hit) -> None:
    """Of a document the passage alone, and where it is in the file."""
    hit.file, hit.title = hit.title, None
    if found.kind == "memory":
        # A file of memories is found as one: its name is its source.
        hit.source = hit.file or hit.source
        return
    hit.content, hit.section, hit.start_line, hit.end_line = db.execute(
        "SELECT content, section, start_line, end_line FROM doc_chunks WHERE chunk_no = ?", (found.chunk_no,)
    ).fetchone()
