"""Fills the vector tables from the cache, and computes missing vectors."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from operator import add
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from memlog.eventlog import timestamps
from memlog.eventlog.errors import Busy, DatabaseError, EmbeddingError
from memlog.eventlog.files.file_io import status_at
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.secrets.outgoing import is_private_category
from memlog.projector.catchup import Progress, Turn
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.embedding.models import (
    Embedder,
    KnownModel,
    Model,
    is_model_of_provider,
    may_refuse_texts,
)
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import PassageTables
from memlog.projector.passages.vectors import Pending, VectorSet
from memlog.projector.sqlite import Connection, connect, converting_errors, transaction, why_no_vectors

_MARK, _EVER = "9999-12-31", "99999"
"""The day of a marker row that every cache in use has, and a later day."""


def list_names_of_texts_set_aside(db: Connection, store: Path) -> list[str]:
    """Return the names of texts that were set aside, such as `message 01a2160e-…`."""
    names: dict[str, None] = {}
    for of in vectors.SETS if status_at(store / EMBEDDINGS) is not None else ():
        model = vectors.read_model_of_vectors(db, of)
        if model is None or not vectors.list_vector_tables(db, of):
            continue
        with closing(VectorCache(store, model)) as cache:
            found = _find_passages_set_aside(db, cache, of) if cache.has_texts_set_aside() else ()
            names |= {index.format_name_of_owner(db, shelf, each.chunk_no): None for shelf, each, _ in found}
    return list(names)


def requeue_passages_set_aside(db: Connection, store: Path, model: Model, turn: Turn) -> None:
    """Requeue the passages set aside before today, or all without a vector if the cache was lost."""
    today, of = timestamps.today(), vectors.choose_vector_set_for_model(model)
    with closing(VectorCache(store, model.id)) as cache:
        is_lost = not cache.has_texts_set_aside(_EVER)  # with the cache, so it is unknown what was set aside
        if not is_lost and not cache.has_texts_set_aside(today):
            return
        if is_lost:
            found = [
                (shelf, each)
                for shelf in index.passage_tables(of)
                for each in index.read_passages_without_vector(db, shelf)
            ]
        else:
            found = [
                (shelf, each) for shelf, each, day in _find_passages_set_aside(db, cache, of) if day < today
            ]
    with turn(), closing(VectorCache(store, model.id)) as cache:
        for shelf, each in found:
            index.requeue_passage(db, shelf, each)
        cache.forget_texts_set_aside(today)
        cache.record_texts_set_aside([""], _MARK)


def _find_passages_set_aside(
    db: Connection, cache: VectorCache, of: VectorSet
) -> Iterator[tuple[PassageTables, Pending, str]]:
    for shelf in index.passage_tables(of):
        passages = index.read_passages_without_vector(db, shelf)
        days = cache.find_days_set_aside(each.text for each in passages)
        yield from ((shelf, each, days[each.text]) for each in passages if each.text in days)


class Embedded(msgspec.Struct):
    """Counts of vectors that were computed, taken from the cache, or withheld.

    A passage is withheld if it must not be sent to a provider, or if the provider could not embed it today.
    """

    computed: int = 0
    cached: int = 0
    withheld: int = 0

    def __add__(self, other: "Embedded") -> "Embedded":
        """Return the sums of the counts."""
        return Embedded(*map(add, astuple(self), astuple(other)))


def fill_missing_vectors(
    db: Connection,
    store: Path,
    embedder: Embedder,
    counts: Embedded,
    *,
    turn: Turn,
    limit: int | None,
    batch: int,
    progress: Progress | None,
    withheld_channels: Collection[str] = (),
) -> None:
    """Store a model's missing vectors in the live generation `db`; see `Projector.embed`.

    The vectors of a new model are first collected in the cache, so that searches use either all of the old
    vectors or all of the new ones.

    counts: updated as vectors are stored. limit: the maximum number of vectors to compute, including those
      already in `counts`.
    batch: the number of passages per `turn`.
    withheld_channels: channels whose passages are not sent to a provider.
    """
    told = progress or (lambda *_: None)
    filling = _VectorFill(db, store, embedder, counts, turn, limit, batch, told, withheld_channels)
    of = vectors.choose_vector_set_for_model(embedder)
    known = vectors.read_model_of_vectors(db, of)
    if known is None:
        with turn():
            if vectors.create_vector_tables_for(db, embedder):
                index.queue_all_passages(db, of)
    elif known != embedder.id:
        # Two programs, of which only one names a provider, would otherwise swap the vectors back and forth.
        is_left = limit is not None and is_model_of_provider(known) and not embedder.is_remote
        if is_left or not filling.gather_vectors():
            return
        filling.swap_vectors()
    if may_refuse_texts(embedder.id):
        requeue_passages_set_aside(db, store, embedder, turn)
    filling.store_queued_vectors()


class _VectorFill(NamedTuple):
    """The arguments of `fill_missing_vectors`, and its steps as methods."""

    db: Connection
    store: Path
    embedder: Embedder
    counts: Embedded
    turn: Turn
    limit: int | None
    batch: int
    progress: Progress
    withheld_channels: Collection[str]

    @property
    def vector_tables(self) -> VectorSet:
        """The model's vector tables."""
        return vectors.choose_vector_set_for_model(self.embedder)

    def store_queued_vectors(self) -> None:
        """Store the vectors of the passages in the queue."""
        db, of = self.db, self.vector_tables
        total, done = index.count_pending_passages(db, of), 0
        if not total:
            return
        self.progress("vectors", 0, total)
        # Newest first: questions are more often about recent texts. With a limit, those that were queued
        # last, since a query must not wait until all are sorted.
        waiting = (
            index.read_newest_waiting_passages(db, self.batch, of)
            if self.limit is None
            else index.read_waiting_passages(db, self.batch, of, newest_first=True)
        )
        for shelf, found in waiting:
            batch = self._find_or_compute_vectors(shelf, found)
            with self.turn(), closing(VectorCache(self.store, self.embedder.id)) as cache:
                if vectors.read_model_of_vectors(db, of) != self.embedder.id:
                    return  # another process has switched to its model
                stored = vectors.store_vectors(db, shelf.vectors, shelf.queue, batch.passages, batch.known)
                index.dequeue_passages(db, shelf, [*batch.withheld, *batch.aside])
                # Within the turn: a scrub that ended meanwhile has published another generation.
                self._update_cache(cache, shelf, batch, {each.text for each in stored})
            self._count_batch_or_raise(batch)
            if not batch.is_fully_embedded:
                return
            done += len(found)
            self.progress("vectors", done, total)

    def gather_vectors(self) -> bool:
        """Cache the vectors of all passages; return whether the cache now has all of them."""
        upto = vectors.read_gathered_numbers(self.db, self.embedder)
        total, done = index.count_passages(self.db), 0
        for shelf in index.passage_tables(self.vector_tables):
            while found := index.read_passages_after(self.db, shelf, upto[shelf.vectors], self.batch):
                batch = self._find_or_compute_vectors(shelf, found)
                if batch.is_fully_embedded:
                    upto[shelf.vectors] = found[-1].chunk_no
                with self.turn(), closing(VectorCache(self.store, self.embedder.id)) as cache:
                    present = index.find_texts_still_present(self.db, shelf, batch.passages)
                    self._update_cache(cache, shelf, batch, present)
                    vectors.store_gathered_numbers(self.db, self.embedder, upto)
                self._count_batch_or_raise(batch)
                if not batch.is_fully_embedded:
                    return False
                done += len(found)
                self.progress("vectors of the next model", done, total)
        return True

    def swap_vectors(self) -> None:
        """Replace another model's vectors with the collected ones in a single transaction."""
        with self.turn(), closing(VectorCache(self.store, self.embedder.id)) as cache:
            if not vectors.create_vector_tables_for(self.db, self.embedder):
                return
            index.queue_all_passages(self.db, self.vector_tables)
            for shelf, found in index.read_waiting_passages(self.db, self.batch, self.vector_tables):
                passages, withheld = self._separate_withheld_passages(shelf, found)
                cached = cache.find_vectors([passage.text for passage in passages])
                vectors.store_vectors(self.db, shelf.vectors, shelf.queue, passages, cached)
                index.dequeue_passages(self.db, shelf, withheld)

    def _separate_withheld_passages(
        self, shelf: PassageTables, passages: list[Pending]
    ) -> tuple[list[Pending], list[Pending]]:
        """Return the passages to embed, and those that must not be sent to a provider."""
        if not self.embedder.is_remote:
            return passages, []
        private = index.find_passages_with_keys(self.db, shelf, passages)
        private |= index.find_passages_of_channels(self.db, shelf, passages, self.withheld_channels)
        withheld = [
            each for each in passages if is_private_category(each.category) or each.chunk_no in private
        ]
        return [each for each in passages if each not in withheld], withheld

    def _find_or_compute_vectors(self, shelf: PassageTables, found: list[Pending]) -> "_EmbeddedBatch":
        passages, withheld = self._separate_withheld_passages(shelf, found)
        computed: dict[str, bytes] = {}
        with closing(VectorCache(self.store, self.embedder.id)) as cache:
            cached = cache.find_vectors([passage.text for passage in passages])
            missing = [text for text in dict.fromkeys(each.text for each in passages) if text not in cached]
            days = cache.find_days_set_aside(missing) if may_refuse_texts(self.embedder.id) else {}
        aside = frozenset(text for text, day in days.items() if day >= timestamps.today())
        room = None if self.limit is None else max(0, self.limit - self.counts.computed)
        wanted = [text for text in missing if text not in aside][:room]
        # The cache is closed meanwhile, so that other threads may use the store.
        failed = None
        try:
            if wanted:
                rows = self.embedder.embed(wanted)
                computed = {text: row.tobytes() for text, row in zip(wanted, rows, strict=True)}
        except EmbeddingError as error:
            if not (error.refused or error.embedded):
                raise
            computed, aside = error.embedded or {}, aside | error.refused
            failed = None if error.is_of_texts else error
        accepted = [each for each in passages if each.text not in aside]
        refused = [each for each in passages if each.text in aside]
        return _EmbeddedBatch(accepted, withheld, refused, cached | computed, computed, failed)

    def _update_cache(
        self, cache: VectorCache, shelf: PassageTables, batch: "_EmbeddedBatch", texts: set[str]
    ) -> None:
        """Cache the computed vectors of `texts`, which still exist, and record the texts set aside."""
        cache.add_vectors((text, batch.computed[text]) for text in batch.computed.keys() & texts)
        cache.record_texts_set_aside(
            index.find_texts_still_present(self.db, shelf, batch.aside), timestamps.today()
        )

    def _count_batch_or_raise(self, batch: "_EmbeddedBatch") -> None:
        """Add a batch to the counts; raise the error that ended it, if any."""
        self.counts.computed += len(batch.computed)
        self.counts.cached += batch.ready_count - len(batch.computed)
        self.counts.withheld += len(batch.withheld) + len(batch.aside)
        if batch.failed is not None:
            raise batch.failed


