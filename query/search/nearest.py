"""The vector side of a search: the nearest passages by cosine similarity."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from memlog.eventlog.errors import EmbeddingError
from memlog.projector.embedding.models import (
    Embedder,
    Models,
    is_bundled_model,
    is_multilingual_model,
    supports_language,
)
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import PassageTables
from memlog.projector.passages.vectors import FIRST, VectorSet, choose_vector_set_for_model
from memlog.projector.sqlite import Connection, to_json_list, why_no_vectors
from memlog.projector.text.stemming import ENGLISH, detect_language
from memlog.query.event_index import Sql
from memlog.query.facts.topic_keys import define_sql_function_topic_key
from memlog.query.filters import DOC_CHUNKS, MEMORY_CHUNKS, Filters
from memlog.query.search import hits
from memlog.query.search.copies import Fetched, best_distinct_texts
from memlog.query.search.fulltext import Neighbourhood
from memlog.query.search.vector_cache import (
    HeldVectors,
    compute_similarities_of_passages,
    take_highest_similarities,
)

# sqlite-vec refuses a larger k.
_NEAREST_LIMIT = 4096

_SELECTIVE = 20
"""If the filters allow at most one passage in this many, those are looked up one by one, at 16 µs each;
otherwise vec0 compares all passages, at 1 µs each. If they allow one in 1,000 of 50,000, this takes 1 ms
instead of 30."""

_SCRIPT_SAMPLE = 400
"""The number of code points from which a passage's language is determined."""

_EMBEDDED_CHARACTERS, _EMBEDDED_BY_MULTILINGUAL = 4000, 256
"""How many characters of a question are embedded: more take seconds and add no meaning. The multilingual
model takes 2 ms of CPU time per token; 1,000 characters take ten times as long as the rest of a context."""

HAS_KEY = "the question contains what looks like a key, so it is not sent to any provider"

_OTHER_SCRIPT = "the model reads English, and the question is in another script"


def embed_query(text: str, db: Connection, embedder: Embedder, silent: dict[str, str]) -> bytes | None:
    """Return the question's vector as float32; if it can't be compared, None, with the reason in `silent`."""
    name = "multilingual" if is_multilingual_model(embedder.id) else "vector"
    reason = (
        why_no_vectors()
        or (
            "no vectors yet: project the log"
            if vectors.read_model_of_vectors(db, choose_vector_set_for_model(embedder)) is None
            else None
        )
        or vectors.why_incomparable(db, embedder)
        or (None if supports_language(embedder, text) else _OTHER_SCRIPT)
    )
    if reason is None:
        part = cut_to_embedded_part(text, embedder)
        if len(text) > _EMBEDDED_CHARACTERS:
            silent[name] = f"only the question's first {len(part):,} characters were compared"
        try:
            return bytes(embedder.embed([part], "query")[0].tobytes())
        except EmbeddingError as error:
            reason = error.message
    silent[name] = reason
    return None


def cut_to_embedded_part(text: str, embedder: Embedder) -> str:
    """Return the beginning of a question, up to the length that is embedded."""
    return text[: _EMBEDDED_BY_MULTILINGUAL if is_multilingual_model(embedder.id) else _EMBEDDED_CHARACTERS]


def nearest_candidates(
    db: Connection,
    vector: bytes,
    filters: Filters,
    depth: int,
    min_similarity: float | None = None,
    is_readable: Callable[[str], bool] | None = None,
    held: HeldVectors | None = None,
    of: VectorSet = FIRST,
) -> list[hits.Candidate]:
    """Return the `depth` messages, memories and documents nearest to `vector`, by their best passages.

    vector: float32, little-endian, with the dimension of the generation's model.
    min_similarity: the lowest cosine similarity, if any.
    is_readable: whether the model supports a text's language; None if it supports all.
    held: the process's cache of vectors; None if it searches only once.
    of: the set of vectors to search.
    """
    if filters.topic is not None:
        define_sql_function_topic_key(db)
    held = HeldVectors() if held is None else held
    least = -math.inf if min_similarity is None else min_similarity
    shelves = [*_searched_shelves(of, filters)]

    def fetch_candidates(limit: int) -> Fetched:
        candidates: list[hits.Candidate] = []
        horizon = -math.inf
        for columns, shelf, allowed in shelves:
            similarities = _find_nearest_chunks(db, shelf, vector, allowed, limit, held)
            close = {number: score for number, score in similarities.items() if score >= least}
            candidates += _make_candidates_of_chunks(db, columns, shelf, close, is_readable)
            if len(close) == limit:
                horizon = max(horizon, min(close.values()))
        # Below the horizon, the shelf that was cut may have passages that were not fetched.
        within = [each for each in candidates if each.score is not None and each.score >= horizon]
        return Fetched(sorted(within, key=attrgetter("score"), reverse=True), is_all=horizon == -math.inf)

    return best_distinct_texts(db, fetch_candidates, depth)


