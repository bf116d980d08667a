"""Hybrid search over messages, memories and documents: full text and vectors, ranked and fused."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import msgspec

from memlog.eventlog.errors import BadInput, EmbeddingError
from memlog.projector import vectors
from memlog.projector.embedding import Embedder, can_read
from memlog.projector.sqlite import Connection, error_types, is_of_the_statement, transaction, why_no_vectors
from memlog.query import text_side, vector_side
from memlog.query.candidates import Candidate, Name, Owner, Scored
from memlog.query.context import context_of
from memlog.query.expansion import Around, around
from memlog.query.filters import SUMMARIES, Filters, Kind
from memlog.query.fusion import Ranks, best_possible, fused, ranked
from memlog.query.question import MAX_WORDS, Question, parse, raw
from memlog.query.ranking import Ranking
from memlog.query.snippet import snippet
from memlog.query.traits import traits_of, words_of

Mode = Literal["hybrid", "text", "vector"]

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
    score: as that side has it, higher is better: bm25 with its sign turned, or the cosine similarity; None
        for a message that only its neighbours brought.
    found: the score with what its neighbours add; of the vector side, by how much it is nearer than the
        farthest candidate.
    prior: what was added for its length, its speaker, and not being a question, where scores go from 0 to 1.
    weight: how much the side counts.
    """

    rank: int
    score: float | None
    found: float
    prior: float
    weight: float


class Hit(msgspec.Struct, kw_only=True):
    """A message, memory or document that was found. Summaries are found as memories.

    id: of the message's or summary's event, the memory_id, or `source_id/file` of a document.
    event_id: of the event whose content this is.
    score: 0 to 1: the fused score over the best possible of the sides that took part.
    similarity: cosine similarity of its best passage, 0 to 1; None where only the full text found it.
    only_context: whether it was found for what was said around it alone.
    content: all that it says; of a document the passage.
    source: `conversation`, `manual`, `summary` …; of a document its source.
    file, section, start_line, end_line: of a document's passage; lines count from 1.
    explain: by side (`text`, `vector`); None where it was not asked for.
    around: the messages beside a message, the text beside a document's passage; None where it was not asked
        for, and for memories.
    """

    kind: Kind
    id: str
    event_id: str
    score: float
    similarity: float | None
    only_context: bool
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
    around: Around | None = None


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


@dataclass(frozen=True)
class Search:
    """What is looked for, and how.

    k: how many hits at most.
    min_similarity: leave out what only meaning finds and is less similar; None for nothing.
    is_raw: the full text takes `text` as FTS5's own syntax.
    explain: say of each hit which side found it, and how.
    expand: give each hit with so many neighbours on either side; 0 for none.
    """

    text: str
    k: int = 10
    mode: Mode = "hybrid"
    filters: Filters = field(default_factory=Filters)
    ranking: Ranking = field(default_factory=Ranking)
    min_similarity: float | None = None
    is_raw: bool = False
    explain: bool = False
    expand: int = 0

    @cached_property
    def question(self) -> Question:
        """The text as the full text is asked it."""
        return raw(self.text) if self.is_raw else parse(self.text)


