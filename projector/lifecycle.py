"""The projector of a store: which read model is live, who may write it, and how a new one takes its place.

Each call may be killed at any moment; the next one goes on where it stopped.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from memlog.eventlog.errors import Busy, DatabaseError
from memlog.eventlog.layout import BUILD_LOCK, EMBEDDINGS, LOG, PROJECTOR_LOCK
from memlog.eventlog.locks import locked
from memlog.eventlog.streams import shown
from memlog.projector import catchup, projection_id, schema, sqlite
from memlog.projector.catchup import Bounds, CatchUp, Progress
from memlog.projector.core_memory_file import CoreView
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.embedding.models import Embedder, Model
from memlog.projector.generations import Generations
from memlog.projector.passages import index, vectors
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import (
    DAMAGED,
    NO_ROOM,
    Connection,
    connect,
    connect_without_room,
    remove_database,
    transaction,
    why_no_vectors,
    wrapped,
)

T = TypeVar("T")

_ATTEMPTS = 3
_BUILD_TIMEOUT = 600.0


class Embedded(msgspec.Struct):
    """How many texts the model `computed` vectors for, and how many passages had one `cached`."""

    computed: int = 0
    cached: int = 0


class Projection(msgspec.Struct):
    """What a projection did.

    rebuilt: why a generation was built from scratch; None where none was.
    vectors_cached: how many vectors it was given from the cache.
    """

    read: CatchUp
    rebuilt: str | None = None
    vectors_cached: int = 0


class _GenerationChanged(Exception):
    """Another process has put a new generation in place."""


class Projector:
    """Brings the read model of the store at `store` up to its log.

    lock_timeout: seconds to wait for another projector.
    model: says which model a new generation has vector tables for, and is given its cached vectors of;
        called when one is built.
    frozen: why the live generation is open only for reading though its folder can be written; else None.
    """

    def __init__(
        self,
        store: Path,
        sizes: ChunkSizes | None = None,
        *,
        lock_timeout: float = 10.0,
        model: Callable[[], Model | None] = lambda: None,
    ) -> None:
        self.store = store
        self.log = store / LOG
        self.sizes = sizes or ChunkSizes()
        self.generations = Generations(store)
        self._lock = store / PROJECTOR_LOCK
        self._lock_timeout = lock_timeout
        self._model = model
        self.core_view = CoreView(store, lock_timeout)
        self._live: tuple[Path, Connection] | None = None
        self.frozen: DatabaseError | None = None

    def catch_up(
        self,
        *,
        lock_timeout: float | None = None,
        progress: Progress | None = None,
        seconds: float | None = None,
    ) -> Projection:
        """Read on from the checkpoints; build a generation where none stands that can be read on.

        seconds: to read on for, see `catchup.catch_up`.

        Raises:
            Busy: another projector held the lock for too long; the read model is whole, and behind.
            DatabaseError: the read model cannot be written.
        """
        timeout = self._lock_timeout if lock_timeout is None else lock_timeout
        if self.frozen is not None:
            self.close()  # there may be room again
        for _ in range(_ATTEMPTS):
            unusable = self.why_unusable()
            if self.frozen is not None:
                raise self.frozen
            if unusable is not None:
                return self.rebuild(unusable, progress=progress, only_if_unusable=True)
            try:
                return self._shown(Projection(self._read_on(timeout, progress, seconds)), timeout)
            except _GenerationChanged:
                continue
            except DatabaseError as error:
                if error.code != DAMAGED:
                    raise
                return self.replace_damaged(error, progress=progress)
        raise DatabaseError("the read model was replaced again and again", hint="try again")

    def rebuild(
        self,
        why: str,
        *,
        progress: Progress | None = None,
        only_if_unusable: bool = False,
        only_if_live: Path | None = None,
    ) -> Projection:
        """Build a generation from the whole log beside the live one, and put it in its place.

        Readers go on with the live one meanwhile. It is given the vectors that the cache has.

        only_if_unusable: leave it where another process has meanwhile built one.
        only_if_live: the same, where the live one is known by more than that it cannot be read on.

        Raises:
            Busy: another process is building one for very long, or is stopped while it does.
            DatabaseError: it cannot be written.
        """
        self.generations.make_folder()
        with locked(self.store / BUILD_LOCK, "the rebuild", _BUILD_TIMEOUT, if_stopped=self._lock_timeout):
            is_replaced = only_if_live is not None and self.generations.current() != only_if_live
            if (only_if_unusable or is_replaced) and self.why_unusable() is None:
                return self._shown(
                    Projection(self._read_on(self._lock_timeout, progress)), self._lock_timeout
                )
            path = self.generations.new_file()
            try:
                read, cached = self._build(path, progress)
            except BaseException:
                if self.generations.current() != path:
                    remove_database(path)
                raise
        return self._shown(Projection(read, rebuilt=why, vectors_cached=cached), self._lock_timeout)

    def replace_damaged(self, error: DatabaseError, *, progress: Progress | None = None) -> Projection:
        """Build a generation in the place of the live one, which gave `error`; the log is whole.

        Raises as `rebuild`.
        """
        damaged = self._live[0] if self._live is not None else None
        self.close()
        why = f"the read model was damaged ({error.message})"
        return self.rebuild(why, progress=progress, only_if_live=damaged)

    def embed(
        self,
        embedder: Embedder,
        *,
        limit: int | None = None,
        batch: int = EMBED_BATCH,
        lock_timeout: float | None = None,
        progress: Progress | None = None,
    ) -> Embedded:
        """Give passages that have no vector one: from the cache, or computed, at most `limit` of these.

        Vectors are computed outside the lock and written in short transactions of `batch` passages, in the
        order in which the passages came. A text that was forgotten meanwhile gets none, in the cache neither.

        Raises:
            EmbeddingError: the model failed; what was written before stays.
            Busy, DatabaseError: as `catch_up`.
        """
        done = Embedded()
        timeout = self._lock_timeout if lock_timeout is None else lock_timeout
        if why_no_vectors() is not None:
            return done
        for _ in range(_ATTEMPTS):
            try:
                with wrapped("the read model"):
                    self._embed(embedder, limit, batch, timeout, progress, done)
                break
            except _GenerationChanged:
                continue
        return done

    def leave_no_other(self) -> None:
        """Remove every generation but the live one, also the one that was live before it.

        A reader that has one open keeps it until it closes it.

        Raises:
            Busy: another process is building one, for very long.
        """
        with locked(self.store / BUILD_LOCK, "the rebuild", _BUILD_TIMEOUT):
            self.generations.remove_others({self.generations.current()})

    def in_turn(self, write: Callable[[Connection], T]) -> T:
        """Do `write` in one transaction of the live generation, while no other projector reads the log on.

        Raises:
            Busy, DatabaseError: as `catch_up`.
        """
        for _ in range(_ATTEMPTS):
            db = self.live()
            try:
                with wrapped("the read model"), self._turn(self._lock_timeout):
                    return write(db)
            except _GenerationChanged:
                continue
        raise DatabaseError("the read model was replaced again and again", hint="try again")

    def live(self, *, read_only: bool = False) -> Connection:
        """The connection to the live generation; `read_only` in a folder that cannot be written.

        Where there is no room for the files that SQLite needs to write, it is read as it is (`frozen`).

        Raises:
            DatabaseError: there is none.
        """
        while True:
            path = self.generations.current()
            if path is None:
                raise DatabaseError("there is no read model", hint="memlog project")
            if self._live is not None and self._live[0] == path:
                return self._live[1]
            self.close()
            try:
                self._live = (path, connect(path, "immutable" if read_only else "write"))
            except DatabaseError as error:
                if error.code == NO_ROOM:
                    self.frozen = error
                    self._live = (path, connect_without_room(path))
                # It may have been removed between the two looks, where two others took its place.
                elif self.generations.current() == path:
                    raise

    def why_unusable(self) -> str | None:
        """Why the live generation cannot be read on; None where it can."""
        if self.generations.current() is None:
            return self.generations.why_none()
        try:
            db = self.live()
            with wrapped("the read model"):
                standing = projection_id.stored_projection_id(db)
        except DatabaseError as error:
            self.close()
            return f"the read model could not be read ({error.message})"
        if standing != projection_id.projection_id(self.sizes):
            self.close()
            return "the read model was made with other chunk sizes, or by another memlog"
        return None

    def is_sound(self) -> bool:
        """Whether SQLite finds nothing wrong with the live generation. Reads all of it."""
        return sqlite.is_sound(self.live())

    def close(self) -> None:
        """Close the connection to the live generation."""
        if self._live is not None:
            self._live[1].close()
            self._live = None
        self.frozen = None

    def _embed(
        self,
        embedder: Embedder,
        limit: int | None,
        batch_size: int,
        lock_timeout: float,
        progress: Progress | None,
        done: Embedded,
    ) -> None:
        db = self.live()
        if vectors.model_of(db) != embedder.id:
            with self._turn(lock_timeout):
                if vectors.use_model(db, embedder):
                    index.queue_all(db)
        total = index.count_pending(db)
        if not total:
            return
        if progress:
            progress("vectors", 0, total)
        with closing(VectorCache(self.store, embedder.id)) as cache:
            for shelf, batch in index.waiting(db, batch_size):
                room = None if limit is None else max(0, limit - done.computed)
                known = cache.find([item.text for item in batch])
                missing = list(dict.fromkeys(item.text for item in batch if item.text not in known))[:room]
                fresh = _computed(embedder, missing)
                ready = [item for item in batch if item.text in known or item.text in fresh]
                found = [(item.chunk_no, (known | fresh)[item.text]) for item in ready]
                with self._turn(lock_timeout):
                    stored = vectors.store(db, shelf.vectors, shelf.queue, found)
                    # Within the turn: a scrub that ended meanwhile has put another generation in place.
                    kept = {item.text for item in ready if item.chunk_no in stored}
                    cache.add((text, fresh[text]) for text in fresh.keys() & kept)
                done.computed += len(fresh)
                done.cached += len(ready) - len(fresh)
                if len(ready) < len(batch):
                    return
                if progress:
                    progress("vectors", done.computed + done.cached, total)

    def _read_on(
        self, lock_timeout: float, progress: Progress | None, seconds: float | None = None
    ) -> CatchUp:
        with wrapped("the read model"):
            return catchup.catch_up(
                self.live(),
                self.log,
                self.sizes,
                turn=lambda: self._turn(lock_timeout),
                progress=progress,
                seconds=seconds,
                remembers=True,
            )

    def _shown(self, done: Projection, lock_timeout: float) -> Projection:
        """Bring the core view up to the read model; what a person should know of it is a note of `done`."""
        try:
            with wrapped("the read model"):
                if self.core_view.is_up_to(self.live()):
                    return done
                with self._turn(lock_timeout):
                    note = self.core_view.bring_up(self.live())
                done.read.notes += [] if note is None else [note]
        except (Busy, _GenerationChanged):
            # Whoever is at it shows what it has projected, which is no less than this.
            return done
        except OSError as error:
            done.read.notes.append(f"{shown(self.core_view.path)} stays as it is: {error.strerror}")
        return done

    @contextmanager
    def _turn(self, lock_timeout: float) -> Iterator[None]:
        """One write transaction on the live generation, under the projector lock."""
        with locked(self._lock, "the read model", lock_timeout):
            if self._live is None or self._live[0] != self.generations.current():
                raise _GenerationChanged
            with transaction(self._live[1]):
                yield

    def _build(self, path: Path, progress: Progress | None) -> tuple[CatchUp, int]:
        from memlog.projector.raise_watermarks import remember_all

        db = connect(path, "bulk")
        try:
            with wrapped(path):
                report = build(db, self.log, self.sizes, progress=progress)
                cached = self._take_cached_vectors(db)
                with locked(self._lock, "the read model", self._lock_timeout):
                    with transaction(db):
                        newer = catchup.catch_up(db, self.log, self.sizes)
                    report.add(newer)
                    report.notes = list(dict.fromkeys([*report.notes, *remember_all(db, self.log)]))
                    db.execute("PRAGMA locking_mode = NORMAL")
                    db.execute("PRAGMA journal_mode = WAL")
                    db.close()
                    self.generations.publish(path)
        finally:
            db.close()
        return report, cached

    def _take_cached_vectors(self, db: Connection) -> int:
        """Make the vector tables, and fill them with what the cache has; return how many it had."""
        model = None if why_no_vectors() is not None else self._model()
        if model is None:
            return 0
        with transaction(db):
            vectors.use_model(db, model)
        if not (self.store / EMBEDDINGS).exists():
            return 0
        taken = 0
        with closing(VectorCache(self.store, model.id)) as cache, transaction(db):
            for shelf, batch in index.waiting(db, EMBED_BATCH):
                known = cache.find([item.text for item in batch])
                found = [(item.chunk_no, known[item.text]) for item in batch if item.text in known]
                taken += len(vectors.store(db, shelf.vectors, shelf.queue, found))
        return taken


def build(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
) -> CatchUp:
    """Make the read model of `log` in the empty file of `db`, up to `bounds` where they are given.

    Raises:
        DatabaseError: a row refers to one that is not there.
    """
    with transaction(db):
        schema.create_tables(db)
        projection_id.store_projection_id(db, sizes)
        report = catchup.catch_up(db, log, sizes, bounds=bounds, progress=progress)
        schema.create_indexes(db)
    dangling = db.execute("PRAGMA foreign_key_check").fetchone()
    if dangling:
        raise DatabaseError(f"a row of {dangling[0]} refers to a row of {dangling[2]} that is not there")
    return report


def _computed(embedder: Embedder, texts: list[str]) -> dict[str, bytes]:
    if not texts:
        return {}
    return {text: row.tobytes() for text, row in zip(texts, embedder.embed(texts), strict=True)}
