"""Searches the read model, caught up with the log, with the embedding model that works here."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memlog.eventlog.errors import EmbeddingError
from memlog.eventlog.secrets import kinds_in
from memlog.projector.embedding.models import Embedder, Kind
from memlog.projector.passages import vectors
from memlog.projector.sqlite import Connection
from memlog.query.search.hits import Hit, document_text
from memlog.query.search.hybrid import SearchResult, search
from memlog.query.search.nearest import HAS_KEY, embedded_part
from memlog.query.search.request import Search
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
    asking = Asking(reads.first, asked.text, embeds=asked.mode != "text")
    rerank = reranker_of(reads.first, reads.read) if reranks else None
    most = asked.k if reads.first.rerank is None else max(asked.k, reads.first.rerank.top_n)
    wanted = replace(asked, k=most)
    result = reads.healed(lambda read_model: _searched(read_model, wanted, asking))
    if rerank is not None:
        result.hits = rerank(asked.text, result.hits, result.silent)[: asked.k]
    if asking.embedder is None and asked.mode == "vector":
        result.silent.setdefault("vector", NO_MODEL)
    return result


def _searched(read_model: ReadModel, asked: Search, asking: "Asking") -> SearchResult:
    db, synced, embedder, silent = latest_for_search(read_model, asking, is_synced=asked.sync)
    result = search(db, asked, embedder, read_model.held_vectors)
    result.synced = synced
    result.silent |= silent
    return result


class Asking:
    """The embedder for a question. A provider has embedded it already: nothing is locked meanwhile.

    silent: why there is none.
    """

    def __init__(self, read_model: ReadModel, text: str, *, embeds: bool = True) -> None:
        self.embeds = embeds
        self.embedder: Embedder | None = None
        self.silent: dict[str, str] = {}
        if embeds:
            self.embedder, self.silent = read_model.model.embedder_or_why("question")
        if self.embedder is not None and self.embedder.is_remote:
            self.embedder = _AskedBefore(self.embedder, embedded_part(text))


class _AskedBefore:
    """A remote embedder that has embedded a question, or failed to."""

    is_remote = True

    def __init__(self, embedder: Embedder, text: str) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self._vector: NDArray[np.float32] | None = None
        self._failure = EmbeddingError(HAS_KEY)
        if not kinds_in(text):
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
    read_model: ReadModel, read: Callable[[Callable[[Connection], str]], str]
) -> "Reranker | None":
    """What ranks the hits for one question anew; None where nobody does. read: reads the read model."""
    if read_model.rerank is None:
        return None
    # Imported here: most stores have no provider.
    from memlog.service.providers.reranker import Reranker

    def whole_of(hit: Hit) -> str:
        return read(lambda db: document_text(db, hit.event_id))

    return Reranker(read_model.rerank, read_model.path, whole_of)


def latest_for_search(
    read_model: ReadModel, asking: Asking, *, is_synced: bool
) -> tuple[Connection, bool, Embedder | None, dict[str, str]]:
    """The read model, whether it has caught up, the embedding model, and what is missing, with the reason."""
    embedder, silent = asking.embedder, dict(asking.silent)
    db, synced = read_model.latest(sync=is_synced, embedder=embedder, silent=silent)
    if embedder is not None:
        name_pending(db, silent)
    there = vectors.model_of(db) if asking.embeds else None
    if there is None or (embedder is not None and there == embedder.id):
        return db, synced, embedder, silent
    former = read_model.model.for_vectors_of(there)
    if embedder is None or former is None:
        return db, synced, former or embedder, silent
    silent["pending"] = (
        f"the vectors of {there} answer until those of {embedder.id} are ready: project the log"
    )
    return db, synced, former, silent