def drop_dissimilar_candidates(
    db: Connection,
    found: Sequence[hits.Candidate],
    vectors: Iterable[tuple["Compared", bytes]],
    least: float,
) -> list[hits.Candidate]:
    """Return the candidates that have no vector, or one whose cosine similarity is at least `least`.

    vectors: the question's vectors, each with its model.
    """
    best: dict[int, float] = {}
    for comparison, vector in vectors:
        for shelf, of_shelf in passages_by_place(
            db, found, choose_vector_set_for_model(comparison.embedder)
        ).items():
            texts = db.execute(
                f"SELECT chunk_no, substr(content, 1, {_SCRIPT_SAMPLE}) FROM {shelf.chunks}"
                " WHERE chunk_no IN (SELECT value FROM json_each(?))",
                (to_json_list([*of_shelf]),),
            )
            numbers = [no for no, text in texts if comparison.reads is None or comparison.reads(text)]
            for chunk, cosine in (
                compute_similarities_of_passages(db, shelf, numbers, vector).items() if numbers else ()
            ):
                place = of_shelf[chunk]
                best[place] = max(best.get(place, -1.0), cosine)
    return [each for place, each in enumerate(found) if best.get(place, least) >= least]


def cosines_by_place(db: Connection, found: Sequence[hits.Candidate], vector: bytes) -> dict[int, float]:
    """Return each candidate's cosine with `vector`, keyed by place in `found`; for a message, the highest."""
    best: dict[int, float] = {}
    for shelf, of_shelf in passages_by_place(db, found).items():
        for chunk, cosine in (
            compute_similarities_of_passages(db, shelf, [*of_shelf], vector).items() if of_shelf else ()
        ):
            place = of_shelf[chunk]
            best[place] = max(best.get(place, -1.0), cosine)
    return best


def passages_by_place(
    db: Connection, found: Sequence[hits.Candidate], of: VectorSet = FIRST
) -> dict[PassageTables, dict[int, int]]:
    """Return each candidate's place in `found`, keyed by shelf and passage number.

    A message has all its passages, any other candidate only the one that was found.

    of: the set of vectors whose shelves to use.
    """
    by_number = {each.message_no: place for place, each in enumerate(found) if each.message_no}
    rows = db.execute(
        "SELECT c.chunk_no, m.message_no FROM messages m"
        " JOIN memory_chunks c ON c.stream = m.stream AND c.message_id = m.id"
        " WHERE m.message_no IN (SELECT value FROM json_each(?))",
        (to_json_list([*by_number]),),
    )
    memory, docs = index.passage_tables(of)
    places = {memory: {chunk: by_number[number] for chunk, number in rows}, docs: {}}
    for place, each in enumerate(found):
        if each.message_no is None and each.chunk_no is not None:
            places[docs if each.kind == "document" else memory][each.chunk_no] = place
    return places


class Compared(NamedTuple):
    """A model that compares passages with a question.

    reads: returns whether it compares a given passage; None if it compares all.
    """

    embedder: Embedder
    reads: Callable[[str], bool] | None


def models_comparing_question(models: Models, text: str) -> list[Compared]:
    """Return the models that compare a question by meaning.

    Alongside the multilingual model, the bundled one compares only English with English, which it does
    better: see docs/languages.md.
    """
    first, multilingual = models
    if multilingual is None:
        return [] if first is None else [Compared(first, partial(supports_language, first))]
    if first is None or not is_bundled_model(first) or not is_english(text):
        return [Compared(multilingual, None)]
    return [Compared(first, is_english), Compared(multilingual, lambda passage: not is_english(passage))]


def is_english(text: str) -> bool:
    """Whether `text` is in English."""
    return detect_language(text) == ENGLISH


def add_neighbour_scores(scores: hits.Scores, around: Neighbourhood, *, add: bool) -> hits.Scores:
    """Add the weighted scores of its neighbours to each message's score.

    The list's lowest score is subtracted from all scores first; messages not on the list count as 0.

    add: whether neighbours that are not on the list become candidates.
    """
    farthest = min(scores.values(), default=0.0)
    nearer = {ref: score - farthest for ref, score in scores.items()}
    places = around.places_by_number
    own = [(places[ref], score) for ref, score in nearer.items() if isinstance(ref, int)]
    for number, score in around.pair_numbers_with_values(around.add_neighbour_scores(own, _WEIGHTS)):
        if number in nearer or (add and score > 0 and around.messages[number].is_wanted):
            nearer[number] = score
    return {ref: round(score, hits.SCORE_DIGITS) for ref, score in nearer.items()}


