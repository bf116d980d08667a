"""Searches the read model after catching up with the log; builds contexts and records them."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.errors import DatabaseError, EmbeddingError, MemlogError
from memlog.eventlog.events import ContextGiven, MemoryAccessed
from memlog.eventlog.fields import Chat, ChatName
from memlog.eventlog.log.writer import Log
from memlog.eventlog.secrets.outgoing import compute_keyed_hash, load_or_create_store_key, text_has_key
from memlog.projector.embedding.models import NO_MODELS, Embedder, Kind, Models
from memlog.projector.passages import vectors
from memlog.projector.sqlite import Connection, transaction
from memlog.projector.text.marks import Marks, find_marked_spans
from memlog.query.context.compose import Context, GivenContext, compose_context, make_record_of_context
from memlog.query.context.entries import ContextEntry
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits, find_context_hits, find_prompt_message
from memlog.query.context.scope import choose_scope
from memlog.query.event_index import Key
from memlog.query.facts.answers import FactAnswer
from memlog.query.facts.question_parser import parse_questions
from memlog.query.filters import Filters
from memlog.query.outdated_memories import swap_changed_with_newer
from memlog.query.provenance import line_places_of_ids
from memlog.query.search.hits import Hit
from memlog.query.search.hybrid import (
    SearchResult,
    find_core_memory_hits,
    rate_relevance_of_hits,
    search_read_model,
)
from memlog.query.search.nearest import HAS_KEY, cut_to_embedded_part
from memlog.query.search.request import Search
from memlog.query.sendable import does_question_hold_key, may_hit_be_sent
from memlog.service.engine.embedding_models import NO_MODEL
from memlog.service.engine.read_model import ReadModel, ReadPool, report_missing_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlog.service.engine.http_client import ProviderState
    from memlog.service.retrieval.rerank import Reranker

OFF = {"memory": "memory.enabled is false: nothing is searched"}


def search_store(reads: ReadPool, request: Search) -> SearchResult:
    """Run a search, without holding a read model while a provider works."""
    if reads.first.is_off:
        return SearchResult(hits=[], mode=request.mode, synced=True, silent=dict(OFF), took_ms=0.0)
    client = EmbeddingClient(reads, request.text, embeds=request.mode != "text")
    rerank = create_reranker(reads.first, reads.query_up_to_date, has_key=client.has_key)
    most = request.k if reads.first.rerank is None else max(request.k, reads.first.rerank.top_n)
    least = reads.first.min_similarity if request.min_similarity is None else request.min_similarity
    wanted = replace(request, k=most, min_similarity=least)
    result = reads.run_with_repair(lambda read_model: _search_caught_up(read_model, wanted, client))
    if rerank is not None:
        result.hits = swap_changed_with_newer(rerank(request.text, result.hits, result.silent)[: request.k])
    if not client.models.available_models and request.mode == "vector":
        result.silent.setdefault("vector", NO_MODEL)
    return result


def _search_caught_up(read_model: ReadModel, request: Search, client: "EmbeddingClient") -> SearchResult:
    db, synced, models, silent = prepare_search(read_model, client, is_synced=request.sync)
    result = search_read_model(
        db,
        request,
        models,
        read_model.held_vectors,
        lambda found: rate_relevance_of_hits(db, request, models, read_model.sample, found),
    )
    if request.filters_with_chat == Filters() or request.filters_with_chat == Filters(
        kinds=frozenset(["memory"])
    ):
        of_core = [] if request.is_raw else find_core_memory_hits(db, request.parsed_question)
        result.hits = [*of_core, *result.hits][: request.k]
        result.certain = result.certain or bool(of_core)
    result.synced = synced
    result.silent |= silent
    return result


class EmbeddingClient:
    """The models for one question. On construction, a provider embeds the question, before any lock is held.

    chat: the question's chat. silent: why a model is missing. has_key: whether providers are configured and
    the question seems to contain a key.
    """

    def __init__(
        self,
        reads: ReadPool,
        text: str,
        *,
        chat: Chat | None = None,
        embeds: bool = True,
        is_synced: bool = True,
    ) -> None:
        self.embeds = embeds
        self.has_key = False
        self.models = NO_MODELS
        self.silent: dict[str, str] = {}
        if embeds:
            self.models, self.silent = reads.first.model.load_models_or_why("question")
        first = self.models.first
        is_remote = first is not None and first.is_remote
        if is_remote or reads.first.rerank is not None:
            # The whole question is checked, with its chat so far, although only its beginning is embedded.
            self.has_key = (
                text_has_key(text)
                if chat is None
                else reads.run_with_repair(
                    lambda read_model: does_question_hold_key(
                        read_model.connect_to_latest(sync=is_synced)[0], text, chat
                    )
                )
            )
        questions = reads.first.questions
        self.models = Models(*(each and questions.wrap_embedder(each) for each in self.models))
        if (embedder := self.models.first) is not None and is_remote:
            before = _EmbeddedBefore(embedder, None if self.has_key else cut_to_embedded_part(text, embedder))
            self.models = self.models._replace(first=before)


class _EmbeddedBefore:
    """A remote embedder that has already tried to embed the question. text: None if it contains a key."""

    is_remote = True

    def __init__(self, embedder: Embedder, text: str | None) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self._vector: NDArray[np.float32] | None = None
        self._failure = EmbeddingError(HAS_KEY)
        if text is not None:
            try:
                self._vector = embedder.embed([text], "query")
            except EmbeddingError as error:
                self._failure = error

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":  # noqa: ARG002
        if self._vector is None:
            raise self._failure
        return self._vector


def provider_states(read_model: ReadModel) -> "list[ProviderState]":
    """Return the states of the embedding and reranking providers that searches use."""
    known = [breaker.read_state() for breaker in read_model.model.breakers_of_providers]
    if read_model.rerank is not None:
        # Imported here: most stores have no provider.
        from memlog.service.engine.http_client import Breaker

        known.append(Breaker(read_model.path, "rerank", read_model.rerank).read_state())
    return known


def create_reranker(
    read_model: ReadModel, read: Callable[[Callable[[Connection], bool]], bool], *, has_key: bool
) -> "Reranker | None":
    """Return the reranker for one question's hits, or None if no provider is configured.

    read: calls a function with the read model. has_key: whether the question seems to contain a key.
    """
    if read_model.rerank is None:
        return None
    # Imported here: most stores have no provider.
    from memlog.service.retrieval.rerank import Reranker

    withheld = read_model.withheld_channels()

    def is_sendable(hit: Hit) -> bool:
        is_withheld = hit.chat is not None and hit.chat.partition(":")[0] in withheld
        return not is_withheld and read(lambda db: may_hit_be_sent(db, hit))

    return Reranker(read_model.rerank, read_model.path, is_sendable, has_key=has_key)


def prepare_search(
    read_model: ReadModel, client: EmbeddingClient, *, is_synced: bool
) -> tuple[Connection, bool, Models, dict[str, str]]:
    """Return a connection, whether it has caught up, the models to use, and why any part is missing."""
    models, silent = client.models, dict(client.silent)
    first = models.first
    db, synced = read_model.connect_to_latest(sync=is_synced, models=models, silent=silent)
    if models.available_models:
        report_missing_vectors(db, silent)
    there = vectors.read_model_of_vectors(db) if client.embeds else None
    if there is None or (first is not None and there == first.id):
        return db, synced, models, silent
    former = read_model.model.question_embedder_for(there)
    if first is None or former is None:
        return db, synced, models._replace(first=former or first), silent
    silent["pending"] = f"searches use {there} until the vectors of {first.id} are ready: project the log"
    return db, synced, models._replace(first=former), silent


_BuiltContext = tuple[Context, GivenContext | None]
"""A context, and the event that records it, if any."""


def create_and_record_context(reads: ReadPool, log: Log, request: BuildContext) -> Context:
    """Build the context for a message and record it in `log`."""
    started = time.perf_counter()
    if reads.first.is_off:
        return Context(
            text="",
            form=request.form,
            counter=request.counter,
            max_tokens=request.max_tokens,
            tokens=0,
            frame=0,
            entries=[],
            left_out=[],
            silent=dict(OFF),
            synced=True,
        )
    try:
        if request.part == "stable":
            given, _ = reads.run_with_repair(
                lambda model: _build_context_from_hits(model, request, ContextHits())
            )
            return given
        client = EmbeddingClient(reads, request.text, chat=request.current_chat, is_synced=request.sync)
        given, record = reads.run_with_repair(
            lambda read_model: _search_and_build(read_model, request, client)
        )
    except (DatabaseError, EmbeddingError) as error:
        found = ContextHits(silent={"search": error.message})
        given, record = reads.run_with_repair(
            lambda read_model: _build_context_from_hits(read_model, request, found)
        )
    if record is not None:
        try:
            _record_context(log, given.memory_ids, record)
        except MemlogError as error:  # the context is still returned
            given.unrecorded = error.message
    given.took_ms = round((time.perf_counter() - started) * 1000, 3)
    return given


def _record_context(log: Log, memory_ids: list[str], record: GivenContext) -> None:
    key = load_or_create_store_key(log.store)
    given = record.event
    given.stable, given.turn = (
        block and compute_keyed_hash(key, block) for block in (record.stable, record.turn)
    )
    # In one write, so that a retry finds both or neither.
    log.append([*([MemoryAccessed(memory_ids=memory_ids)] if memory_ids else []), given])


def record_stable_context(log: Log, chat: str, text: str) -> None:
    """Record that a chat was given `text` as the stable half of its context. Raises as `Log.append`."""
    block = compute_keyed_hash(load_or_create_store_key(log.store), text)
    log.append([ContextGiven(chat_id=chat, stable=block)])


def _search_and_build(
    read_model: ReadModel, request: BuildContext, question: EmbeddingClient
) -> _BuiltContext:
    db, synced, models, silent = prepare_search(read_model, question, is_synced=request.sync)

    def find_hits(request: BuildContext, prompt_key: Key | None) -> ContextHits:
        rerank = create_reranker(read_model, lambda ask: ask(db), has_key=question.has_key)
        hits = find_context_hits(db, request, models, prompt_key, read_model.sample, rerank)
        hits.silent.update(silent)
        return hits

    return _build_context(read_model, db, request, find_hits, synced=synced)


def _build_context_from_hits(
    read_model: ReadModel, request: BuildContext, found: ContextHits
) -> _BuiltContext:
    db, synced = read_model.connect_to_latest(sync=request.sync)
    return _build_context(
        read_model, db, request, lambda _, prompt_key: replace(found, prompt_key=prompt_key), synced=synced
    )


def _build_context(
    read_model: ReadModel,
    db: Connection,
    request: BuildContext,
    hits: Callable[[BuildContext, Key | None], ContextHits],
    *,
    synced: bool,
) -> _BuiltContext:
    # All reads use one snapshot: otherwise, a second person might speak between the choice of the scope and
    # the search.
    with transaction(db, "DEFERRED"):
        chosen = choose_scope(db, request, read_model.people, synced=synced)
        request = replace(request, scope=chosen.scope, joined=chosen.joined)
        prompt_key = find_prompt_message(db, request)
        given = compose_context(db, request, hits(request, prompt_key), synced=synced)
        is_recorded = (
            request.record
            and request.part != "stable"
            and given.entries
            and not (request.record_id and line_places_of_ids(db, ContextGiven.STREAM, [request.record_id]))
        )
        record = make_record_of_context(db, request, given, prompt_key) if is_recorded else None
    given.scope, given.scope_why = chosen.scope, chosen.why
    return given, record


class PreRoute(msgspec.Struct, kw_only=True):
    """How to answer a message.

    route: `facts`: reply with `answer`, without a language model. `search`: let a language model answer, with
        `system` before its prompt. `none`: the store has nothing about it.
    answer: the answer from the facts; None for other routes.
    system: the memory context for the system prompt; "" for other routes than `search`.
    citations: the entries of `system`, keyed by citation, such as M1.
    """

    route: Literal["facts", "search", "none"]
    answer: str | None = None
    system: str = ""
    citations: dict[str, ContextEntry] = {}


def pre_route(
    ask: Callable[..., FactAnswer],
    context: Callable[..., Context],
    text: str,
    *,
    chat: ChatName | None,
    max_tokens: int,
) -> PreRoute:
    """Decide how to answer a message; see `Store.pre_route`.

    ask, context: a store's operations `facts.ask` and `context`.
    """
    found = ask(text, chat=chat)
    # The answer to a question for a list, or for a rank of it, must not be guessed if nothing is stored.
    is_of_list = any(question.ranks or question.top or question.is_list for question in parse_questions(text))
    if found.found or is_of_list:
        return PreRoute(route="facts", answer=found.answer)
    given = context(text, chat=chat, max_tokens=max_tokens)
    route: Literal["search", "none"] = "search" if given.entries else "none"
    return PreRoute(route=route, system=given.text, citations=given.citations)


Highlighter = Callable[[str], list[tuple[int, int]]]
"""Returns the parts of a text that a search matched, as (start, end) in characters, in order."""


def create_highlighter(request: Search) -> Highlighter:
    """Return the highlighter for a search; it marks nothing in a vector-only search."""
    marks = Marks() if request.mode == "vector" else request.parsed_question.marks
    return lambda text: find_marked_spans(text, marks)