class _EmbeddedBatch(NamedTuple):
    """The outcome of embedding a batch of passages.

    passages: the accepted ones. withheld, aside: those withheld, and those set aside.
    known: the cached and computed vectors, keyed by text. computed: the computed ones.
    failed: the error that ended the batch, if any.
    """

    passages: list[Pending]
    withheld: list[Pending]
    aside: list[Pending]
    known: dict[str, bytes]
    computed: dict[str, bytes]
    failed: EmbeddingError | None

    @property
    def ready_count(self) -> int:
        """The number of passages with a vector."""
        return sum(passage.text in self.known for passage in self.passages)

    @property
    def is_fully_embedded(self) -> bool:
        """Whether all passages have a vector."""
        return self.ready_count == len(self.passages)


def take_cached_vectors(
    db: Connection, store: Path, known_models: Callable[[], Iterable[Model]], live: Path | None
) -> int:
    """Create a new generation's vector tables and fill them from the cache; return the number of vectors.

    live: the generation to be replaced. Its model stays in use until the cache has all the new model's
        vectors.
    """
    if why_no_vectors() is not None:
        return 0
    known = {vectors.choose_vector_set_for_model(model): model for model in known_models()}
    return sum(_fill_vectors_from_cache(db, store, of, known.get(of), live) for of in vectors.SETS)


