"""The read model for readers: built on demand, caught up with the log, and pooled for threads."""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from memlog.eventlog.errors import BadInput, Busy, DatabaseError, EmbeddingError
from memlog.eventlog.files.folders import (
    check_store_exists,
    is_kept_read_only,
    make_folder_and_parents,
    unwritable_folder,
)
from memlog.eventlog.files.forks import ForkMutex, SplitByFork
from memlog.eventlog.files.locks import retry_without_unusable
from memlog.eventlog.log.layout import CACHE, LOG
from memlog.eventlog.log.reader import FileState, find_changed_streams, read_log_state
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.sections import People
from memlog.projector.embedding.models import NO_MODELS, Embedder, Models
from memlog.projector.lifecycle import Projection, Projector
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import DAMAGED, DISPOSABLE, NO_ROOM, Connection, connect, converting_errors
from memlog.query.context.background import StoreSample
from memlog.query.context.scope import can_tell_messenger_chats_apart, why_messengers_separate
from memlog.query.search.vector_cache import HeldVectors
from memlog.service.engine.create import cannot_create_error
from memlog.service.engine.embedding_models import EmbeddingModel, QuestionVectors

if TYPE_CHECKING:
    from memlog.eventlog.sections import RerankProvider

State = TypeVar("State")
Done = TypeVar("Done")


class SharedCatchUp(SplitByFork, Generic[State, Done]):
    """Coalesces concurrent catch-ups. Each read sees everything appended before it.

    state: called for each read; returns the state on which a catch-up depends. No catch-up is needed while it
        is unchanged. None always counts as changed.
    """

    def __init__(self, state: Callable[[], State | None]) -> None:
        super().__init__()
        self._state = state
        self.after_fork_in_child()
        self._numbers = count(1)
        self._turns = 0
        self._done = 0
        self._busy_at = 0.0

    def after_fork_in_child(self) -> None:
        """Reset the state, since no thread of the parent catches up in the child."""
        self._read_state: State | None = None
        self._turn = threading.RLock()

    def catch_up_or_join(
        self, catch_up: Callable[[float, State | None, State | None], tuple[Done, bool]], timeout: float
    ) -> Done | None:
        """Catch up, unless nothing has changed, or another catch-up covers this call.

        A catch-up covers this call if its state was taken after the call began. Waits for other threads.

        catch_up: takes the seconds to wait for other processes, the last state that was read completely (None
            without one), and the current state. Returns its result, and whether everything up to the current
            state has been read.
        timeout: the seconds to pass to `catch_up`; 0 is passed if another thread has timed out since this
            call began.

        Returns:
            The result of `catch_up`; None if it was not needed.

        Raises:
            Busy: this thread is already catching up.
        """
        self.check_not_reentered()
        began = time.monotonic()
        number, state = self._read_number_and_state()
        if self._is_state_of_last_read(state):
            return None
        turns = self._turns
        # `with` releases the lock even if a signal handler raises right after it is taken.
        with self._turn:
            if self._done > number:
                return None
            if self._turns != turns:
                # A fresh state also covers the threads that wait: they may have appended after the first.
                number, state = self._read_number_and_state()
            if self._is_state_of_last_read(state):
                return None
            before, self._read_state = self._read_state, None
            try:
                done, is_whole = catch_up(0.0 if self._busy_at > began else timeout, before, state)
            except Busy:
                self._busy_at = time.monotonic()
                raise
            finally:
                self._turns += 1
            self._read_state = state if is_whole else None
            self._done = number
            return done

    def check_not_reentered(self) -> None:
        """Raise Busy if this thread is already catching up: a callback or a signal handler is reading."""
        if self._turn._is_owned():  # type: ignore[attr-defined] # as threading.Condition does
            raise Busy(
                "this thread is bringing the read model up to date",
                hint="read after it returns, not in a callback or a signal handler",
            )

    def _read_number_and_state(self) -> tuple[int, State | None]:
        """Return the next number and the current state."""
        return next(self._numbers), self._state()

    def _is_state_of_last_read(self, state: State | None) -> bool:
        return state is not None and state == self._read_state


