"""The read model for readers: built on demand, caught up with the log, and pooled for threads."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from memlog.eventlog.errors import BadInput, Busy, DatabaseError, EmbeddingError
from memlog.eventlog.files.folders import check_store, is_kept_read_only, make_path, unwritable_folder
from memlog.eventlog.files.forks import ForkMutex, SplitByFork
from memlog.eventlog.files.locks import as_store_owner
from memlog.eventlog.log.layout import CACHE, LOG
from memlog.eventlog.log.reader import FileState, changed_streams, state_of
from memlog.eventlog.log.streams import shown
from memlog.projector.embedding.models import NO_MODELS, Embedder, Models
from memlog.projector.lifecycle import Projection, Projector
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import DAMAGED, DISPOSABLE, NO_ROOM, Connection, connect, wrapped
from memlog.query.context.background import StoreSample
from memlog.query.context.scope import People, knows_messengers, narrowed_by_messengers
from memlog.query.search.vector_cache import HeldVectors
from memlog.service.engine.create import cannot_create
from memlog.service.engine.embedding_models import EmbeddingModel, QuestionVectors

if TYPE_CHECKING:
    from memlog.service.engine.settings import RerankProvider

State = TypeVar("State")
Done = TypeVar("Done")


class SharedCatchUp(SplitByFork, Generic[State, Done]):
    """Lets threads share catch-ups. Each read sees what was appended before it.

    state: returns what a catch-up depends on: while it stays the same, there is nothing to read. None is
        never the same. Called for each read.
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
        """No thread of the parent catches up here."""
        self._read_state: State | None = None
        self._turn = threading.RLock()

    def share(
        self, catch_up: Callable[[float, State | None, State | None], tuple[Done, bool]], timeout: float
    ) -> Done | None:
        """Catch up, unless another catch-up covers this call, or nothing has changed since one.

        One covers it if its state was taken after this call began. Other threads are waited for.

        catch_up: is given seconds to wait for other processes, a state up to which everything was read (None
            if there is none), and the present state. Returns what it did, and whether everything up to the
            latter is read now.
        timeout: the seconds; none are left where another thread has waited in vain since this call began.

        Returns:
            What `catch_up` did; None if it was not needed.

        Raises:
            Busy: this very thread makes a catch-up.
        """
        self.check_entry()
        began = time.monotonic()
        number, state = self._look()
        if self._is_read(state):
            return None
        turns = self._turns
        # By `with`: nothing comes between the lock and its release, even if a signal handler raises.
        with self._turn:
            if self._done > number:
                return None
            if self._turns != turns:
                # A fresh look serves those who wait, too: they may have appended after the first one.
                number, state = self._look()
            if self._is_read(state):
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

    def check_entry(self) -> None:
        """Raise Busy if this thread makes a catch-up: a callback or a signal handler of it reads."""
        if self._turn._is_owned():  # type: ignore[attr-defined] # threading.Condition asks so, too
            raise Busy(
                "this thread is bringing the read model up to date",
                hint="read again when it has: not in a callback or a signal handler",
            )

    def _look(self) -> tuple[int, State | None]:
        """Return the state, and a number that is greater than that of each earlier call."""
        return next(self._numbers), self._state()

    def _is_read(self, state: State | None) -> bool:
        return state is not None and state == self._read_state


def notes_of(done: Projection, projector: Projector, people: People) -> Iterator[str]:
    """Yield the notes of a projection, in the order in which they are shown."""
    # The first command of a store has built nothing that anybody would miss.
    if done.rebuilt and done.read.events:
        yield f"{done.rebuilt}: built one from the log ({done.read.events} events)"
    yield from done.read.notes
    if done.read.conflicts:
        many = f"{done.read.conflicts} events reuse ids of earlier, different events: no read shows them"
        one = "1 event reuses the id of an earlier, different event: no read shows it"
        yield f"{one if done.read.conflicts == 1 else many}; store.maintenance.examine() lists them"
    yield from narrowed_scope(done, projector, people)


def narrowed_scope(done: Projection, projector: Projector, people: People) -> list[str]:
    """Tell, once, that contexts keep chats apart which shared a scope before memlog knew messengers."""
    if done.replaced is None:
        return []
    # A read model that cannot be read is rebuilt, and reported elsewhere.
    with suppress(DatabaseError), wrapped("the read model"):
        with closing(connect(done.replaced, "immutable")) as before:
            is_known = knows_messengers(before)
        why = None if is_known else narrowed_by_messengers(projector.live(), people)
        how = "context.people joins the chats of one person"
        return [] if why is None else [f"contexts now keep chats apart: {why}; {how}"]
    return []


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
        """Return the result of `ask`."""


