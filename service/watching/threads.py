"""What the threads of a watch do: one brings rows up to the log, one gives passages vectors."""

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import msgspec

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.following import SWEEP_SECONDS, looks, state_of
from memlog.eventlog.streams import shown
from memlog.projector import passages, vectors
from memlog.projector.embedding import Embedder
from memlog.projector.sqlite import Connection, wrapped
from memlog.service.read_model import ReadModel
from memlog.service.watching.lock import WatchLock

_AT_A_TIME = 0.1  # what is said while many documents are read does not wait for them all
_LOCK_TIMEOUT = 1.0  # who is told to stop stops soon, also while another one projects
_EMBED_STEP = 16
_TICK = 0.25
_SETTLED = 0.3
_GOES_ON = "watching goes on"
_BETWEEN_STAGES = 0.1
_NICENESS = 10


class WatchStep(msgspec.Struct, kw_only=True):
    """What one step of a watch did.

    projected: events that came into the read model.
    embedded: passages that were given a vector, computed or from the cache.
    indexed, removed: documents that were read into the log, or left it.
    pending: passages that have no vector yet.
    ms: how long it took, in milliseconds.
    """

    projected: int = 0
    embedded: int = 0
    indexed: int = 0
    removed: int = 0
    pending: int = 0
    ms: float = 0.0


class Stage(NamedTuple):
    """How far long work is; see `Progress`."""

    what: str
    done: int
    total: int


class Ended(NamedTuple):
    """A thread has ended, by itself where there is an `error`."""

    error: BaseException | None


class _Stopped(BaseException):
    """It was told to stop in the middle of long work, of which nothing is half done."""


@dataclass
class Shared:
    """What the threads of a watch have in common.

    stop: ends them. outbox: what they tell; a `str` is what a person should know.
    caught_up: set while the rows have come up to the log, as far as that is known.
    """

    lock: WatchLock
    stop: threading.Event
    caught_up: threading.Event = field(default_factory=threading.Event)
    outbox: SimpleQueue[WatchStep | Stage | str | Ended] = field(default_factory=SimpleQueue)


