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
from memlog.projector.sqlite import Connection
from memlog.service.read_model import ReadModel
from memlog.service.watch_lock import WatchLock

_LOCK_TIMEOUT = 1.0  # who is told to stop stops soon, also while another one projects
_EMBED_STEP = 16
_TICK = 0.25
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
    """

    lock: WatchLock
    stop: threading.Event
    outbox: SimpleQueue[WatchStep | Stage | str | Ended] = field(default_factory=SimpleQueue)


class Worker(ABC):
    """One thread of a watch. What goes wrong in it is said once for as long as it lasts, and tried again."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        self._shared = shared
        self._notes: list[str] = []
        self._said: set[str] = set()
        self._failed = False
        self._shown = 0.0
        self._read_model = read_model.another(lock_timeout=_LOCK_TIMEOUT, notify=self._notes.append)

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

    def _try(self, work: Callable[[], None]) -> bool:
        """Do `work`, and say what it notes, or why it fails, unless that was said the last time."""
        self._notes.clear()
        try:
            work()
        except (MemlogError, OSError) as error:
            self._notes.append(_told(error))
            failed = True
        else:
            failed = False
        self._say(had_failed=self._failed and not failed)
        self._failed = failed
        return not failed

    def _say(self, *, had_failed: bool) -> None:
        for note in dict.fromkeys(self._notes):
            if note not in self._said:
                self._shared.outbox.put(note)
        self._said = set(self._notes)
        if had_failed:
            self._shared.outbox.put("watching goes on")

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
            if self._has_store():
                self._try(self._look)

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

    def _look(self) -> None:
        projector = self._read_model.projector
        # Looked at before it is read: what comes while it is read is new to the next look.
        state = state_of(self._log), projector.generations.current()
        if state == self._done:
            return
        self._done = None
        self._project()
        self._done = state

    def _project(self) -> None:
        started = time.perf_counter()
        done = self._read_model.healed(lambda: self._read_model.caught_up(progress=self._progress))
        if done.read.bytes or done.rebuilt or self._is_first:
            self._came.set()
            self._tell(WatchStep(projected=done.read.events), started)
        self._is_first = False


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

    def _embed(self) -> None:
        model = self._read_model.model
        while self._has_work(self._read_model.projector.live()):
            embedder, silent = model.embedder_or_why()
            if embedder is None:
                self._notes.append(f"no vectors: {silent['vector']}")
                return
            started = time.perf_counter()
            done = self._read_model.projector.embed(
                embedder, limit=_EMBED_STEP, batch=_EMBED_STEP, progress=self._progress
            )
            embedded = done.computed + done.cached
            if not embedded:
                # Another process was faster.
                return
            self._tell(WatchStep(embedded=embedded), started)

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
