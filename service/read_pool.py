"""The read models of one store: a connection for each of several threads that read at the same time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from memlog.service.read_model import Answer, Ask, ReadModel

READERS = 4
"""How many threads read at the same time. The interpreter's lock lets about one of them compute (two threads
do 1.13 times the searches of one), so two searches keep it busy; the others are for short reads beside them.
More would cost memory: a connection by which many searches are made holds up to 64 MiB of vectors a shelf."""


class ReadPool:
    """`READERS` read models of one store; each opens its connection when it is first needed.

    first: the one that writers decide by. A single thread reads by it, too, and so has one connection.
    maintenance: one more, for what takes long, so that nothing else waits for it.
    """

    def __init__(self, first: ReadModel) -> None:
        self._first = first
        self._read_models = [first, *(first.another(notify=first.notify) for _ in range(READERS - 1))]
        self.maintenance = first.another(notify=first.notify)
        self._returned = threading.Condition()
        self._waiting: list[object] = []
        self._reading: list[int] = []
        self._deciding: list[int] = []

    def read(self, ask: Ask[Answer]) -> Answer:
        """See `ReadModel.read`."""
        with self._one() as read_model:
            return read_model.read(ask)

    def decide(self, ask: Ask[Answer], *, creates: bool = False) -> Answer:
        """See `ReadModel.decide`. One thread decides at a time."""
        thread = threading.get_ident()
        self._deciding.append(thread)
        try:
            return self._first.decide(ask, creates=creates)
        finally:
            with self._returned:
                self._deciding.remove(thread)
                self._returned.notify_all()

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
        with self._returned:
            self._returned.notify_all()

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
        read_model = self._taken()
        try:
            yield read_model
        finally:
            read_model.mutex.release()
            with self._returned:
                self._reading.remove(threading.get_ident())
                self._returned.notify_all()

    def _taken(self) -> ReadModel:
        """Threads are served in the order in which they came; one that uses a read model need not wait."""
        thread, place = threading.get_ident(), object()
        with self._returned:
            self._waiting.append(place)
            try:
                while True:
                    if place is self._waiting[0] or thread in self._reading or thread in self._deciding:
                        read_model = self._free_for(thread)
                        if read_model is not None:
                            self._reading.append(thread)
                            return read_model
                    self._returned.wait()
            finally:
                self._waiting.remove(place)
                self._returned.notify_all()

    def _free_for(self, thread: int) -> ReadModel | None:
        """While others read, the first one comes last, and not at all where another thread is to decide."""
        keeps_off = self._deciding and thread not in self._deciding and thread not in self._reading
        first = [] if keeps_off else [self._first]
        others = self._read_models[1:]
        for read_model in [*others, *first] if self._reading else [*first, *others]:
            if read_model.mutex.acquire(blocking=False):
                return read_model
        return None