def note_that_chats_are_separated(done: Projection, projector: Projector, people: People) -> list[str]:
    """Return a note, once after an upgrade, that contexts no longer mix chats from messengers."""
    if done.replaced is None:
        return []
    # An unreadable read model is rebuilt and reported elsewhere.
    with suppress(DatabaseError), converting_errors("the read model"):
        with closing(connect(done.replaced, "immutable")) as before:
            is_known = can_tell_messenger_chats_apart(before)
        why = None if is_known else why_messengers_separate(projector.connect_to_live(), people)
        how = "context.people joins the chats of one person"
        return [] if why is None else [f"contexts now keep chats apart: {why}; {how}"]
    return []


_QUERY_LOCK_TIMEOUT = 0.25
_QUERY_EMBEDDINGS = 16
_FEW_STREAMS = 8
"""The maximum number of changed streams that a catch-up reads individually: each costs one read of the seals
list."""

_UNREADABLE = (msgspec.DecodeError, JSONDecodeError, UnicodeDecodeError)
"""Errors from decoding a read model column that no longer holds the JSON or UTF-8 that memlog wrote.
Callers' input is decoded elsewhere."""

Answer = TypeVar("Answer")
Ask = Callable[[Connection], Answer]
"""A query on a connection to the read model; it may be called twice."""


class Deciding(Protocol):
    """The signature of `ReadModel.query_for_decision`."""

    def __call__(self, ask: Ask[Answer], /, *, creates: bool = False) -> Answer:
        """Return the result of `ask`; parameters and errors as for `ReadModel.query_for_decision`."""


class _State(NamedTuple):
    """The state on which a catch-up depends: the live generation, the core memory file, and the log."""

    live: Path
    core_view: list[tuple[int, ...]]
    log: list[FileState]


