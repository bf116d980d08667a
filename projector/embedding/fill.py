"""Fills the vector tables: from the cache, or by computing what is missing."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from memlog.eventlog.layout import EMBEDDINGS
from memlog.projector.catchup import Progress, Turn
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.embedding.models import Embedder, Model
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import Shelf
from memlog.projector.passages.vectors import Pending
from memlog.projector.sqlite import Connection, transaction, why_no_vectors


class Embedded(msgspec.Struct):
    """How many texts the model `computed` vectors for, and how many passages took theirs from the cache."""

    computed: int = 0
    cached: int = 0


class PendingVectors:
    """The passages of the live generation `db` that have no vector. turn: the context of one write."""

    def __init__(self, db: Connection, turn: Turn) -> None:
        self._db = db
        self._turn = turn

    def fill(
        self,
        store: Path,
        embedder: Embedder,
        counts: Embedded,
        *,
        limit: int | None,
        batch: int,
        progress: Progress | None,
    ) -> None:
        """Store vectors, `batch` passages a write, and add to `counts`; see `Projector.embed`.

        limit: texts to compute at most, those in `counts` included.
        """
        self._use_model(embedder)
        total = index.count_pending(self._db)
        if not total:
            return
        if progress:
            progress("vectors", 0, total)
        for shelf, passages in index.waiting(self._db, batch):
            room = None if limit is None else max(0, limit - counts.computed)
            if not self._fill_batch(store, shelf, passages, embedder, room, counts):
                return
            if progress:
                progress("vectors", counts.computed + counts.cached, total)

    def _use_model(self, model: Model) -> None:
        if vectors.model_of(self._db) != model.id:
            with self._turn():
                if vectors.use_model(self._db, model):
                    index.queue_all(self._db)

    def _fill_batch(
        self,
        store: Path,
        shelf: Shelf,
        passages: list[Pending],
        embedder: Embedder,
        room: int | None,
        counts: Embedded,
    ) -> bool:
        """Whether every passage has a vector now. room: texts to compute at most.

        The cache is closed while they are computed: other threads may read the files of the store then.
        """
        with closing(VectorCache(store, embedder.id)) as cache:
            cached = cache.find([passage.text for passage in passages])
        missing = dict.fromkeys(passage.text for passage in passages if passage.text not in cached)
        computed = _compute(embedder, list(missing)[:room])
        known = cached | computed
        ready = [passage for passage in passages if passage.text in known]
        with self._turn():
            stored = vectors.store(
                self._db, shelf.vectors, shelf.queue, [(each.chunk_no, known[each.text]) for each in ready]
            )
            # Within the turn: a scrub that ended meanwhile has put another generation in place.
            kept = {passage.text for passage in ready if passage.chunk_no in stored}
            if computed:
                with closing(VectorCache(store, embedder.id)) as cache:
                    cache.add((text, computed[text]) for text in computed.keys() & kept)
        counts.computed += len(computed)
        counts.cached += len(ready) - len(computed)
        return len(ready) == len(passages)


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
    with closing(VectorCache(store, model.id)) as cache, transaction(db):
        for shelf, passages in index.waiting(db, EMBED_BATCH):
            cached = cache.find([passage.text for passage in passages])
            ready = [(each.chunk_no, cached[each.text]) for each in passages if each.text in cached]
            taken += len(vectors.store(db, shelf.vectors, shelf.queue, ready))
    return taken


def _compute(embedder: Embedder, texts: list[str]) -> dict[str, bytes]:
    if not texts:
        return {}
    return {text: row.tobytes() for text, row in zip(texts, embedder.embed(texts), strict=True)}
