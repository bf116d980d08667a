"""Hybrid search over messages, memories and documents: full text and vectors, ranked and fused."""

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.projector.embedding.models import Models
from memlog.projector.passages.vectors import choose_vector_set_for_model
from memlog.projector.sqlite import Connection, error_types_of_binding, is_statement_error, transaction
from memlog.query.context import scores
from memlog.query.context.background import StoreSample
from memlog.query.context.scope import read_core_memory_in_scope
from memlog.query.conversations import Surroundings, surroundings_of_event, surroundings_of_passage
from memlog.query.filters import Filters
from memlog.query.outdated_memories import are_word_forms, put_newer_first_and_mark_older
from memlog.query.search import fulltext, nearest
from memlog.query.search.copies import drop_copies_in_nested_sources, find_text_keys, represent_copies_alike
from memlog.query.search.fulltext import (
    Neighbourhood,
    candidate_priors,
    find_matching_passages,
    neighbourhood_of,
)
from memlog.query.search.hits import (
    SNIPPET_LENGTH,
    Candidate,
    Hit,
    Lists,
    Ranks,
    Ref,
    Scores,
    add_evidence_to_hits,
    best_possible_score,
    fuse_lists,
    make_hits_of_candidates,
    rank_entries,
    sort_candidates_with_equal_scores,
)
from memlog.query.search.nearest import Compared
from memlog.query.search.request import (
    LONGEST_QUESTION,
    MAX_WORDS,
    FtsQuery,
    Mode,
    Ranking,
    Search,
    find_query_words,
)
from memlog.query.search.vector_cache import HeldVectors

# Strategy: words and meaning make separate lists, since bm25 and cosines cannot be compared, and the lists
# are fused by rank. The weights stand beside the code that applies them; docs/search.md has all figures.
#   1. The full text ranks each kind separately: bm25 depends on the statistics of its table. Filters apply
#      before the cut.
#   2. Copies of a text become one candidate before the cut: one repeated 45 times would hide its answer.
#   3. A message also scores for its neighbours, added up at query time: nothing is stored, and a late message
#      is a neighbour at once. A full-text column with their text is five times the index and finds no more
#      (R@10 by words .750 instead of .763 on LoCoMo 1 to 5). A word counts at most .8 of its best match, or
#      neighbours that repeat it win (nDCG@10 .578 instead of .600).
#   4. Priors favour long texts, and a speaker or topic that the question names, over questions. With 3, R@10
#      by words rose from .612 to .758 on the prototype.
#   5. Reciprocal rank fusion weighs words 1 and vectors .5. On LoCoMo 6 to 10, R@10 is .749 by words, .501 by
#      vectors, and .775 fused; .616 before 3, 4 and these weights. The sum of scaled scores (`convex`)
#      has .777, and needs four times the candidates.
#   6. The relevance of a memory today is a factor from .9 to 1.1.


class SearchResult(msgspec.Struct, kw_only=True):
    """Search hits, best first.

    synced: whether the read model had caught up with the log.
    certain: whether some hit certainly relates to the question; None if not judged, as with a query in
        FTS5's own syntax.
    silent: sides that were skipped or are incomplete, and why: `vector`, `multilingual`, `text`, `pending`.
    took_ms: milliseconds.
    """

    hits: list[Hit]
    mode: Mode
    synced: bool
    silent: dict[str, str]
    took_ms: float
    certain: bool | None = None