class ReadModel(SplitByFork):
    """The read model of the store at `path`, for one thread at a time: `mutex` guards it.

    model: embeds passages. rerank: reranks hits. people: which chats belong to whom.
    withheld_channels: returns the channels whose texts are not sent to embedding and rerank providers.
    is_off: whether searches and contexts return nothing. min_similarity: the default for searches.
    notify: called with human-readable notes.
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
        min_similarity: float | None = None,
        withheld_channels: Callable[[], Collection[str]] = tuple,
        notify: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.path = path
        self.model = model
        self.rerank = rerank
        self.is_off = is_off
        self.people = People() if people is None else people
        self.min_similarity = min_similarity
        self.withheld_channels = withheld_channels
        self._lock_timeout = lock_timeout
        self.projector = Projector(
            path,
            chunk_sizes,
            lock_timeout=lock_timeout,
            models=model.list_known_models,
            withheld_channels=withheld_channels,
        )
        self._in_use = ForkMutex()
        self.held_vectors, self.sample = HeldVectors(), StoreSample()
        self.questions = QuestionVectors()
        self.notify = notify
        self._shared_catch_up: SharedCatchUp[_State, Projection] = SharedCatchUp(self._read_state_of_log)
        self._embedding = ForkMutex()
        self._told_behind: set[str] = set()

    def copy_for_thread(
        self, *, notify: Callable[[str], None], lock_timeout: float = math.inf
    ) -> "ReadModel":
        """Return a copy for another thread, with its own connection, so that neither waits for the other.

        lock_timeout: seconds to wait for another projector, capped by the timeout of this read model.
        """
        read_model = ReadModel(
            self.path,
            self.projector.sizes,
            lock_timeout=min(lock_timeout, self._lock_timeout),
            model=self.model,
            rerank=self.rerank,
            is_off=self.is_off,
            withheld_channels=self.withheld_channels,
            people=self.people,
            min_similarity=self.min_similarity,
            notify=notify,
        )
        for shared in ("_shared_catch_up", "_embedding", "_told_behind", "questions"):
            setattr(read_model, shared, getattr(self, shared))
        # Shared, so that a manual edit is reported once.
        read_model.projector.core_view = self.projector.core_view
        return read_model

    @property
    def mutex(self) -> threading.RLock:
        """The lock that a thread holds while it uses this read model."""
        return self._in_use.lock

    def close(self) -> None:
        """Close the connection, and drop the caches."""
        with self.mutex:
            self.projector.close()
            self.questions.drop_all_vectors()
            self.held_vectors, self.sample = HeldVectors(), StoreSample()

    def before_fork(self, until: float) -> None:
        """Close the connection, unless a thread is still using it."""
        if self._in_use.acquire_for_fork(until):
            self.close()

    def after_fork_in_parent(self) -> None:
        """Let other threads use the connection again."""
        self._in_use.release_in_parent()

    def after_fork_in_child(self) -> None:
        """Leave an open connection to the parent."""
        self.projector.close(is_inherited=True)
        self._in_use.reset_in_child()
        self._embedding.reset_in_child()
        self.held_vectors, self.sample = HeldVectors(), StoreSample()

    def query_up_to_date(self, ask: Ask[Answer]) -> Answer:
        """Return the result of `ask` on a connection that has caught up with the log.

        Waits at most 250 ms for another process that has locked the read model. If it is still locked,
        `notify` is told that something may be missing.

        Raises:
            DatabaseError: the read model can neither be read nor rebuilt.
        """
        return self.run_with_repair(lambda: ask(self.connect_to_latest()[0]))

    def query_for_decision(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """Return the result of `ask` on a read model that has caught up completely, to base a decision on.

        creates: whether to create a missing store, since something new will be stored.

        Raises:
            NotFound: there is no store, and `creates` is false.
            Busy: another projector held the lock for too long.
            DatabaseError: the read model cannot be written.
        """

        def read_up_to_date() -> Answer:
            if creates:
                self.make_store()
            self.check_writable()
            return ask(self._connect_up_to_date())

        return self.run_with_repair(read_up_to_date)

    def _connect_up_to_date(self) -> Connection:
        """Return a connection that sees every event acknowledged before this call."""
        shared = min(_QUERY_LOCK_TIMEOUT, self._lock_timeout)
        with suppress(Busy):
            done = self._shared_catch_up.catch_up_or_join(self._catch_up, shared)
            if done is not None:
                self.pass_on_notes(done)
            db = self.projector.connect_to_live()
            if self.projector.frozen is None:  # else it may lack what another connection has written
                return db
        # Not shared: reads would have to wait for the other projector as long as a writer does.
        self.pass_on_notes(self.projector.catch_up(lock_timeout=self._lock_timeout - shared))
        return self.projector.connect_to_live()

    def run_with_repair(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` on the read model; if it is corrupt, rebuild it and retry once.

        Raises:
            DatabaseError: the read model is still damaged, or cannot be written.
        """
        with self.mutex:
            try:
                with converting_errors("the read model"), _converting_decode_errors():
                    return retry_without_unusable(self.path, work, self.notify)
            except DatabaseError as error:
                if error.code != DAMAGED or self.is_read_only:
                    raise
                self.pass_on_notes(self.projector.replace_damaged_generation(error))
            with converting_errors("the read model"):
                return work()

    def connect_to_latest(
        self, *, sync: bool = True, models: Models = NO_MODELS, silent: dict[str, str] | None = None
    ) -> tuple[Connection, bool]:
        """Return a connection to the live generation, and whether it has caught up with the log.

        Builds a generation if none is readable.

        Raises:
            NotFound: there is no store.
        """
        check_store_exists(self.path)
        if self.is_read_only:
            return self._open_read_only(), False
        self._shared_catch_up.check_not_reentered()
        if not sync and self.projector.why_live_generation_unusable() is None:
            return self.projector.connect_to_live(), False
        try:
            done = self._shared_catch_up.catch_up_or_join(self._catch_up, _QUERY_LOCK_TIMEOUT)
            if done is not None:
                self.pass_on_notes(done)
            self._told_behind.clear()
            for embedder in models.available_models:
                self._embed_pending(embedder, {} if silent is None else silent)
        except DatabaseError as error:
            # Without a readable generation there is nothing to fall back on.
            if error.code != NO_ROOM or self.projector.why_live_generation_unusable() is not None:
                raise
            self.notify(f"{error.message}: the read model stays as it is")
            return self.projector.connect_to_live(), False
        except Busy as error:
            if self.projector.why_live_generation_unusable() is not None:
                raise
            if not self._told_behind:  # notify once, until a read has caught up again
                self._told_behind.add(error.message)
                self.notify(f"{error.message}: what was appended last may be missing")
            return self.projector.connect_to_live(), False
        return self.projector.connect_to_live(), True

    def _embed_pending(self, embedder: Embedder, silent: dict[str, str]) -> None:
        """Embed a few pending passages. One thread at a time: two would compute the same vectors."""
        lock = self._embedding.lock
        # A query asks a provider only for its own vector; `embed` or a watch does the rest.
        if embedder.is_remote or not lock.acquire(timeout=_QUERY_LOCK_TIMEOUT):
            return
        try:
            with suppress(Busy):
                self.projector.embed_passages(
                    embedder, limit=_QUERY_EMBEDDINGS, lock_timeout=_QUERY_LOCK_TIMEOUT
                )
        except EmbeddingError as error:
            silent["pending"] = error.message
        except OSError as error:
            if not is_kept_read_only(self.path / CACHE):
                raise
            self.notify(
                f"{escape_invalid_utf8(error.filename)}: {error.strerror}:"
                " what was appended last has no vector"
            )
        finally:
            # A signal handler that raised right after an earlier `acquire` may have left the lock held.
            while lock._is_owned():  # type: ignore[attr-defined]
                lock.release()

    def _catch_up(
        self, lock_timeout: float, before: "_State | None", state: "_State | None"
    ) -> tuple[Projection, bool]:
        """Catch up with the streams that changed; see `SharedCatchUp.catch_up_or_join`."""
        streams = None
        if before is not None and state is not None and before.live == state.live:
            changed = find_changed_streams(self.projector.log, before.log, state.log)
            streams = changed if changed is not None and len(changed) <= _FEW_STREAMS else None
        done = self.projector.catch_up(lock_timeout=lock_timeout, streams=streams)
        is_whole = done.read.is_whole and done.rebuilt is None
        # A note may say that the view of core memory could not be written: the next read retries.
        if is_whole and done.read.notes:
            is_whole = self.projector.core_view.is_current(self.projector.connect_to_live())
        return done, is_whole

    def _read_state_of_log(self) -> "_State | None":
        live = self.projector.generations.find_live_file()
        if live is None:
            return None
        return _State(live, self.projector.core_view.read_file_versions(), read_log_state(self.projector.log))

    def pass_on_notes(self, done: Projection) -> Projection:
        """Pass a projection's notes to `notify`, sorted for people, and return the projection."""
        # The first build of a new store is not worth a note.
        if done.rebuilt and done.read.events:
            count = done.read.events
            events = "1 event" if count == 1 else f"{count:,} events"
            self.notify(f"{done.rebuilt}: built one from the log ({events})")
        notes = done.read.notes
        if (count := done.read.conflicts) > 0:
            many = f"{count} events reuse ids of earlier, different events: reads do not show them"
            one = "1 event reuses the id of an earlier, different event: reads do not show it"
            notes = [*notes, f"{one if count == 1 else many}; store.maintenance.examine() lists them"]
        for note in (*notes, *note_that_chats_are_separated(done, self.projector, self.people)):
            self.notify(note)
        return done

    def _open_read_only(self) -> Connection:
        """Return a read-only connection to the live generation. The store cannot be written."""
        where = escape_invalid_utf8(unwritable_folder(self.path) or self.path)
        if self.projector.generations.find_live_file() is not None:
            self.projector.connect_to_live(read_only=True)  # `why_live_generation_unusable` reads by it
        if why := self.projector.why_live_generation_unusable():
            raise DatabaseError(
                f"{why}, and {where} is not writable, so memlog cannot build one",
                hint="run store.maintenance.project() as a user with write permission, or on a copy",
                code="cannot_create",
            )
        self.notify(f"{where} cannot be written: the read model stays as it is")
        return self.projector.connect_to_live(read_only=True)

    def make_store(self) -> None:
        """Create the store if it does not exist.

        Raises:
            LogError: the store cannot be created or written.
        """
        try:
            make_folder_and_parents(self.path / LOG)
        except OSError as error:
            raise cannot_create_error(self.path, error.strerror) from error
        self.check_writable()

    def check_writable(self) -> None:
        """Raise NotFound if there is no store, and LogError if one of its folders cannot be written."""
        check_store_exists(self.path)
        if (folder := unwritable_folder(self.path)) is not None:
            raise cannot_create_error(folder, "the folder cannot be written")

    @property
    def is_read_only(self) -> bool:
        """Whether the store's folder or its read models' folder cannot be written."""
        return unwritable_folder(self.path) is not None

    @property
    def uses_databases_read_only(self) -> bool:
        """Whether the databases are used read-only: a folder cannot be written, or the disk is full."""
        return self.is_read_only or self.projector.frozen is not None


