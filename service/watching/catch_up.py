"""The threads of a watch that keep the read model up to the log: rows and full text, then vectors."""

import os
import sys
import threading
import time
from pathlib import Path

from memlog.eventlog.layout import LOG
from memlog.eventlog.log_state import FileState, state_of
from memlog.eventlog.tail import SWEEP_SECONDS, looks
from memlog.projector.embedding.fill import Embedded
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection
from memlog.service.read_model import ReadModel
from memlog.service.watching.worker import Shared, WatchStep, Worker

_AT_A_TIME = 0.1  # events appended while many documents are read do not wait for all of them
_SETTLED = 0.3
_EMBED_STEP = 16
_TICK = 0.25
_NICENESS = 10


class Rows(Worker):
    """Brings rows and full text up to the log whenever it has changed."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        super().__init__(shared, read_model)
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
        """Whether the whole store is being removed, the read model first: nothing may be made in it."""
        if self._is_first:
            return False
        self._shared.stop.wait(_SETTLED)
        return not self._shared.lock.holds()

    def _project(self) -> bool:
        """Read on for a moment, and return whether all was read."""
        started = time.perf_counter()
        read_model = self._read_model
        done = read_model.healed(
            lambda: read_model.projector.catch_up(progress=self._progress, seconds=_AT_A_TIME)
        )
        read_model.noted(done)
        if done.read.bytes or done.rebuilt or self._is_first:
            self._shared.rows_came.set()
            self._tell(WatchStep(projected=done.read.events), started)
        self._is_first = False
        return done.read.is_whole


class Vectors(Worker):
    """Gives passages vectors, in small steps, while the processors have nothing better to do."""

    def _work(self) -> None:
        _be_nice()
        last = time.monotonic()
        while not self._shared.stop.is_set():
            if self._shared.rows_came.wait(_TICK) or time.monotonic() - last >= SWEEP_SECONDS:
                self._shared.rows_came.clear()
                last = time.monotonic()
                if not self._shared.lock.holds():
                    self._read_model.close()
                elif self._read_model.projector.generations.current() is not None:
                    self._try(lambda: self._read_model.healed(self._embed))

    def _embed(self) -> bool:
        projector, model = self._read_model.projector, self._read_model.model
        was_due = False
        while self._has_work(projector.live()):
            was_due = True
            models, silent = model.models_or_why()
            if not models.loaded:
                self._notes += [f"no vectors: {why}" for why in silent.values()]
                break
            started = time.perf_counter()
            done = Embedded()
            for embedder in models.loaded:
                done += projector.embed(
                    embedder, limit=_EMBED_STEP, batch=_EMBED_STEP, progress=self._progress
                )
            embedded = done.computed + done.cached
            if not embedded + done.withheld:  # another process was faster
                break
            self._tell(WatchStep(embedded=embedded), started)
        return was_due

    def _has_work(self, db: Connection) -> bool:
        """Without loading the model, which takes 260 MB."""
        known = self._read_model.model.all_known()
        is_other = any(vectors.model_of(db, vectors.set_for(each)) != each.id for each in known)
        return is_other or index.count_all_pending(db) > 0


def _be_nice() -> None:
    """Lower the priority of this thread and those that it starts. Only Linux has a niceness per thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS))
