"""A store's projector: opens the live read model, writes to it under a lock, and replaces it.

After a kill at any point, the next call carries on from there.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from memlog.eventlog.errors import Busy, DatabaseError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.file_io import file_version, is_regular_file, status_at
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import BUILD_LOCK, CURRENT, LOG, MODEL, PROJECTOR_LOCK
from memlog.eventlog.log.streams import escape_invalid_utf8, list_segments
from memlog.eventlog.settings import DEFAULTS
from memlog.projector import catchup, sqlite
from memlog.projector.core_view import CoreView
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.fill import Embedded, fill_missing_vectors, take_cached_vectors
from memlog.projector.embedding.models import Embedder, Model
from memlog.projector.passages.chunking import ChunkSizes


class Generations:
    """The generations of the read model: the files in `model/` of the store at `store`."""

    def __init__(self, store: Path) -> None:
        self.folder = store / MODEL
        self._current = store / CURRENT
        self._known: tuple[tuple[int, ...], Path | None] | None = None

    def find_live_file(self) -> Path | None:
        """Return the live generation's path, or None."""
        named = self._read_name_of_live_file()
        while named is not None and not is_regular_file(named):
            # Two successors may have replaced it since its name was read.
            self._known = None
            before, named = named, self._read_name_of_live_file()
            if named == before:
                return None
        return named

    def _read_name_of_live_file(self) -> Path | None:
        """Return the file named by CURRENT, which may not exist; None if it names no generation or is a link.

        CURRENT is only reread after a change, because every step of a catch-up calls this.
        """
        version, known = file_version(status_at(self._current)), self._known
        if known is None or known[0] != version:
            self._known = known = version, self._parse_name_of_live_file()
        return known[1]

    def _parse_name_of_live_file(self) -> Path | None:
        try:
            name = (file_io.read_file(self._current) or b"").decode().strip()
        except (NotADirectoryError, FileExistsError, UnicodeDecodeError):
            return None
        path = self.folder / name
        return path if path.parent == self.folder and path.suffix == ".db" else None

    def why_no_live_generation(self) -> str:
        """Return the reason why there is no live generation."""
        is_missing = status_at(self._current) is None
        return "there was no read model" if is_missing else "model/CURRENT pointed to no valid read model"

    def create_generation_file(self) -> Path:
        """Create an empty file with a new name; only its owner may read it and its side files."""
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        path = self.folder / f"{stamp}-{os.urandom(4).hex()}.db"
        disk.close(file_io.open_file(path, disk.WRITE | disk.NEW))
        return path

    def open_scratch_database(self) -> AbstractContextManager[sqlite.Connection]:
        """Return a context manager for an empty, private database that leaves no file behind.

        Its name is removed before the first write. A kill just before that leaves an empty file, which the
        next build removes.
        """
        while True:
            path = self.create_generation_file()
            try:
                db = sqlite.connect(path, "bulk")
            except DatabaseError:
                # A build that has just finished removed it as a leftover.
                if is_regular_file(path):
                    raise
                continue
            sqlite.remove_database(path)
            return closing(db)

    def make_generation_live(self, path: Path) -> None:
        """Make the closed file `path` the live generation, keeping the previous one.

        The caller must hold the build lock and the projector lock.
        """
        predecessor = self.find_live_file()
        file_io.sync_path(path)
        # Sync the file's name, too: otherwise CURRENT could name a missing file after a power cut.
        file_io.sync_path(self.folder)
        file_io.replace_file(self._current, path.name.encode() + b"\n")
        self.remove_other_generations({path, predecessor})

    def remove_other_generations(self, kept: set[Path | None]) -> None:
        """Remove the leftovers of killed builds and all generations but `kept`; requires the build lock.

        Processes that have a removed generation open can read it until they close it.
        """
        with disk.scan_folder(self.folder) as entries:
            names = [entry.name for entry in entries]
        databases = {self.folder / (name.partition(".db")[0] + ".db") for name in names if ".db" in name}
        for database in databases - kept:
            sqlite.remove_database(database)