class _State(NamedTuple):
    """What a catch-up depends on: the live generation, the file that shows core memory, and the log."""

    live: Path
    core_view: list[tuple[int, ...]]
    log: list[FileState]


class ReadModel(SplitByFork):
    """The read model of the store at `path`, for one thread at a time: others wait at `mutex`.

    model: what passages are embedded with. rerank: what reranks hits.
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
        """Return the same read model for another thread, with its own connection, so that neither waits.

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
        """Return the result of `ask` on a connection that is caught up with the log.

        Another process that has the read model locked is waited for 250 ms; then `notify` is told that
        something may be missing.

        Raises:
            DatabaseError: the read model can neither be read nor rebuilt.
        """
        return self.healed(lambda: ask(self.latest()[0]))

    def decide(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """Return the result of `ask` for a decision: a writer waits until the log is read completely.

        creates: whether something new is to be stored, so that a missing store is made.

        Raises:
            NotFound: there is no store, and none is made.
            Busy: another projector held the lock for too long.
            DatabaseError: the read model cannot be written.
        """

        def read() -> Answer:
            if creates:
                self.make_store()
            self.check_writable()
            return ask(self._up_to_date())

        return self.healed(read)

    def _up_to_date(self) -> Connection:
        """Return the live generation, with everything that was acknowledged before this call."""
        shared = min(_QUERY_LOCK_TIMEOUT, self._lock_timeout)
        with suppress(Busy):
            done = self._shared_catch_up.share(self._catch_up, shared)
            if done is not None:
                self.noted(done)
            db = self.projector.live()
            if self.projector.frozen is None:  # else it may lack what another connection has written
                return db
        # Alone: a writer waits longer for another projector than reads, which would wait for it meanwhile.
        self.noted(self.projector.catch_up(lock_timeout=self._lock_timeout - shared))
        return self.projector.live()

    def healed(self, work: Callable[[], Answer]) -> Answer:
        """Do `work` on the read model; if that is corrupt, rebuild it and retry once.

        Raises:
            DatabaseError: it is damaged still, or it cannot be written.
        """
        with self.mutex:
            try:
                with wrapped("the read model"), _wrapping_decode_errors():
                    return as_store_owner(self.path, work, self.notify)
            except DatabaseError as error:
                if error.code != DAMAGED or self.is_read_only:
                    raise
                self.noted(self.projector.replace_damaged(error))
            with wrapped("the read model"):
                return work()

    def latest(
        self, *, sync: bool = True, models: Models = NO_MODELS, silent: dict[str, str] | None = None
    ) -> tuple[Connection, bool]:
        """Return the live generation, and whether it has caught up with the log.

        A new one is built where none can be read.

        Raises:
            NotFound: there is no store.
        """
        check_store(self.path)
        if self.is_read_only:
            return self._unwritable(), False
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
            self._warn_stale_once(error.message)
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

    def _warn_stale_once(self, why: str) -> None:
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
            is_whole = self.projector.core_view.is_current(self.projector.live())
        return done, is_whole

    def _state(self) -> "_State | None":
        live = self.projector.generations.current()
        if live is None:
            return None
        return _State(live, self.projector.core_view.state(), state_of(self.projector.log))

    def noted(self, done: Projection) -> Projection:
        """Return a projection, after `notify` was called with its notes."""
        for note in notes_of(done, self.projector, self.people):
            self.notify(note)
        return done

    def _unwritable(self) -> Connection:
        """Return the live generation of a store that cannot be written, which stays as it is."""
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
        """Raise NotFound where there is no store, LogError where a folder of it cannot be written."""
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
        raise BadInput(f"not text, since it has a lone surrogate: {error.object!r}") from error
    except _UNREADABLE as error:
        raise DatabaseError(f"the read model: {error}", hint=DISPOSABLE, code=DAMAGED) from error


READERS = 4
"""How many threads read at the same time. The interpreter's lock lets about one of them compute (two threads
do 1.13 times the searches of one), so two searches keep it busy; the others are for short reads beside them.
More would cost memory: a connection by which many searches are made holds up to 64 MiB of vectors a shelf."""


class _Claim:
    """A read or a decision under way.

    read_model: the one that it was given.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.read_model: ReadModel | None = None


class ReadPool(SplitByFork):
    """`READERS` read models of one store; each opens its connection when it is first needed.

    A signal handler may raise at any step in the main thread. So locks are taken by `with` alone, which
    nothing interrupts, and a claim that ends is left even if leaving it is interrupted: no other thread waits
    without end.

    first: the one that writers decide by. A single thread reads by it, too, and so has one connection.
    maintenance: one more, for what takes long, so that nothing else waits for it.
    """

    def __init__(self, first: ReadModel) -> None:
        super().__init__()
        self.first = first
        self._read_models = [first, *(first.another(notify=first.notify) for _ in range(READERS - 1))]
        self.maintenance = first.another(notify=first.notify)
        self._forget_claims()

    def _forget_claims(self) -> None:
        self._lock = threading.RLock()
        self._returned = threading.Condition(self._lock)
        self._waiting: list[_Claim] = []
        self._reading: list[_Claim] = []
        self._deciding: list[_Claim] = []

    def after_fork_in_child(self) -> None:
        """Forget what threads of the parent were reading."""
        self._forget_claims()

    def read(self, ask: Ask[Answer]) -> Answer:
        """See `ReadModel.read`."""
        with self._one() as read_model:
            return read_model.read(ask)

    def decide(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """See `ReadModel.decide`. One thread decides at a time."""
        claim = _Claim()
        try:
            self._deciding.append(claim)
            return self.first.decide(ask, creates=creates)
        finally:
            self._leave(claim)

    def healed(self, work: Callable[[ReadModel], Answer]) -> Answer:
        """See `ReadModel.healed`; `work` is given the read model to work on."""
        with self._one() as read_model:
            return read_model.healed(lambda: work(read_model))

    @contextmanager
    def all_closed(self) -> Iterator[None]:
        """Close every connection, and let no other thread read until the end of the context."""
        with ExitStack() as held:
            # Maintenance before all others, which are in use meanwhile. The first one last: a writer that
            # holds it may read by another one.
            for read_model in (self.maintenance, *reversed(self._read_models)):
                held.enter_context(read_model.mutex)
                read_model.close()
            yield

    def open(self) -> None:
        """Open every connection."""
        for read_model in self._read_models:
            read_model.read(lambda _: None)

    def close(self) -> None:
        """Close every connection, each as soon as it is not in use."""
        for read_model in (*self._read_models, self.maintenance):
            read_model.close()

    @contextmanager
    def _one(self) -> Iterator[ReadModel]:
        """Yield a read model that no other thread uses; a thread that already uses one may get the same."""
        claim = _Claim()
        try:
            read_model = self._given(claim)
            with read_model.mutex:
                yield read_model
        finally:
            self._leave(claim)

    def _given(self, claim: _Claim) -> ReadModel:
        """Hand a read model to a thread.

        Threads are served in the order in which they came, but a read within another one of its thread is
        served as soon as a read model is free.
        """
        with self._lock:
            self._waiting.append(claim)
            while True:
                under_way = (*self._waiting, *self._reading, *self._deciding)
                is_within = any(each.thread == claim.thread and each is not claim for each in under_way)
                if claim is self._waiting[0] or is_within:
                    claim.read_model = self._free_for(claim.thread)
                    if claim.read_model is not None:
                        self._reading.append(claim)
                        self._waiting.remove(claim)
                        self._returned.notify_all()
                        return claim.read_model
                self._returned.wait()

    def _free_for(self, thread: int) -> ReadModel | None:
        """While others read, the first one comes last, and not at all where another thread is to decide."""
        taken = {id(each.read_model) for each in self._reading if each.thread != thread}
        own = [each.read_model for each in self._reading if each.thread == thread]
        keeps_off = any(each.thread != thread for each in self._deciding)
        others = self._read_models[1:]
        order = [*others, self.first] if self._reading else [self.first, *others]
        if self.first.rerank is not None:
            order = others  # a context asks a provider while it reads: no writer waits for that
        free = (each for each in order if id(each) not in taken and not (keeps_off and each is self.first))
        # A read within another one disturbs it least by a connection of its own.
        return min(free, key=own.__contains__, default=None)

    def _leave(self, claim: _Claim) -> None:
        """End a claim; if a signal handler raises meanwhile, its exception comes when it is ended."""
        try:
            self._end(claim)
        except BaseException:
            self._end(claim)
            raise

    def _end(self, claim: _Claim) -> None:
        with self._lock:
            for claims in (self._waiting, self._reading, self._deciding):
                if claim in claims:
                    claims.remove(claim)
            self._returned.notify_all()
