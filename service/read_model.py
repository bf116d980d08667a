"""The read model for readers: built on demand, and caught up with the log."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from memlog.eventlog.errors import BadInput, Busy, DatabaseError, EmbeddingError
from memlog.eventlog.folders import check_store, is_kept_read_only, make_path, unwritable_folder
from memlog.eventlog.forks import ForkMutex, SplitByFork
from memlog.eventlog.layout import CACHE, LOG
from memlog.eventlog.log_state import FileState, changed_streams, state_of
from memlog.eventlog.owner import making_way
from memlog.eventlog.streams import shown
from memlog.projector.embedding.models import NO_MODELS, Embedder, Models
from memlog.projector.lifecycle import Projection, Projector
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import DAMAGED, DISPOSABLE, NO_ROOM, Connection, wrapped
from memlog.query.context.background import StoreSample
from memlog.query.context.people import People
from memlog.query.search.vector_cache import HeldVectors
from memlog.service.create import cannot_create
from memlog.service.embedding_models import EmbeddingModel
from memlog.service.projection_notes import notes_of
from memlog.service.question_vectors import QuestionVectors
from memlog.service.shared_catch_up import SharedCatchUp

if TYPE_CHECKING:
    from memlog.service.providers.settings import RerankProvider

_QUERY_LOCK_TIMEOUT = 0.25
_QUERY_EMBEDDINGS = 16
_FEW_STREAMS = 8
"""Changed streams up to which a catch-up looks at them alone: it reads the list of seals once for each."""

_UNREADABLE = (msgspec.DecodeError, JSONDecodeError, UnicodeDecodeError)
"""Errors of decoding a column of the read model that does not hold the JSON or UTF-8 that memlog wrote there.
Input of a caller is decoded elsewhere."""

Answer = TypeVar("Answer")
Ask = Callable[[Connection], Answer]
"""What reads the read model by a connection; it may be called twice."""


class Deciding(Protocol):
    """`ReadModel.decide`."""

    def __call__(self, ask: Ask[Answer], /, *, creates: bool = False) -> Answer:
        """What `ask` reads."""


class _State(NamedTuple):
    """What a catch-up depends on: the live generation, the file that shows core memory, and the log."""

    live: Path
    core_view: list[tuple[int, ...]]
    log: list[FileState]


class ReadModel(SplitByFork):
    """The read model of the store at `path`, for one thread at a time: others wait at `mutex`.

    model: what passages are embedded with. rerank: who ranks hits anew.
    is_off: whether searches and contexts give nothing. people: whose chats are whose.
    notify: called with what a person should know.
    """

    def __init__(
        self,
        path: Path,
        chunk_sizes: ChunkSizes | None,
        *,
        lock_timeout: float,
        model: EmbeddingModel,
        rerank: "RerankProvider | None" = None,
        is_off: bool = False,
        people: People | None = None,
        notify: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.path = path
        self.model = model
        self.rerank = rerank
        self.is_off = is_off
        self.people = People() if people is None else people
        self._lock_timeout = lock_timeout
        self.projector = Projector(path, chunk_sizes, lock_timeout=lock_timeout, models=model.all_known)
        self._in_use = ForkMutex()
        self.held_vectors, self.sample = HeldVectors(), StoreSample()
        self.questions = QuestionVectors()
        self.notify = notify
        self._shared_catch_up: SharedCatchUp[_State, Projection] = SharedCatchUp(self._state)
        self._embedding = ForkMutex()
        self._told_behind: set[str] = set()

    def another(self, *, notify: Callable[[str], None], lock_timeout: float = math.inf) -> "ReadModel":
        """The same read model for another thread, with a connection of its own: neither waits for the other.

        lock_timeout: seconds that it waits for another projector, where this one does not wait shorter.
        """
        timeout = min(lock_timeout, self._lock_timeout)
        sizes = self.projector.sizes
        read_model = ReadModel(
            self.path,
            sizes,
            lock_timeout=timeout,
            model=self.model,
            rerank=self.rerank,
            is_off=self.is_off,
            people=self.people,
            notify=notify,
        )
        for shared in ("_shared_catch_up", "_embedding", "_told_behind", "questions"):
            setattr(read_model, shared, getattr(self, shared))
        # A change by hand is reported once.
        read_model.projector.core_view = self.projector.core_view
        return read_model

    @property
    def mutex(self) -> threading.RLock:
        """Held by the thread that uses it."""
        return self._in_use.lock

    def close(self) -> None:
        """Close what is open."""
        with self.mutex:
            self.projector.close()
            self.questions.empty()
            self.held_vectors, self.sample = HeldVectors(), StoreSample()

    def before_fork(self, until: float) -> None:
        """Close the connection, unless a thread goes on using it."""
        if self._in_use.take(until):
            self.close()

    def after_fork_in_parent(self) -> None:
        """Let other threads use it again."""
        self._in_use.give_back()

    def after_fork_in_child(self) -> None:
        """Leave a connection that was in use to the parent."""
        self.projector.close(is_inherited=True)
        self._in_use.renew()
        self._embedding.renew()
        self.held_vectors, self.sample = HeldVectors(), StoreSample()

    def read(self, ask: Ask[Answer]) -> Answer:
        """What `ask` reads by a connection that is caught up with the log. Another process that has the read
        model locked is waited for 250 ms; then `notify` is told that something may be missing.

        Raises:
            DatabaseError: the read model cannot be read, nor made anew.
        """
        return self.healed(lambda: ask(self.latest()[0]))

    def decide(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """What `ask` reads of the log as it is now, to decide by: a writer waits rather than go by less.

        creates: whether something new is to be stored, so that a missing store is made.

        Raises:
            NotFound: there is no store, and none is made.
            Busy: another projector held the lock for too long.
            DatabaseError: the read model cannot be written.
        """

        def asked() -> Answer:
            if creates:
                self.make_store()
            self.check_writable()
            return ask(self._up_to_date())

        return self.healed(asked)

    def _up_to_date(self) -> Connection:
        """The live generation, with everything that was acknowledged before this call."""
        with suppress(Busy):
            done = self._shared_catch_up.share(self._catch_up, _QUERY_LOCK_TIMEOUT)
            if done is not None:
                self.noted(done)
            db = self.projector.live()
            if self.projector.frozen is None:  # else it may lack what another connection has written
                return db
        # Alone: a writer waits longer for another projector than reads, which would wait for it meanwhile.
        self.noted(self.projector.catch_up())
        return self.projector.live()

    def healed(self, work: Callable[[], Answer]) -> Answer:
        """Do `work` on the read model, once more where it is found to be damaged and was built anew.

        Raises:
            DatabaseError: it is damaged still, or it cannot be written.
        """
        with self.mutex:
            try:
                with wrapped("the read model"), _wrapping_decode_errors():
                    return making_way(self.path, work, self.notify)
            except DatabaseError as error:
                if error.code != DAMAGED or self.is_read_only:
                    raise
                self.noted(self.projector.replace_damaged(error))
            with wrapped("the read model"):
                return work()

    def latest(
        self, *, sync: bool = True, models: Models = NO_MODELS, silent: dict[str, str] | None = None
    ) -> tuple[Connection, bool]:
        """The live generation, and whether it has come up to the log. Builds one where none can be read.

        Raises:
            NotFound: there is no store.
        """
        check_store(self.path)
        if self.is_read_only:
            return self._as_it_stands(), False
        self._shared_catch_up.check_entry()
        if not sync and self.projector.why_unusable() is None:
            return self.projector.live(), False
        try:
            done = self._shared_catch_up.share(self._catch_up, _QUERY_LOCK_TIMEOUT)
            if done is not None:
                self.noted(done)
            self._told_behind.clear()
            for embedder in models.loaded:
                self._embed_some(embedder, {} if silent is None else silent)
        except DatabaseError as error:
            # Without one that can be read, what was to be built is what there is no room for.
            if error.code != NO_ROOM or self.projector.why_unusable() is not None:
                raise
            self.notify(f"{error.message}: the read model stays as it is")
            return self.projector.live(), False
        except Busy as error:
            if self.projector.why_unusable() is not None:
                raise
            self._tell_behind(error.message)
            return self.projector.live(), False
        return self.projector.live(), True

    def _embed_some(self, embedder: Embedder, silent: dict[str, str]) -> None:
        """Embed what a query may wait for. One thread at a time: two would compute the same vectors."""
        lock = self._embedding.lock
        # A query asks a provider for its own vector alone: whatever else waits takes `embed`, or a watch.
        if embedder.is_remote or not lock.acquire(timeout=_QUERY_LOCK_TIMEOUT):
            return
        try:
            with suppress(Busy):
                self.projector.embed(embedder, limit=_QUERY_EMBEDDINGS, lock_timeout=_QUERY_LOCK_TIMEOUT)
        except EmbeddingError as error:
            silent["pending"] = error.message
        except OSError as error:
            if not is_kept_read_only(self.path / CACHE):
                raise
            self.notify(f"{shown(error.filename)}: {error.strerror}: what was appended last has no vector")
        finally:
            # Also what a signal handler that raised right behind an earlier `acquire` has left.
            while lock._is_owned():  # type: ignore[attr-defined]
                lock.release()

    def _tell_behind(self, why: str) -> None:
        """Tell it once, until a read has caught up again."""
        if not self._told_behind:
            self._told_behind.add(why)
            self.notify(f"{why}: what was appended last may be missing")

    def _catch_up(
        self, lock_timeout: float, before: "_State | None", state: "_State | None"
    ) -> tuple[Projection, bool]:
        """Catch up with the streams that changed; see `SharedCatchUp.share`."""
        streams = None
        if before is not None and state is not None and before.live == state.live:
            changed = changed_streams(self.projector.log, before.log, state.log)
            streams = changed if changed is not None and len(changed) <= _FEW_STREAMS else None
        done = self.projector.catch_up(lock_timeout=lock_timeout, streams=streams)
        is_whole = done.read.is_whole and done.rebuilt is None
        # A note may say that the view of core memory could not be written: the next read tries again.
        if is_whole and done.read.notes:
            is_whole = self.projector.core_view.is_up_to(self.projector.live())
        return done, is_whole

    def _state(self) -> "_State | None":
        live = self.projector.generations.current()
        if live is None:
            return None
        return _State(live, self.projector.core_view.state(), state_of(self.projector.log))

    def noted(self, done: Projection) -> Projection:
        """A projection, after `notify` was called with what a person should know of it."""
        for note in notes_of(done, self.projector, self.people):
            self.notify(note)
        return done

    def _as_it_stands(self) -> Connection:
        """The live generation of a store that cannot be written, which stays as it is."""
        where = shown(unwritable_folder(self.path) or self.path)
        if self.projector.generations.current() is not None:
            self.projector.live(read_only=True)  # which the next look uses
        if why := self.projector.why_unusable():
            raise DatabaseError(
                f"{why}, and {where} cannot be written to make one",
                hint="run store.maintenance.project() as someone who may write there, or on a copy",
                code="cannot_create",
            )
        self.notify(f"{where} cannot be written: the read model stays as it is")
        return self.projector.live(read_only=True)

    def make_store(self) -> None:
        """Make the store, where it is missing.

        Raises:
            LogError: it cannot be made, or cannot be written.
        """
        try:
            make_path(self.path / LOG)
        except OSError as error:
            raise cannot_create(self.path, error.strerror) from error
        self.check_writable()

    def check_writable(self) -> None:
        """Raises NotFound where there is no store, LogError where a folder of it cannot be written."""
        check_store(self.path)
        if (folder := unwritable_folder(self.path)) is not None:
            raise cannot_create(folder, "the folder cannot be written")

    @property
    def is_read_only(self) -> bool:
        """Whether the folder of the store, or of its read models, cannot be written."""
        return unwritable_folder(self.path) is not None

    @property
    def is_only_read(self) -> bool:
        """Whether databases of the store can only be read: a folder cannot be written, or has no room."""
        return self.is_read_only or self.projector.frozen is not None


def name_pending(db: Connection, silent: dict[str, str]) -> None:
    """Note in `silent` how many passages have no vector yet, if any."""
    if pending := index.count_all_pending(db):
        why = silent.get("pending", "project the log")
        silent["pending"] = f"{pending} passages have no vector yet: {why}"


@contextmanager
def _wrapping_decode_errors() -> Iterator[None]:
    """Report a column that cannot be decoded as damage, and a lone surrogate as bad input.

    Every other exception passes: whether the file is damaged is for SQLite to say, at any step that reads it.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        # The caller's text: none in a log has one.
        raise BadInput(f"a lone surrogate is no character: {error.object!r}") from error
    except _UNREADABLE as error:
        raise DatabaseError(f"the read model: {error}", hint=DISPOSABLE, code=DAMAGED) from error