def search(db: Connection, asked: Search, embedder: Embedder | None) -> SearchResult:
    """The `k` distinct messages, memories and documents that answer a text best.

    embedder: for the vector side; None where there is none, or none is wanted.

    Raises:
        BadInput: `is_raw`, and FTS5 does not understand it.
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    started = time.perf_counter()
    silent: dict[str, str] = {}
    with transaction(db, "DEFERRED"):
        texts = _text_side(db, asked, silent) if asked.mode != "vector" else None
        near = _vector_side(db, asked, embedder, silent) if asked.mode != "text" else None
        hits = _ranked(db, asked, texts, near)
    return SearchResult(
        hits=hits,
        mode=asked.mode,
        synced=True,
        silent=silent,
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _ranked(
    db: Connection, asked: Search, texts: list[list[Scored]] | None, near: list[Scored] | None
) -> list[Hit]:
    """The hits of what the sides found; a side that did not take part is None."""
    ranking = asked.ranking
    if ranking.context:
        texts, near = _with_neighbours(db, asked, texts, near)
    sides = {"text": texts, "vector": None if near is None else [near]}
    weights = _weights(ranking, texts is not None, near is not None)
    traits = traits_of(db, (found for lists in sides.values() for rows in lists or () for found, _ in rows))
    words = words_of(asked.text)
    priors = {name: seen.prior(words) for name, seen in traits.items()} if ranking.priors else {}
    factors = {name: seen.factor for name, seen in traits.items()} if ranking.salience else {}
    ranks = {
        side: [Ranks(weights[side], ranked(rows, priors, ranking.cut(asked.k))) for rows in lists or ()]
        for side, lists in sides.items()
    }
    best = best_possible(weights.values(), ranking)
    found = fused([row for rows in ranks.values() for row in rows], ranking, factors)[: asked.k]
    hits = [
        _hit(db, candidate, min(1.0, max(0.0, score / best)), asked.question) for candidate, score in found
    ]
    _add_evidence(hits, ranks, explain=asked.explain)
    for candidate, hit in hits:
        hit.around = around(db, candidate, asked.expand) if asked.expand else None
    return [hit for _, hit in hits]


def _weights(ranking: Ranking, has_text: bool, has_vector: bool) -> dict[str, float]:
    """How much each side counts that takes part: one alone counts whatever its weight is."""
    weights = {}
    if has_text:
        weights["text"] = ranking.text_weight if has_vector else 1.0
    if has_vector:
        weights["vector"] = ranking.vector_weight if has_text else 1.0
    return weights


def _with_neighbours(
    db: Connection, asked: Search, texts: list[list[Scored]] | None, near: list[Scored] | None
) -> tuple[list[list[Scored]] | None, list[Scored] | None]:
    """The lists with what was said around their messages."""
    found = [candidate for rows in [*(texts or []), near or []] for candidate, _ in rows]
    numbers = dict.fromkeys(each.message_no for each in found if each.message_no is not None)
    context = context_of(db, numbers, asked.filters)
    # Who writes FTS5's syntax asks for what it says, and for nothing beside it.
    if texts is not None and not asked.is_raw:
        messages, *others = texts
        texts = [text_side.with_neighbours(db, asked.question.terms, messages, context), *others]
    if near is not None:
        near = vector_side.with_neighbours(near, context, add=asked.min_similarity is None)
    return texts, near


def _text_side(db: Connection, asked: Search, silent: dict[str, str]) -> list[list[Scored]] | None:
    """What the full text finds: messages, memories, documents; None where it has nothing to look for."""
    question = asked.question
    if question.expression is None:
        silent["text"] = "the question has no word to look for"
        return None
    if question.left_out:
        silent["text"] = f"only the first {MAX_WORDS} of the question's words were looked up"
    try:
        return text_side.matches(db, question.expression, asked.filters, asked.ranking.text_pool(asked.k))
    except error_types() as error:
        if not (question.is_raw and is_of_the_statement(error)):
            raise
        raise BadInput(
            f"FTS5 does not understand {question.expression!r}: {error}",
            hint="https://www.sqlite.org/fts5.html#full_text_query_syntax, or leave --raw out",
        ) from error


def _vector_side(
    db: Connection, asked: Search, embedder: Embedder | None, silent: dict[str, str]
) -> list[Scored] | None:
    """What means the most alike; None, with the reason in `silent`, where nothing can be compared."""
    vector = _embedded(asked.text, db, embedder, silent) if embedder is not None else None
    if embedder is None or vector is None:
        return None
    return vector_side.nearest(
        db,
        vector,
        asked.filters,
        asked.ranking.vector_pool(asked.k),
        asked.min_similarity,
        partial(can_read, embedder),
    )


def _add_evidence(hits: list[tuple[Candidate, Hit]], ranks: dict[str, list[Ranks]], *, explain: bool) -> None:
    """Say how near each hit is, and which side found it at which rank."""
    names = {found.name for found, _ in hits}
    seen: dict[str, dict[Name, Evidence]] = {
        side: {
            row.candidate.name: Evidence(rank, row.candidate.score, row.found, round(row.prior, 6), weight)
            for weight, rows in lists
            for rank, row in enumerate(rows, start=1)
            if row.candidate.name in names
        }
        for side, lists in ranks.items()
    }
    for found, hit in hits:
        evidence = {side: rows[found.name] for side, rows in seen.items() if found.name in rows}
        if "vector" in evidence and (similarity := evidence["vector"].score) is not None:
            hit.similarity = max(0.0, similarity)
        hit.only_context = all(side.score is None for side in evidence.values())
        if explain:
            hit.explain = evidence


def _embedded(text: str, db: Connection, embedder: Embedder, silent: dict[str, str]) -> bytes | None:
    """The question's vector; None, with the reason in `silent`, where it cannot be compared with any."""
    reason = why_no_vectors()
    if reason is None and vectors.model_of(db) is None:
        reason = "no vectors yet: memlog project"
    reason = reason or vectors.why_unlike(db, embedder)
    if reason is None and not can_read(embedder, text):
        reason = "the model reads English, and the question is in another script"
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
        only_context=False,
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
