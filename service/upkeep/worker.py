"""A thread of a watch: what all of them have in common."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import msgspec

from memlog.eventlog.errors import Busy, MemlogError
from memlog.eventlog.files import disk, file_io, locks
from memlog.eventlog.files.file_io import is_at
from memlog.eventlog.log.layout import WATCH_LOCK
from memlog.eventlog.log.streams import shown
from memlog.projector.catchup import Progress
from memlog.projector.passages import index
from memlog.projector.sqlite import wrapped
from memlog.service.documents.indexing import described
from memlog.service.engine.read_model import ReadModel

# The file is never unlinked: the kernel frees the lock, also at kill -9.


class WatchLock:
    """The lock of the store at `store`, which is taken at once. Close it after use.

    Raises:
        Busy: another process watches the store; the message names it if the system knows it.
        OSError: the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store / WATCH_LOCK
        self._fd: int | None = None
        self.take()

    def take(self) -> None:
        """Lock the present file, which is made if it is missing.

        Raises the errors of the class.
        """
        self.close()
        self._fd = file_io.open_file(self._path, disk.WRITE | disk.CREATE)
        try:
            locks.acquire(self._fd, "the store", 0)
        except Busy as busy:
            who = locks.holder(self._fd)
            self.close()
            raise Busy(
                f"{shown(self._store)} is watched already, by {who}", hint="one watch does for all"
            ) from busy

    def close(self) -> None:
        """Let another process watch."""
        if self._fd is not None:
            disk.close(self._fd)
        self._fd = None

    def holds(self) -> bool:
        """Whether the locked store still exists: its folder may be removed and made again."""
        if self._fd is None:
            return False
        try:
            return is_at(self._path, disk.status(self._fd))
        except OSError:
            return False


_LOCK_TIMEOUT = 1.0  # a watch stops soon, even while another process projects
_GOES_ON = "watching goes on"
_BETWEEN_STAGES = 0.1


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


class _Stopped(BaseException):
    """Ends a thread in the middle of long work; no step of it is left half done."""


@dataclass
class Shared:
    """What the threads of a watch have in common.

    stop: ends them. tell, notify, progress: the caller's functions.
    caught_up: set while the rows have come up to the log, as far as that is known.
    rows_came: set when passages may wait for a vector.
    calls: of the caller's functions, to be made by the caller's thread; None when a thread has ended.
    """

    lock: WatchLock
    stop: threading.Event
    tell: Callable[[WatchStep], None]
    notify: Callable[[str], None]
    progress: Progress | None
    caught_up: threading.Event = field(default_factory=threading.Event)
    rows_came: threading.Event = field(default_factory=threading.Event)
    calls: SimpleQueue[Callable[[], None] | None] = field(default_factory=SimpleQueue)


class Worker(ABC):
    """One thread of a watch. An error is reported once while it lasts, and the work is retried."""

    lock_timeout = _LOCK_TIMEOUT
    """Seconds that it waits for other projectors at most."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        self._shared = shared
        self._notes: list[str] = []
        self._reported: set[str] = set()
        self._has_failed = False
        self._shown = 0.0
        self._read_model = read_model.another(lock_timeout=self.lock_timeout, notify=self._notes.append)

    def run(self) -> None:
        """Work until the watch stops."""
        try:
            with closing(self._read_model):
                self._work()
        except _Stopped:
            pass
        except BaseException as outcome:  # noqa: BLE001 - the caller's thread raises it
            self._shared.calls.put(partial(_raise, outcome))
        self._shared.calls.put(None)

    @abstractmethod
    def _work(self) -> None:
        """Work until the watch stops."""

    def _try(self, work: Callable[[], bool]) -> None:
        """Do `work`, which returns whether there was anything to do.

        Its notes, or its error, are reported unless they were reported the last time.
        """
        self._notes.clear()
        try:
            # A fork waits for all of it: in the child, a thread of SQLite would never release its locks.
            with self._read_model.mutex, wrapped("the read model"):
                is_worth_a_report, has_failed = work(), False
        except (MemlogError, OSError) as error:
            hint = f" ({error.hint})" if isinstance(error, MemlogError) and error.hint else ""
            self._notes.append(described(error) + hint)
            is_worth_a_report, has_failed = True, True
        if not is_worth_a_report:
            return
        if self._has_failed and not has_failed:
            self._notes.append(_GOES_ON)
        for note in dict.fromkeys(self._notes):
            if note not in self._reported:
                self._notify(note)
        self._reported, self._has_failed = set(self._notes), has_failed

    def _notify(self, note: str) -> None:
        self._shared.calls.put(partial(self._shared.notify, note))

    def _heartbeat(self) -> None:
        """End the thread if the watch stops."""
        if self._shared.stop.is_set():
            raise _Stopped

    def _progress(self, what: str, done: int, total: int) -> None:
        self._heartbeat()
        now = time.monotonic()
        if self._shared.progress is not None and now - self._shown >= _BETWEEN_STAGES:
            self._shown = now
            self._shared.calls.put(partial(self._shared.progress, what, done, total))

    def _tell(self, done: WatchStep, started: float) -> None:
        """Report what was done since the `time.perf_counter()` of `started`."""
        done.pending = index.count_all_pending(self._read_model.projector.live())
        done.ms = round((time.perf_counter() - started) * 1000, 3)
        self._shared.calls.put(partial(self._shared.tell, done))


def _raise(outcome: BaseException) -> None:
    raise outcome