def report_missing_vectors(db: Connection, silent: dict[str, str]) -> None:
    """Add to `silent` how many passages have no vector yet, if any."""
    if pending := index.count_pending_passages_of_all_sets(db):
        why = silent.get("pending", "project the log")
        silent["pending"] = f"{pending} passages have no vector yet: {why}"


@contextmanager
def _converting_decode_errors() -> Iterator[None]:
    """Convert decoding errors of columns to DatabaseError, and errors about lone surrogates to BadInput.

    Other exceptions pass: SQLite itself reports a damaged file.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        # The surrogate comes from the caller: no text in a log has any.
        raise BadInput(f"a lone surrogate in {error.object!r}", hint="use valid Unicode") from error
    except _UNREADABLE as error:
        raise DatabaseError(f"the read model: {error}", hint=DISPOSABLE, code=DAMAGED) from error


READERS = 4
"""How many threads read at the same time. The GIL lets about one of them compute (two threads do 1.13 times
the searches of one), so two searches keep it busy; the others serve short reads. More would cost memory: a
connection used for many searches caches up to 64 MiB of vectors per shelf."""


class _Claim:
    """A thread's claim on a read model, which it uses or waits for."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.read_model: ReadModel | None = None


class ReadPool(SplitByFork):
    """A pool of `READERS` read models of one store; each opens its connection on first use.

    A signal handler may raise at any step in the main thread. So locks are only taken by `with`, which cannot
    be interrupted, and a claim is released even if its release is interrupted: no other thread waits forever.

    first: used for decisions. A single thread also reads through it, and so needs only one connection.
    maintenance: an extra read model for long operations, so that nothing else waits for them.
    """

    def __init__(self, first: ReadModel) -> None:
        super().__init__()
        self.first = first
        self._read_models = [first, *(first.copy_for_thread(notify=first.notify) for _ in range(READERS - 1))]
        self.maintenance = first.copy_for_thread(notify=first.notify)
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Drop the claims of the parent's threads."""
        self._lock = threading.RLock()
        self._returned = threading.Condition(self._lock)
        self._waiting: list[_Claim] = []
        self._reading: list[_Claim] = []
        self._deciding: list[_Claim] = []

    def query_up_to_date(self, ask: Ask[Answer]) -> Answer:
        """See `ReadModel.query_up_to_date`."""
        with self._claimed_read_model() as read_model:
            return read_model.query_up_to_date(ask)

    def query_for_decision(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """See `ReadModel.query_for_decision`. One thread decides at a time."""
        claim = _Claim()
        try:
            self._deciding.append(claim)
            return self.first.query_for_decision(ask, creates=creates)
        finally:
            self._release_read_model(claim)

    def run_with_repair(self, work: Callable[[ReadModel], Answer]) -> Answer:
        """See `ReadModel.run_with_repair`; the read model is passed to `work`."""
        with self._claimed_read_model() as read_model:
            return read_model.run_with_repair(lambda: work(read_model))

    @contextmanager
    def holding_all_closed(self) -> Iterator[None]:
        """Close every connection, and block other threads until the end of the context."""
        with ExitStack() as held:
            # Maintenance goes first, as the others are still in use while it is waited for; the first one
            # goes last, as a writer that holds it may read by another one.
            for read_model in (self.maintenance, *reversed(self._read_models)):
                held.enter_context(read_model.mutex)
                read_model.close()
            yield

    def open_all_connections(self) -> None:
        """Open every connection."""
        for read_model in self._read_models:
            read_model.query_up_to_date(lambda _: None)

    def close(self) -> None:
        """Close each connection as soon as it is free."""
        for read_model in (*self._read_models, self.maintenance):
            read_model.close()

    @contextmanager
    def _claimed_read_model(self) -> Iterator[ReadModel]:
        """Yield a read model that no other thread uses. A nested read may use its thread's read model."""
        claim = _Claim()
        try:
            read_model = self._wait_for_read_model(claim)
            with read_model.mutex:
                yield read_model
        finally:
            self._release_read_model(claim)

    def _wait_for_read_model(self, claim: _Claim) -> ReadModel:
        """Wait for a read model, and claim it.

        Threads are served in order of arrival; a nested read is served as soon as a read model is free.
        """
        with self._lock:
            self._waiting.append(claim)
            while True:
                under_way = (*self._waiting, *self._reading, *self._deciding)
                is_within = any(each.thread == claim.thread and each is not claim for each in under_way)
                if claim is self._waiting[0] or is_within:
                    claim.read_model = self._pick_free_read_model(claim.thread)
                    if claim.read_model is not None:
                        self._reading.append(claim)
                        self._waiting.remove(claim)
                        self._returned.notify_all()
                        return claim.read_model
                self._returned.wait()

    def _pick_free_read_model(self, thread: int) -> ReadModel | None:
        """Return a free read model; None if all are in use.

        The first one is chosen last, and not at all while another thread decides.
        """
        taken = {id(each.read_model) for each in self._reading if each.thread != thread}
        own = [each.read_model for each in self._reading if each.thread == thread]
        keeps_off = any(each.thread != thread for each in self._deciding)
        others = self._read_models[1:]
        order = [*others, self.first] if self._reading else [self.first, *others]
        if self.first.rerank is not None:
            order = others  # a context asks a provider while it reads: no writer should wait for that
        free = (each for each in order if id(each) not in taken and not (keeps_off and each is self.first))
        # A nested read prefers a connection of its own.
        return min(free, key=own.__contains__, default=None)

    def _release_read_model(self, claim: _Claim) -> None:
        """Remove a claim, even if a signal handler raises during the removal."""
        try:
            self._remove_claim(claim)
        except BaseException:
            self._remove_claim(claim)
            raise

    def _remove_claim(self, claim: _Claim) -> None:
        with self._lock:
            for claims in (self._waiting, self._reading, self._deciding):
                if claim in claims:
                    claims.remove(claim)
            self._returned.notify_all()
