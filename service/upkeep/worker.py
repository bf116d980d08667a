"""The lock of a watch, and the base class of its threads."""

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
from memlog.eventlog.files.file_io import is_same_file_at
from memlog.eventlog.log.layout import WATCH_LOCK
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.projector.catchup import Progress
from memlog.projector.passages import index
from memlog.projector.sqlite import converting_errors
from memlog.service.documents.indexing import describe_indexing_error
from memlog.service.engine.read_model import ReadModel

# The file is never unlinked: the kernel releases the lock, even after kill -9.


class WatchLock:
    """The lock that a watch holds on a store. The constructor acquires it without waiting.

    Raises:
        Busy: another process watches the store; the message names it if the system knows it.
        OSError: the file cannot be created.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store / WATCH_LOCK
        self._fd: int | None = None
        self.take_lock()

    def take_lock(self) -> None:
        """Lock the current file, creating it if it is missing. Raises the errors of the class."""
        self.close()
        self._fd = file_io.open_file(self._path, disk.WRITE | disk.CREATE)
        try:
            locks.lock_file(self._fd, "the store", 0)
        except Busy as busy:
            who = locks.describe_holder(self._fd)
            self.close()
            raise Busy(
                f"{escape_invalid_utf8(self._store)} is already watched by {who}",
                hint="one watch serves all processes",
            ) from busy

    def close(self) -> None:
        """Release the lock, so that another process can watch the store."""
        if self._fd is not None:
            disk.close(self._fd)
        self._fd = None

    def is_locked_file_current(self) -> bool:
        """Whether the locked file is still the store's; it is not if the store was removed or recreated."""
        if self._fd is None:
            return False
        try:
            return is_same_file_at(self._path, disk.status_of_descriptor(self._fd))
        except OSError:
            return False


_LOCK_TIMEOUT = 1.0  # so that a watch stops soon even while another process projects
_GOES_ON = "watching goes on"
_BETWEEN_STAGES = 0.1


class WatchStep(msgspec.Struct, kw_only=True):
    """The work that one step of a watch did.

    projected: events added to the read model.
    embedded: passages that got a vector, computed or cached.
    indexed, removed: documents read into the log, or removed from it.
    pending: passages without a vector.
    ms: the duration in milliseconds.
    """

    projected: int = 0
    embedded: int = 0
    indexed: int = 0
    removed: int = 0
    pending: int = 0
    ms: float = 0.0


class _Stopped(BaseException):
    """Raised between two atomic steps of long work, to end a thread."""


@dataclass
class Shared:
    """What the threads of a watch share.

    stop: an event that ends the threads. tell, notify, progress: the caller's functions.
    caught_up: set while the rows are up to date with the log.
    rows_came: set when there may be passages without a vector.
    calls: calls of the caller's functions for the caller's thread to make; None when a thread has ended.
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
    """A thread of a watch. It retries failed work, and reports a lasting error only once."""

    lock_timeout = _LOCK_TIMEOUT
    """Seconds to wait for other processes that project."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        self._shared = shared
        self._notes: list[str] = []
        self._reported: set[str] = set()
        self._has_failed = False
        self._shown = 0.0
        self._read_model = read_model.copy_for_thread(
            lock_timeout=self.lock_timeout, notify=self._notes.append
        )

    def run(self) -> None:
        """Work until the watch stops."""
        try:
            with closing(self._read_model):
                self._work_until_stopped()
        except _Stopped:
            pass
        except BaseException as outcome:  # noqa: BLE001 - the caller's thread raises it
            self._shared.calls.put(partial(_reraise_error, outcome))
        self._shared.calls.put(None)

    @abstractmethod
    def _work_until_stopped(self) -> None:
        """Work until the watch stops."""

    def _run_and_report(self, work: Callable[[], bool]) -> None:
        """Run `work`, which returns whether it did anything, and report new notes or the error."""
        self._notes.clear()
        try:
            # The mutex makes a fork wait: in the child, SQLite locks of this thread would never be released.
            with self._read_model.mutex, converting_errors("the read model"):
                is_worth_a_report, has_failed = work(), False
        except (MemlogError, OSError) as error:
            hint = f" ({error.hint})" if isinstance(error, MemlogError) and error.hint else ""
            self._notes.append(describe_indexing_error(error) + hint)
            is_worth_a_report, has_failed = True, True
        if not is_worth_a_report:
            return
        if self._has_failed and not has_failed:
            self._notes.append(_GOES_ON)
        for note in dict.fromkeys(self._notes):
            if note not in self._reported:
                self._queue_note(note)
        self._reported, self._has_failed = set(self._notes), has_failed

    def _queue_note(self, note: str) -> None:
        self._shared.calls.put(partial(self._shared.notify, note))

    def _end_if_stopped(self) -> None:
        """End the thread if the watch has been stopped."""
        if self._shared.stop.is_set():
            raise _Stopped

    def _show_progress(self, what: str, done: int, total: int) -> None:
        self._end_if_stopped()
        now = time.monotonic()
        if self._shared.progress is not None and now - self._shown >= _BETWEEN_STAGES:
            self._shown = now
            self._shared.calls.put(partial(self._shared.progress, what, done, total))

    def _tell_of_work(self, done: WatchStep, started: float) -> None:
        """Report the work done since `started`, a value of `time.perf_counter()`."""
        done.pending = index.count_pending_passages_of_all_sets(self._read_model.projector.connect_to_live())
        done.ms = round((time.perf_counter() - started) * 1000, 3)
        self._shared.calls.put(partial(self._shared.tell, done))


def _reraise_error(outcome: BaseException) -> None:
    raise outcome
