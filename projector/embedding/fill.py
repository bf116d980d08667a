"""Fills the vector tables from the cache, and with vectors that it computes."""

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.errors import Busy
from memlog.eventlog.layout import EMBEDDINGS
from memlog.projector.catchup import Progress, Turn
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.embedding.models import Embedder, Model
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection, transaction, why_no_vectors


class Embedded(msgspec.Struct):
    """How many vectors the model computed, and how many passages took theirs from the cache."""

    computed: int = 0
    cached: int = 0


def fill(
    db: Connection,
    store: Path,
    embedder: Embedder,
    counts: Embedded,
    *,
    turn: Turn,
    limit: int | None,
    batch: int,
    progress: Progress | None,
) -> None:
    """Store the missing vectors of the live generation `db`, and add to `counts`; see `Projector.embed`.

    limit: texts to compute at most, those in `counts` included. batch: passages in a write, each in a `turn`.
    """
    if vectors.model_of(db) != embedder.id:
        with turn():
            if vectors.use_model(db, embedder):
                index.queue_all(db)
    total = index.count_pending(db)
    if not total:
        return
    tell = progress or (lambda *_: None)
    tell("vectors", 0, total)
    # Of few, those that were appended last: a question is more often about them.
    for shelf, passages in index.waiting(db, batch, newest_first=limit is not None):
        with closing(VectorCache(store, embedder.id)) as cache:
            cached = cache.find([passage.text for passage in passages])
        missing = dict.fromkeys(passage.text for passage in passages if passage.text not in cached)
        room = None if limit is None else max(0, limit - counts.computed)
        # The cache is closed meanwhile: other threads may read the files of the store.
        computed = _compute(embedder, list(missing)[:room])
        known = cached | computed
        with turn(), closing(VectorCache(store, embedder.id)) as cache:
            stored = vectors.store(db, shelf.vectors, shelf.queue, passages, known)
            # Within the turn: a scrub that ended meanwhile has put another generation in place.
            cache.add((text, computed[text]) for text in computed.keys() & {each.text for each in stored})
        ready = sum(passage.text in known for passage in passages)
        counts.computed += len(computed)
        counts.cached += ready - len(computed)
        if ready < len(passages):
            return
        tell("vectors", counts.computed + counts.cached, total)


def take_cached_vectors(db: Connection, store: Path, known_model: Callable[[], Model | None]) -> int:
    """Make the vector tables of a new generation and fill them from the cache; return how many vectors."""
    model = None if why_no_vectors() is not None else known_model()
    if model is None:
        return 0
    with transaction(db):
        vectors.use_model(db, model)
    if not (store / EMBEDDINGS).exists():
        return 0
    taken = 0
    # Busy: a forked child goes without the cache that its parent has open.
    with suppress(Busy), closing(VectorCache(store, model.id)) as cache, transaction(db):
        for shelf, passages in index.waiting(db, EMBED_BATCH):
            cached = cache.find([passage.text for passage in passages])
            taken += len(vectors.store(db, shelf.vectors, shelf.queue, passages, cached))
    return taken


def _compute(embedder: Embedder, texts: list[str]) -> dict[str, bytes]:
    if not texts:
        return {}
    return {text: row.tobytes() for text, row in zip(texts, embedder.embed(texts), strict=True)}
