"""The thread of a watch that brings rows and full text up to the log."""

import threading
import time
from pathlib import Path

from memlog.eventlog.layout import LOG
from memlog.eventlog.log_state import FileState, state_of
from memlog.eventlog.tail import looks
from memlog.service.read_model import ReadModel
from memlog.service.watching.worker import Shared, WatchStep, Worker

_AT_A_TIME = 0.1  # events appended while many documents are read do not wait for all of them
_SETTLED = 0.3


class Rows(Worker):
    """Brings rows and full text up to the log whenever it has changed.

    came: set when passages may wait for a vector.
    """

    def __init__(self, shared: Shared, read_model: ReadModel, came: threading.Event) -> None:
        super().__init__(shared, read_model)
        self._came = came
        self._log = read_model.path / LOG
        self._done: tuple[list[FileState], Path | None] | None = None
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
        """Whether the store still exists. A new one in its place is watched by the first process."""
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