def search_read_model(
    db: Connection,
    request: Search,
    models: Models,
    held: HeldVectors | None = None,
    rate: "Callable[[Found], bool] | None" = None,
) -> SearchResult:
    """Search for `request.text`, and return the `k` best messages, memories and documents.

    models: for the vector side; `NO_MODELS` skips it.
    held: the process's cache of vectors; None if it searches only once.
    rate: returns whether some hit is certainly related to the question.

    Raises:
        BadInput: `is_raw`, and FTS5 rejects the query.
        sqlite3.Error: the read model cannot be read.
    """
    started = time.perf_counter()
    (found,) = find_hits(db, request, [Quota(request.k, request.filters_with_chat)], models, held)
    return SearchResult(
        hits=put_newer_first_and_mark_older(db, [hit for _, hit in found.hits]),
        mode=request.mode,
        synced=True,
        silent=found.silent,
        certain=None if rate is None or request.is_raw else rate(found),
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


class Found(NamedTuple):
    """Search hits, best first, each with its candidate. near: the messages around them.

    silent: see `SearchResult`.
    """

    hits: list[tuple[Candidate, Hit]]
    near: Neighbourhood
    silent: dict[str, str]


class Quota(NamedTuple):
    """How many hits to find (`k`), and the filters they must pass (`where`)."""

    k: int
    where: Filters


def find_hits(
    db: Connection,
    request: Search,
    quotas: Sequence[Quota],
    models: Models,
    held: HeldVectors | None = None,
) -> list[Found]:
    """Return the hits for each quota, ranked separately. `request.k` and its filters are ignored."""
    silent: dict[str, str] = {}
    with transaction(db, "DEFERRED"):
        expression = None if request.mode == "vector" else _make_fts_expression(request, silent)
        vectors = [] if request.mode == "text" else _embed_question(db, request, models, silent)
        found = []
        for quota in quotas:
            sides: dict[str, Lists] = {}
            if expression is not None:
                sides["text"] = _search_fulltext(db, request, quota, expression)
            if vectors:
                sides["vector"] = _search_vectors(db, request, quota, vectors, held)
            if request.min_similarity is not None and expression is not None:
                least = request.min_similarity
                sides["text"] = [
                    nearest.drop_dissimilar_candidates(db, each, vectors, least) for each in sides["text"]
                ]
            hits, near = _rank_candidates(
                db, request, quota, represent_copies_alike(drop_copies_in_nested_sources(db, sides))
            )
            found.append(Found(hits, near, silent))
    return found


class _Pool:
    """All possible hits, one candidate per `ref`: the last one found.

    near: the messages, with their neighbours if `with_context`. passages: all other candidates.
    """

    def __init__(
        self, db: Connection, sides: Mapping[str, Lists], filters: Filters, *, with_context: bool
    ) -> None:
        self._db = db
        self._by_ref = {each.ref: each for lists in sides.values() for rows in lists for each in rows}
        self._found = {each.text_key for each in self._by_ref.values()}
        self._beside: dict[Ref, Hashable] = {}
        numbers = [ref for ref in self._by_ref if isinstance(ref, int)]
        self.near = neighbourhood_of(db, numbers, filters, alone=not with_context)
        self.passages = find_matching_passages(db, self._by_ref.values())

    def find_candidate(self, ref: Ref) -> Candidate:
        """Return the candidate for `ref`; a message found only by its neighbours has no score."""
        if isinstance(ref, int) and ref not in self._by_ref:
            message = self.near.messages[ref]
            return Candidate("message", "message", message.key, None, message.ts, ref)
        return self._by_ref[ref]

    def find_text_key(self, ref: Ref) -> Hashable:
        """Return the key an entry shares with its copies; None for a neighbour that copies a hit."""
        if ref in self._by_ref or not isinstance(ref, int):
            return self._by_ref[ref].text_key
        if ref not in self._beside:
            text_key = find_text_keys(self._db, [self.find_candidate(ref)])[ref].text_key
            self._beside[ref] = None if text_key in self._found else text_key
        return self._beside[ref]

    def sort_equal_scores(self, refs: Iterable[Ref]) -> list[Ref]:
        """Sort entries with equal scores."""
        return [each.ref for each in sort_candidates_with_equal_scores(map(self.find_candidate, refs))]


def _rank_candidates(
    db: Connection, request: Search, quota: Quota, sides: Mapping[str, Lists]
) -> tuple[list[tuple[Candidate, Hit]], Neighbourhood]:
    ranking = request.ranking_settings
    pool = _Pool(db, sides, quota.where, with_context=ranking.context)
    text = request.text[:LONGEST_QUESTION]
    likely = candidate_priors(pool.near.messages, pool.passages, text) if ranking.priors else {}
    factors = {ref: passage.factor for ref, passage in pool.passages.items()} if ranking.salience else {}
    weights = _choose_weights_of_sides(ranking, sides)
    ranks = {
        side: [
            Ranks(
                weights[side],
                rank_entries(
                    each,
                    likely,
                    ranking.cut(quota.k),
                    pool.sort_equal_scores,
                    pool.find_text_key,
                ),
            )
            for each in lists
        ]
        for side, lists in _score_with_neighbours(db, request, sides, pool.near).items()
    }
    best = best_possible_score(weights.values(), ranking)
    all_ranks = [each for lists in ranks.values() for each in lists]
    # Invariant: no list contributes more than its cut, so none dominates the fusion by its length.
    assert all(len(each.ranked) <= ranking.cut(quota.k) for each in all_ranks)
    scored = [
        (pool.find_candidate(ref), min(1.0, max(0.0, score / best)))
        for ref, score in fuse_lists(
            all_ranks, ranking, factors, quota.k, pool.sort_equal_scores, pool.find_text_key
        )
    ]
    found = make_hits_of_candidates(db, scored, request.parsed_question)
    add_evidence_to_hits({each.ref: hit for each, hit in found}, sides, ranks, explain=request.explain)
    for candidate, hit in found:
        hit.around = (
            _read_surroundings_of_candidate(db, candidate, request.expand) if request.expand else None
        )
    return found, pool.near


def _score_with_neighbours(
    db: Connection, request: Search, sides: Mapping[str, Lists], near: Neighbourhood
) -> dict[str, list[Scores]]:
    """Return the scores of each side's candidates, including what neighbours add to messages."""
    found: dict[str, list[Scores]] = {
        side: [{each.ref: each.score for each in rows if each.score is not None} for rows in lists]
        for side, lists in sides.items()
    }
    if not request.ranking_settings.context:
        return found
    add = request.min_similarity is None
    # A query in FTS5's syntax asks for exact matches.
    if "text" in found and not request.is_raw:
        own = found["text"][0]
        scored = fulltext.score_with_neighbours(db, request.parsed_question.terms, near)
        found["text"][0] = {ref: score for ref, score in scored.items() if add or ref in own}
    if "vector" in found:
        found["vector"] = [nearest.add_neighbour_scores(each, near, add=add) for each in found["vector"]]
    return found


def _choose_weights_of_sides(ranking: Ranking, sides: Collection[str]) -> dict[str, float]:
    """Return the weight of each side searched; a single side has weight 1."""
    weights = {"text": ranking.text_weight, "vector": ranking.vector_weight}
    return {side: weights[side] if len(sides) > 1 else 1.0 for side in sides}


def _make_fts_expression(request: Search, silent: dict[str, str]) -> str | None:
    """Return the question's full-text query, or None if it has no words; note omissions in `silent`."""
    question = request.parsed_question
    if question.expression is None:
        silent["text"] = "the question has no words to search for"
    elif question.is_cut:
        silent["text"] = f"only the first {LONGEST_QUESTION:,} characters of the question were read"
    elif question.left_out:
        silent["text"] = f"only the first {MAX_WORDS} of the question's words were looked up"
    return question.expression


def _search_fulltext(db: Connection, request: Search, quota: Quota, expression: str) -> Lists:
    try:
        return fulltext.find_best_matches(
            db, expression, quota.where, request.ranking_settings.text_pool(quota.k)
        )
    except error_types_of_binding() as error:
        if not (request.is_raw and is_statement_error(error)):
            raise
        raise BadInput(
            f"FTS5 does not understand {expression!r}: {error}",
            hint="see https://www.sqlite.org/fts5.html#full_text_query_syntax, or omit is_raw",
        ) from error


def _embed_question(
    db: Connection, request: Search, models: Models, silent: dict[str, str]
) -> list[tuple[Compared, bytes]]:
    """Embed the question with each model that can compare it; if none can, `silent` receives the reason."""
    found = [
        (comparison, vector)
        for comparison in nearest.models_comparing_question(models, request.text)
        if (vector := nearest.embed_query(request.text, db, comparison.embedder, silent)) is not None
    ]
    if not found and models.first is not None and models.multilingual is not None:
        return _embed_question(db, request, Models(models.first), silent)
    return found


def _search_vectors(
    db: Connection,
    request: Search,
    quota: Quota,
    vectors: Iterable[tuple[Compared, bytes]],
    held: HeldVectors | None,
) -> Lists:
    pool = request.ranking_settings.vector_pool(quota.k, alone=request.mode == "vector")
    least = request.min_similarity
    return [
        nearest.nearest_candidates(
            db,
            vector,
            quota.where,
            pool,
            least,
            comparison.reads,
            held,
            choose_vector_set_for_model(comparison.embedder),
        )
        for comparison, vector in vectors
    ]


def _read_surroundings_of_candidate(
    db: Connection, candidate: Candidate, neighbours: int
) -> Surroundings | None:
    """Return a candidate with up to `neighbours` on either side; None for memories: they have no
    neighbours."""
    if candidate.kind == "message":
        return surroundings_of_event(db, candidate.key, neighbours)
    if candidate.kind == "document" and candidate.chunk_no is not None:
        return surroundings_of_passage(db, candidate.chunk_no, neighbours)
    return None


# Rating changes neither the order nor the scores of hits. It adds how likely each memory, fact and document
# belongs to the question, measured as for a context.

_CORE_THRESHOLD = 0.6
"""The least share of the question's words in a core value, times √(number of words): two of eleven words, or
one of two, are enough, since core memory is small and written to be found."""


def rate_relevance_of_hits(
    db: Connection, request: Search, models: Models, sample: StoreSample, found: Found
) -> bool:
    """Set each hit's `relevance`, except for messages, and its `similarity` if missing.

    Return whether some hit is certainly related to the question.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    prompt = scores.ScoredPrompt(db, request, scores.wrap_to_embed_once(models), sample)
    listed = [each for each in found.hits if each[1].kind != "message"]
    near = scores.compare_hits(db, prompt, listed)
    far = {} if prompt.multilingual_prompt is None else prompt.multilingual_prompt.nearness_by_hit(listed)
    measured = []
    for place, (candidate, hit) in enumerate(listed):
        cosine, words = near[place]
        if hit.similarity is None and cosine is not None:
            hit.similarity = round(max(0.0, cosine), 6)
        measured.append(scores.ListedHit(hit, candidate.owner, cosine, words, far=far.get(place)))
    rated = scores.score_hits(prompt, measured)
    for hit, score in rated:
        hit.relevance = round(scores.entry_probability(score), 6)
    if any(score.total >= score.floor for _, score in rated):
        return True
    messages = [each for each in found.hits if each[1].kind == "message"]
    return bool(prompt.judge_hits_of_prompt(messages, found.near).kept)


def find_core_memory_hits(db: Connection, question: FtsQuery) -> list[Hit]:
    """Return the core values that share enough words with the question, best first.

    Their source is `core`, and their id `section.key`.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    request = question.words
    found = []
    for row in read_core_memory_in_scope(db, None).shown:
        known = find_query_words(f"{row.section} {row.key.replace('_', ' ')} {row.value}")
        had = sum(any(are_word_forms(word, other) for other in known) for word in request)
        share = had / max(1, len(request))
        if share * len(request) ** 0.5 >= _CORE_THRESHOLD:
            found.append(
                Hit(
                    kind="memory",
                    id=f"{row.section}.{row.key}",
                    event_id=row.event_id,
                    score=round(share, 6),
                    similarity=None,
                    only_context=False,
                    snippet=row.value[:SNIPPET_LENGTH],
                    content=row.value,
                    chat=None,
                    role=None,
                    name=None,
                    title=f"{row.section}.{row.key}",
                    category=None,
                    source="core",
                    ts="",
                    position=row.position,
                )
            )
    return sorted(found, key=lambda hit: -hit.score)
