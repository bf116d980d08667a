"""Searches the read model, caught up with the log, with the embedding model that works here."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import EmbeddingError
from memlog.eventlog.outgoing import has_key
from memlog.projector.embedding.models import NO_MODELS, Embedder, Kind, Models
from memlog.projector.passages import vectors
from memlog.projector.sqlite import Connection
from memlog.query.changes import swapped
from memlog.query.filters import Filters
from memlog.query.search.certainty import core_hits, rate
from memlog.query.search.hits import Hit
from memlog.query.search.hybrid import SearchResult, search
from memlog.query.search.nearest import HAS_KEY, embedded_part
from memlog.query.search.request import Search
from memlog.query.sendable import may_be_sent, question_has_key
from memlog.service.embedding_models import NO_MODEL
from memlog.service.read_model import ReadModel, name_pending
from memlog.service.read_pool import ReadPool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlog.service.providers.breaker import ProviderState
    from memlog.service.providers.reranker import Reranker

OFF = {"memory": "memory.enabled is false: nothing is searched"}


def search_store(reads: ReadPool, asked: Search, *, reranks: bool = True) -> SearchResult:
    """The result of a search. Providers are asked while no read model is in use: others go on reading.

    reranks: whether a provider that ranks hits anew is asked.
    """
    if reads.first.is_off:
        return SearchResult(hits=[], mode=asked.mode, synced=True, silent=dict(OFF), took_ms=0.0)
    asking = Asking(reads, asked.text, embeds=asked.mode != "text")
    rerank = reranker_of(reads.first, reads.read, has_key=asking.has_key) if reranks else None
    most = asked.k if reads.first.rerank is None else max(asked.k, reads.first.rerank.top_n)
    wanted = replace(asked, k=most)
    result = reads.healed(lambda read_model: _searched(read_model, wanted, asking))
    if rerank is not None:
        result.hits = swapped(rerank(asked.text, result.hits, result.silent)[: asked.k])
    if not asking.models.loaded and asked.mode == "vector":
        result.silent.setdefault("vector", NO_MODEL)
    return result


def _searched(read_model: ReadModel, asked: Search, asking: "Asking") -> SearchResult:
    db, synced, models, silent = latest_for_search(read_model, asking, is_synced=asked.sync)
    result = search(
        db,
        asked,
        models,
        read_model.held_vectors,
        lambda found: rate(db, asked, models, read_model.sample, found),
    )
    if asked.where == Filters() or asked.where == Filters(kinds=frozenset(["memory"])):
        of_core = [] if asked.is_raw else core_hits(db, asked.question)
        result.hits = [*of_core, *result.hits][: asked.k]
        result.certain = result.certain or bool(of_core)
    result.synced = synced
    result.silent |= silent
    return result


class Asking:
    """The models for a question. A provider has embedded it already: nothing is locked meanwhile.

    chat: in which it is said. silent: why one does not work. has_key: whether providers are to be asked,
    and the question holds what looks like a key.
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
            self.models, self.silent = reads.first.model.models_or_why("question")
        first = self.models.first
        is_remote = first is not None and first.is_remote
        if is_remote or reads.first.rerank is not None:
            # Of the whole: only its beginning is embedded. Beside it stands what its chat said before.
            self.has_key = (
                has_key(text)
                if chat is None
                else reads.healed(
                    lambda read_model: question_has_key(read_model.latest(sync=is_synced)[0], text, chat)
                )
            )
        questions = reads.first.questions
        self.models = Models(*(each and questions.of(each) for each in self.models))
        if (embedder := self.models.first) is not None and is_remote:
            before = _AskedBefore(embedder, None if self.has_key else embedded_part(text, embedder))
            self.models = self.models._replace(first=before)


class _AskedBefore:
    """A remote embedder that has embedded a question, or failed to. text: None where it holds a key."""

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
        """The vector of the question."""
        if self._vector is None:
            raise self._failure
        return self._vector


def providers_of(read_model: ReadModel) -> "list[ProviderState]":
    """How the providers do that searches ask."""
    known = [breaker.state() for breaker in read_model.model.providers]
    if read_model.rerank is not None:
        # Imported here: most stores have no provider.
        from memlog.service.providers.breaker import Breaker

        known.append(Breaker(read_model.path, "rerank", read_model.rerank).state())
    return known


def reranker_of(
    read_model: ReadModel, read: Callable[[Callable[[Connection], bool]], bool], *, has_key: bool
) -> "Reranker | None":
    """What ranks the hits for one question anew; None where nobody does.

    read: reads the read model. has_key: whether the question holds what looks like a key.
    """
    if read_model.rerank is None:
        return None
    # Imported here: most stores have no provider.
    from memlog.service.providers.reranker import Reranker

    def is_sendable(hit: Hit) -> bool:
        return read(lambda db: may_be_sent(db, hit))

    return Reranker(read_model.rerank, read_model.path, is_sendable, has_key=has_key)


def latest_for_search(
    read_model: ReadModel, asking: Asking, *, is_synced: bool
) -> tuple[Connection, bool, Models, dict[str, str]]:
    """The read model, whether it has caught up, the models, and what is missing, with the reason."""
    models, silent = asking.models, dict(asking.silent)
    first = models.first
    db, synced = read_model.latest(sync=is_synced, models=models, silent=silent)
    if models.loaded:
        name_pending(db, silent)
    there = vectors.model_of(db) if asking.embeds else None
    if there is None or (first is not None and there == first.id):
        return db, synced, models, silent
    former = read_model.model.for_vectors_of(there)
    if first is None or former is None:
        return db, synced, models._replace(first=former or first), silent
    silent["pending"] = f"the vectors of {there} answer until those of {first.id} are ready: project the log"
    return db, synced, models._replace(first=former), silent