def _fill_vectors_from_cache(
    db: Connection, store: Path, of: VectorSet, model: Model | None, live: Path | None
) -> int:
    former = None if live is None else _read_model_id(live, of)
    if former is not None and (model is None or former != model.id):
        model = _find_former_model(db, store, model, former) or model
    if model is None:
        return 0
    with transaction(db):
        vectors.create_vector_tables_for(db, model)
        index.queue_all_passages(db, of)
    if not (store / EMBEDDINGS).exists():
        return 0
    taken = 0
    # On Busy, a forked child does without the cache, which its parent has open.
    with suppress(Busy), closing(VectorCache(store, model.id)) as cache, transaction(db):
        for shelf, passages in index.read_waiting_passages(db, EMBED_BATCH, of):
            cached = cache.find_vectors([passage.text for passage in passages])
            taken += len(vectors.store_vectors(db, shelf.vectors, shelf.queue, passages, cached))
    return taken


def _read_model_id(generation: Path, of: VectorSet) -> str | None:
    with suppress(DatabaseError), closing(connect(generation, "look")) as db, converting_errors(generation):
        return vectors.read_model_of_vectors(db, of)
    return None


def _find_former_model(db: Connection, store: Path, model: Model | None, former: str) -> Model | None:
    """Return the old model if the cache has its vectors but lacks some of the new model's; otherwise None."""
    if not (store / EMBEDDINGS).exists():
        return None
    with suppress(Busy):
        if model is not None:
            with closing(VectorCache(store, model.id)) as cache:
                if all(cache.find_vectors([text]) for text in index.texts_to_embed(db)):
                    return None
        with closing(VectorCache(store, former)) as cache:
            dimension = cache.read_dimension()
        return None if dimension is None else KnownModel(former, dimension)
    return None