_WEIGHTS = (0.3,)
"""The weight of a neighbour one turn away."""


_MESSAGE_CHUNKS = "messages m JOIN memory_chunks c ON c.stream = m.stream AND c.message_id = m.id"

# The indexes of the owners contain the numbers; `message_id IS NULL` would read the passages of all messages.
_NOT_OF_MESSAGES = " UNION ALL ".join(
    f"SELECT chunk_no FROM memory_chunks WHERE {owner} IS NOT NULL"
    for owner in ("memory_id", "summary_id", "fact_id", "daily_event_id", "document_id")
)
_SOURCES: dict[str, dict[str, Callable[[Filters], Sql | None]]] = {
    hits.MEMORY_PASSAGE: {
        f"{_MESSAGE_CHUNKS} WHERE": Filters.of_messages,
        f"{MEMORY_CHUNKS} WHERE c.chunk_no IN ({_NOT_OF_MESSAGES}) AND": Filters.of_memories,
    },
    hits.DOC_PASSAGE: {f"{DOC_CHUNKS} WHERE": Filters.of_documents},
}
"""For each shelf, the columns of a candidate, and the queries for its passages with their conditions."""


def _searched_shelves(of: VectorSet, filters: Filters) -> Iterator[tuple[str, PassageTables, Sql | None]]:
    """Yield, for each shelf to search, a candidate's columns, the shelf, and a query for its passages.

    The query returns the numbers of the passages that the filters allow; None allows all.
    """
    for (columns, queries), shelf in zip(_SOURCES.items(), index.passage_tables(of), strict=True):
        if filters.is_empty:
            yield columns, shelf, None
            continue
        conditions = [(rows, condition(filters)) for rows, condition in queries.items()]
        parts = [(f"SELECT c.chunk_no FROM {rows} {sql[0]}", sql[1]) for rows, sql in conditions if sql]
        if parts:
            values = [value for _, values in parts for value in values]
            yield columns, shelf, (" UNION ALL ".join(part for part, _ in parts), values)


def _find_nearest_chunks(
    db: Connection, shelf: PassageTables, vector: bytes, allowed: Sql | None, limit: int, held: HeldVectors
) -> dict[int, float]:
    if allowed is None and (similar := held.find_nearest_passages(db, shelf, vector, limit)) is not None:
        return similar
    few = None if allowed is None else _list_allowed_passages_if_few(db, shelf, allowed)
    numbers = _find_nearest_chunks_by_vec0(db, shelf, vector, allowed, limit) if few is None else few
    return take_highest_similarities(compute_similarities_of_passages(db, shelf, numbers, vector), limit)


def _find_nearest_chunks_by_vec0(
    db: Connection, shelf: PassageTables, vector: bytes, allowed: Sql | None, limit: int
) -> list[int]:
    within, values = ("", []) if allowed is None else (f" AND rowid IN ({allowed[0]})", allowed[1])
    if limit <= _NEAREST_LIMIT:
        sql = f"SELECT rowid FROM {shelf.vectors} WHERE embedding MATCH ? AND k = ?{within}"
        rows = db.execute(sql, [vector, limit, *values])
    else:
        sql = f"SELECT rowid FROM {shelf.vectors} WHERE 1{within} ORDER BY vec_distance_cosine(embedding, ?)"
        rows = db.execute(f"{sql} LIMIT ?", [*values, vector, limit])
    return [number for (number,) in rows]


def _list_allowed_passages_if_few(db: Connection, shelf: PassageTables, allowed: Sql) -> list[int] | None:
    """Return the numbers of the allowed passages; None if there are too many to look up one by one."""
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    most = last // _SELECTIVE
    rows = db.execute(f"SELECT chunk_no FROM ({allowed[0]}) LIMIT ?", [*allowed[1], most + 1]).fetchall()
    return [chunk_no for (chunk_no,) in rows] if len(rows) <= most else None


def _make_candidates_of_chunks(
    db: Connection,
    columns: str,
    shelf: PassageTables,
    similarities: dict[int, float],
    is_readable: Callable[[str], bool] | None,
) -> list[hits.Candidate]:
    rows = db.execute(
        f"SELECT {columns}, c.chunk_no, substr(c.content, 1, {_SCRIPT_SAMPLE})"
        f" FROM {shelf.chunks} c WHERE c.chunk_no IN (SELECT value FROM json_each(?))",
        (to_json_list(list(similarities)),),
    ).fetchall()
    by_number = {chunk_no: row for *row, chunk_no, text in rows if is_readable is None or is_readable(text)}
    return [
        hits.make_candidate_of_row(by_number[number], round(similarity, hits.SCORE_DIGITS))
        for number, similarity in similarities.items()
        if number in by_number
    ]