class Worker(ABC):
    """One thread of a watch. What goes wrong in it is said once for as long as it lasts, and tried again."""

    lock_timeout = _LOCK_TIMEOUT
    """Seconds that it waits for other projectors at most."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        self._shared = shared
        self._notes: list[str] = []
        self._said: set[str] = set()
        self._has_failed = False
        self._shown = 0.0
        self._read_model = read_model.another(lock_timeout=self.lock_timeout, notify=self._notes.append)

    def run(self) -> None:
        """Work until told to stop."""
        error: BaseException | None = None
        try:
            with closing(self._read_model):
                self._work()
        except _Stopped:
            pass
        except BaseException as caught:  # noqa: BLE001 - the thread that called raises it
            error = caught
        self._shared.outbox.put(Ended(error))

    @abstractmethod
    def _work(self) -> None:
        """Until told to stop."""

    def _try(self, work: Callable[[], bool]) -> None:
        """Do `work`, which returns whether anything was to do, and say what it notes, or why it fails, unless
        that was said the last time."""
        self._notes.clear()
        try:
            with wrapped("the read model"):
                was_due = work()
        except (MemlogError, OSError) as error:
            self._notes.append(_told(error))
            self._say()
            self._has_failed = True
            return
        if was_due:
            self._notes += [_GOES_ON] if self._has_failed else []
            self._say()
            self._has_failed = False

    def _say(self) -> None:
        for note in dict.fromkeys(self._notes):
            if note not in self._said:
                self._shared.outbox.put(note)
        self._said = set(self._notes)

    def _progress(self, what: str, done: int, total: int) -> None:
        if self._shared.stop.is_set():
            raise _Stopped
        now = time.monotonic()
        if now - self._shown >= _BETWEEN_STAGES:
            self._shown = now
            self._shared.outbox.put(Stage(what, done, total))

    def _tell(self, done: WatchStep, started: float) -> None:
        """Say what was done since the `time.perf_counter()` of `started`."""
        done.pending = passages.count_pending(self._read_model.projector.live())
        done.ms = round((time.perf_counter() - started) * 1000, 3)
        self._shared.outbox.put(done)


def _told(error: MemlogError | OSError) -> str:
    if isinstance(error, MemlogError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    name = error.filename or "input or output"
    return f"{shown(name)}: {error.strerror or error}"


class Rows(Worker):
    """Brings rows and full text up to the log whenever it has changed.

    came: set when passages may wait for a vector.
    """

    def __init__(self, shared: Shared, read_model: ReadModel, came: threading.Event) -> None:
        super().__init__(shared, read_model)
        self._came = came
        self._log = read_model.path / "log"
        self._done: tuple[int, Path | None] | None = None
        self._is_first = True

    def _work(self) -> None:
        for _ in looks(self._log, self._shared.stop):
            self._try(self._look)

    def _look(self) -> bool:
        if not self._has_store():
            return False
        projector = self._read_model.projector
        # Looked at before it is read: what comes while it is read is new to the next look.
        state = state_of(self._log), projector.generations.current()
        if state == self._done or (state[1] is None and self._is_going()):
            return False
        self._done = None
        self._shared.caught_up.clear()
        while not self._project():
            if self._shared.stop.is_set():
                return True
        self._shared.caught_up.set()
        self._done = state
        return True

    def _has_store(self) -> bool:
        """Whether the store stands. One that came anew is watched by whoever is there first."""
        if self._shared.lock.holds():
            return True
        self._read_model.close()
        self._done = None
        if not self._read_model.path.is_dir():
            return False
        self._shared.lock.take()
        return True

    def _is_going(self) -> bool:
        """Whether all of the store is being removed, the read model first: nothing is to be made in it."""
        if self._is_first:
            return False
        self._shared.stop.wait(_SETTLED)
        return not self._shared.lock.holds()

    def _project(self) -> bool:
        """Read on for a moment; whether all was read."""
        started = time.perf_counter()
        done = self._read_model.healed(
            lambda: self._read_model.caught_up(progress=self._progress, seconds=_AT_A_TIME)
        )
        if done.read.bytes or done.rebuilt or self._is_first:
            self._came.set()
            self._tell(WatchStep(projected=done.read.events), started)
        self._is_first = False
        return done.read.is_whole


class Vectors(Worker):
    """Gives passages vectors, in small steps, while the processors have nothing better to do.

    due: set when passages may wait.
    """

    def __init__(self, shared: Shared, read_model: ReadModel, due: threading.Event) -> None:
        super().__init__(shared, read_model)
        self._due = due

    def _work(self) -> None:
        _be_nice()
        last = time.monotonic()
        while not self._shared.stop.is_set():
            if self._due.wait(_TICK) or time.monotonic() - last >= SWEEP_SECONDS:
                self._due.clear()
                last = time.monotonic()
                self._embed_all()

    def _embed_all(self) -> None:
        if not self._shared.lock.holds():
            self._read_model.close()
        elif self._read_model.projector.generations.current() is not None:
            self._try(lambda: self._read_model.healed(self._embed))

    def _embed(self) -> bool:
        model = self._read_model.model
        embedded = 1
        was_due = False
        # Where another process was faster, there was work and nothing to do.
        while embedded and self._has_work(self._read_model.projector.live()):
            was_due = True
            embedder, silent = model.embedder_or_why()
            if embedder is None:
                self._notes.append(f"no vectors: {silent['vector']}")
                return True
            embedded = self._embed_some(embedder)
        return was_due

    def _embed_some(self, embedder: Embedder) -> int:
        started = time.perf_counter()
        done = self._read_model.projector.embed(
            embedder, limit=_EMBED_STEP, batch=_EMBED_STEP, progress=self._progress
        )
        embedded = done.computed + done.cached
        if embedded:
            self._tell(WatchStep(embedded=embedded), started)
        return embedded

    def _has_work(self, db: Connection) -> bool:
        """Without loading the model, which takes 260 MB."""
        known = self._read_model.model.known()
        is_other = known is not None and vectors.model_of(db) != known.id
        return is_other or passages.count_pending(db) > 0


def _be_nice() -> None:
    """Have this thread, and those that it starts, yield to all others, where the system can: on Linux alone a
    thread has a niceness of its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS))