T = TypeVar("T")
_ATTEMPTS = 3
_BUILD_TIMEOUT = 600.0
_held_here: set[Path] = set()
"""The projector locks held by threads of this process."""


class Projection(msgspec.Struct):
    """The result of a projection.

    rebuilt: why a new generation was built; None if none was. replaced: the generation it replaced, if any.
    vectors_cached: the number of vectors taken from the cache.
    """

    read: catchup.CatchUp
    rebuilt: str | None = None
    replaced: Path | None = None
    vectors_cached: int = 0


class _GenerationChanged(Exception):
    """Another process has published a generation, or another thread has closed the connection."""


class Projector:
    """Keeps the read model of the store at `store` up to date with its log.

    lock_timeout: seconds to wait for another projector.
    models: returns the models for the vectors of a new generation; called during a build.
    withheld_channels: returns the channels whose passages are not sent to a provider.
    frozen: why the live generation is read-only although its folder is writable; otherwise None.
    """

    def __init__(
        self,
        store: Path,
        sizes: ChunkSizes | None = None,
        *,
        lock_timeout: float = DEFAULTS.lock_timeout,
        models: Callable[[], Iterable[Model]] = tuple,
        withheld_channels: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.store = store
        self.log = store / LOG
        self.sizes = sizes or ChunkSizes()
        self.generations = Generations(store)
        self._lock = store / PROJECTOR_LOCK
        self._lock_timeout = lock_timeout
        self._models, self._withheld_channels = models, withheld_channels
        self.core_view = CoreView(store, lock_timeout)
        self._live: tuple[Path, sqlite.Connection] | None = None
        self.frozen: DatabaseError | None = None

    def catch_up(
        self,
        *,
        lock_timeout: float | None = None,
        progress: catchup.Progress | None = None,
        seconds: float | None = None,
        streams: Collection[str] | None = None,
    ) -> Projection:
        """Read the log from the checkpoints on, or rebuild if the live generation is missing or unusable.

        seconds, streams: see `catchup.catch_up`.

        Raises:
            Busy: another projector held the lock for too long; the read model is consistent, but behind.
            DatabaseError: the read model cannot be written.
        """
        timeout = self._lock_timeout if lock_timeout is None else lock_timeout
        if self.frozen is not None:
            self.close()  # there may be room again
        for _ in range(_ATTEMPTS):
            unusable = self.why_live_generation_unusable()
            if self.frozen is not None:
                raise self.frozen
            if unusable is not None:
                return self.rebuild_generation(
                    unusable, progress=progress, is_due=self._is_live_generation_unusable
                )
            try:
                return self._extend_live_generation(timeout, progress, seconds, streams)
            except _GenerationChanged:
                streams = None  # the progress of the new generation is unknown
                continue
            except DatabaseError as error:
                if error.code != sqlite.DAMAGED:
                    raise
                return self.replace_damaged_generation(error, progress=progress)
        raise DatabaseError("the read model keeps being replaced", hint="try again")

    def rebuild_generation(
        self,
        why: str,
        *,
        progress: catchup.Progress | None = None,
        is_due: Callable[[], bool] = lambda: True,
    ) -> Projection:
        """Build a generation from the whole log and the cached vectors, and make it live.

        Meanwhile, readers keep using the current one.

        is_due: called once no other process is building; if it returns False, the live generation is brought
          up to date instead.

        Raises:
            Busy: another process takes too long to build, or was stopped while building.
            DatabaseError: the new generation cannot be written.
        """
        make_folder_and_parents(self.generations.folder)
        with holding_lock(
            self.store / BUILD_LOCK, "the rebuild", _BUILD_TIMEOUT, if_stopped=self._lock_timeout
        ):
            if not is_due():
                return self._extend_live_generation(self._lock_timeout, progress)
            path, replaced = self.generations.create_generation_file(), self.generations.find_live_file()
            try:
                read, cached = self._build_generation(path, progress)
            except BaseException:
                if self.generations.find_live_file() != path:
                    sqlite.remove_database(path)
                raise
        done = Projection(read, why, replaced, cached)
        return self._update_core_view(self.connect_to_live(), done, self._lock_timeout)

    def replace_damaged_generation(
        self, error: DatabaseError, *, progress: catchup.Progress | None = None
    ) -> Projection:
        """Replace the live generation, which raised `error`; see `rebuild_generation`."""
        damaged = self._live[0] if self._live is not None else None
        self.close()
        return self.rebuild_generation(
            f"the read model was damaged ({error.message})",
            progress=progress,
            is_due=lambda: (
                damaged in (None, self.generations.find_live_file()) or self._is_live_generation_unusable()
            ),
        )

    def embed_passages(
        self,
        embedder: Embedder,
        *,
        limit: int | None = None,
        batch: int = EMBED_BATCH,
        lock_timeout: float | None = None,
        progress: catchup.Progress | None = None,
    ) -> Embedded:
        """Store the missing vectors of passages from the cache, and compute at most `limit` others.

        Vectors are computed outside the lock and written in short transactions of `batch` passages, newest
        first. A text that is forgotten meanwhile gets no vector, even in the cache.

        Raises:
            EmbeddingError: the model failed; what was already written stays.
            Busy, DatabaseError: as for `catch_up`.
        """
        counts = Embedded()
        timeout = self._lock_timeout if lock_timeout is None else lock_timeout
        if sqlite.why_no_vectors() is not None:
            return counts
        while True:
            with suppress(_GenerationChanged), sqlite.converting_errors("the read model"):
                db = self.connect_to_live()
                turn = partial(self._holding_lock_and_transaction, timeout, db)
                fill_missing_vectors(
                    db,
                    self.store,
                    embedder,
                    counts,
                    turn=turn,
                    limit=limit,
                    batch=batch,
                    progress=progress,
                    withheld_channels=self._withheld_channels(),
                )
                return counts

    def remove_other_generations(self) -> None:
        """Remove all generations but the live one; processes that have one open can still read it.

        Raises Busy if another process takes too long to build.
        """
        with holding_lock(self.store / BUILD_LOCK, "the rebuild", _BUILD_TIMEOUT):
            self.generations.remove_other_generations({self.generations.find_live_file()})

    def run_write_transaction(self, write: Callable[[sqlite.Connection], T]) -> T:
        """Run `write` in one transaction on the live generation, under the projector lock.

        Raises:
            Busy, DatabaseError: as for `catch_up`.
        """
        for _ in range(_ATTEMPTS):
            db = self.connect_to_live()
            try:
                with (
                    sqlite.converting_errors("the read model"),
                    self._holding_lock_and_transaction(self._lock_timeout),
                ):
                    return write(db)
            except _GenerationChanged:
                continue
        raise DatabaseError("the read model keeps being replaced", hint="try again")

    def connect_to_live(self, *, read_only: bool = False) -> sqlite.Connection:
        """Return the connection to the live generation. read_only: whether its folder is read-only.

        Without room for the files that SQLite needs for writing, the connection is read-only; see `frozen`.
        Raises DatabaseError if there is no generation.
        """
        while True:
            path = self.generations.find_live_file()
            if path is None:
                raise DatabaseError("there is no read model", hint="run store.maintenance.project()")
            if self._live is not None and self._live[0] == path:
                return self._live[1]
            self.close()
            try:
                self._live = (path, sqlite.connect(path, "immutable" if read_only else "write"))
            except DatabaseError as error:
                if error.code == sqlite.NO_ROOM:
                    self.frozen = error
                    self._live = (path, sqlite.connect_without_side_files(path))
                # Two successors may have replaced it, so that it was removed before `connect`.
                elif self.generations.find_live_file() == path:
                    raise

    def why_live_generation_unusable(self) -> str | None:
        """Return the reason why the live generation cannot be brought up to date, or None if it can."""
        try:
            db = self.connect_to_live()
            with sqlite.converting_errors("the read model"):
                stored = catchup.read_stored_projection_id(db)
        except DatabaseError as error:
            if self.generations.find_live_file() is None:
                return self.generations.why_no_live_generation()
            self.close()
            return f"the read model could not be read ({error.message})"
        if stored != catchup.compute_projection_id(self.sizes):
            self.close()
            return "the read model was built with other chunk sizes or by another memlog"
        return None

    def _is_live_generation_unusable(self) -> bool:
        return self.why_live_generation_unusable() is not None

    def close(self, *, is_inherited: bool = False) -> None:
        """Close the connection to the live generation, or leave an inherited one to the parent process."""
        if self._live is not None and not is_inherited:
            # Another process may have it open: SQLite would then leave the commits beside the file.
            with suppress(*sqlite.error_types_of_binding()):
                self._live[1].execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._live[1].close()
        self._live = self.frozen = None

    def _extend_live_generation(
        self,
        lock_timeout: float,
        progress: catchup.Progress | None,
        seconds: float | None = None,
        streams: Collection[str] | None = None,
    ) -> Projection:
        # The caller has just checked the live generation; each turn checks that it is still live.
        db = self.connect_to_live() if self._live is None else self._live[1]
        with sqlite.converting_errors("the read model"):
            read = catchup.catch_up(
                db,
                self.log,
                self.sizes,
                turn=lambda: self._holding_lock_and_transaction(lock_timeout),
                progress=progress,
                seconds=seconds,
                remembers=True,
                streams=streams,
            )
        return self._update_core_view(db, Projection(read), lock_timeout)

    def _update_core_view(self, db: sqlite.Connection, done: Projection, lock_timeout: float) -> Projection:
        """Update the core view from `db`, and add a note about any manual change to `done`."""
        try:
            with sqlite.converting_errors("the read model"):
                if self.core_view.is_current(db):
                    return done
                with self._holding_lock_and_transaction(lock_timeout, db):
                    note = self.core_view.write_current_memory(db)
                done.read.notes += [] if note is None else [note]
        except (Busy, _GenerationChanged):
            # The other process writes the view from what it has projected, which is at least as much.
            return done
        except OSError as error:
            done.read.notes.append(
                f"{escape_invalid_utf8(self.core_view.path)} is not updated: {error.strerror}"
            )
        return done

    @contextmanager
    def _holding_lock_and_transaction(
        self, lock_timeout: float, db: sqlite.Connection | None = None
    ) -> Iterator[None]:
        """Hold the projector lock and a write transaction on the live generation within the context.

        db: the connection used to read the data to be written, if another thread may have closed it since.
        """
        with self._holding_projector_lock(lock_timeout):
            # Checked under the lock: another process may have published a generation meanwhile.
            if self._live is None or self._live[0] != self.generations.find_live_file():
                raise _GenerationChanged
            if db is not None and db is not self._live[1]:
                raise _GenerationChanged
            with sqlite.transaction(self._live[1]):
                yield

    @contextmanager
    def _holding_projector_lock(self, timeout: float) -> Iterator[None]:
        """Hold the projector lock; `timeout` limits the wait for other processes, but not for threads."""
        with holding_lock(
            self._lock, "the read model", timeout, is_held_here=lambda: self._lock in _held_here
        ):
            _held_here.add(self._lock)
            try:
                yield
            finally:
                _held_here.discard(self._lock)

    def _build_generation(self, path: Path, progress: catchup.Progress | None) -> tuple[catchup.CatchUp, int]:
        db = sqlite.connect(path, "bulk")
        try:
            with sqlite.converting_errors(path):
                report = catchup.build_read_model(db, self.log, self.sizes, progress=progress)
                cached = take_cached_vectors(db, self.store, self._models, self.generations.find_live_file())
                with self._holding_projector_lock(self._lock_timeout):
                    with sqlite.transaction(db):
                        newer = catchup.catch_up(db, self.log, self.sizes)
                    report.add_counts(newer)
                    watermarks = catchup.open_watermarks_of_log(self.log)
                    lost = catchup.raise_watermarks(db, watermarks, list_segments(self.log, unread={})[0])
                    report.notes = list(dict.fromkeys([*report.notes, *lost]))
                    db.execute("PRAGMA locking_mode = NORMAL")
                    db.execute("PRAGMA journal_mode = WAL")
                    db.close()
                    self.generations.make_generation_live(path)
        finally:
            db.close()
        return report, cached
