"""The read models of one store: a connection for each of several threads that read at the same time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from memlog.eventlog.forks import SplitByFork
from memlog.service.read_model import Answer, Ask, ReadModel

READERS = 4
"""How many threads read at the same time. The interpreter's lock lets about one of them compute (two threads
do 1.13 times the searches of one), so two searches keep it busy; the others are for short reads beside them.
More would cost memory: a connection by which many searches are made holds up to 64 MiB of vectors a shelf."""


class _Claim:
    """A read or a decision under way. read_model: the one that it was given."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.read_model: ReadModel | None = None


class ReadPool(SplitByFork):
    """`READERS` read models of one store; each opens its connection when it is first needed.

    A signal handler may raise at any step in the main thread. So locks are taken by `with` alone, which
    nothing interrupts, and a claim that ends is left even if leaving it is interrupted: no other thread waits
    for ever.

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
        """No thread of the parent reads here."""
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
        """A read model that no other thread uses; a thread that uses one already may be given the same."""
        claim = _Claim()
        try:
            read_model = self._given(claim)
            with read_model.mutex:
                yield read_model
        finally:
            self._leave(claim)

    def _given(self, claim: _Claim) -> ReadModel:
        """Threads are served in the order in which they came, but a read within another one of its thread is
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
