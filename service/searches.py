"""Searches the read model, caught up with the log, with the embedding model that works here."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memlog.projector.embedding.models import Embedder
from memlog.projector.passages import vectors
from memlog.projector.sqlite import Connection
from memlog.query.search.hybrid import SearchResult, search
from memlog.query.search.request import Search
from memlog.service.read_model import ReadModel, name_pending

if TYPE_CHECKING:
    from memlog.service.providers.breaker import ProviderState
    from memlog.service.providers.reranker import Reranker

OFF = {"memory": "memory.enabled is false: nothing is searched"}


def search_read_model(read_model: ReadModel, asked: Search) -> SearchResult:
    """The result of a search, after catching up if that takes little time."""
    if read_model.is_off:
        return SearchResult(hits=[], mode=asked.mode, synced=True, silent=dict(OFF), took_ms=0.0)
    db, synced, embedder, silent = latest_for_search(
        read_model, is_synced=asked.sync, embeds=asked.mode != "text"
    )
    rerank = reranker_of(read_model)
    most = asked.k if read_model.rerank is None else max(asked.k, read_model.rerank.top_n)
    result = search(db, replace(asked, k=most), embedder, read_model.held_vectors)
    if rerank is not None:
        result.hits = rerank(asked.text, result.hits, result.silent)[: asked.k]
    result.synced = synced
    result.silent |= silent
    return result


def providers_of(read_model: ReadModel) -> "list[ProviderState]":
    """How the providers do that searches ask."""
    known = [breaker.state() for breaker in read_model.model.providers]
    if read_model.rerank is not None:
        # Imported here: most stores have no provider.
        from memlog.service.providers.breaker import Breaker

        known.append(Breaker(read_model.path, "rerank", read_model.rerank).state())
    return known


def reranker_of(read_model: ReadModel) -> "Reranker | None":
    """What ranks the hits for one question anew; None where nobody does."""
    if read_model.rerank is None:
        return None
    # Imported here: most stores have no provider.
    from memlog.service.providers.reranker import Reranker

    return Reranker(read_model.rerank, read_model.path)


def latest_for_search(
    read_model: ReadModel, *, is_synced: bool, embeds: bool = True
) -> tuple[Connection, bool, Embedder | None, dict[str, str]]:
    """The read model, whether it has caught up, the embedding model, and what is missing, with the reason."""
    embedder, silent = read_model.model.embedder_or_why("question") if embeds else (None, {})
    db, synced = read_model.latest(sync=is_synced, embedder=embedder, silent=silent)
    if embedder is not None:
        name_pending(db, silent)
    there = vectors.model_of(db) if embeds else None
    if there is None or (embedder is not None and there == embedder.id):
        return db, synced, embedder, silent
    former = read_model.model.for_vectors_of(there)
    if embedder is None or former is None:
        return db, synced, former or embedder, silent
    silent["pending"] = (
        f"the vectors of {there} answer until those of {embedder.id} are ready: project the log"
    )
    return db, synced, former, silent
