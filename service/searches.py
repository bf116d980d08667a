"""Searches the read model, caught up with the log, with the embedding model that works here."""

from memlog.projector.embedding.models import Embedder
from memlog.projector.sqlite import Connection
from memlog.query.search.hybrid import SearchResult, search
from memlog.query.search.request import Search
from memlog.service.read_model import ReadModel, name_pending


def search_read_model(read_model: ReadModel, asked: Search) -> SearchResult:
    """The result of a search, after catching up if that takes little time."""
    db, synced, embedder, silent = latest_for_search(
        read_model, is_synced=asked.sync, embeds=asked.mode != "text"
    )
    result = search(db, asked, embedder, read_model.held_vectors)
    result.synced = synced
    result.silent |= silent
    return result


def latest_for_search(
    read_model: ReadModel, *, is_synced: bool, embeds: bool = True
) -> tuple[Connection, bool, Embedder | None, dict[str, str]]:
    """The read model, whether it has caught up, the embedding model, and what is missing, with the reason."""
    embedder, silent = read_model.model.embedder_or_why() if embeds else (None, {})
    db, synced = read_model.latest(sync=is_synced, embedder=embedder, silent=silent)
    if embedder is not None:
        name_pending(db, silent)
    return db, synced, embedder, silent
