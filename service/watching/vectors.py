"""The thread of a watch that gives passages vectors."""

import os
import sys
import threading
import time

from memlog.eventlog.tail import SWEEP_SECONDS
from memlog.projector.embedding.models import Embedder
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection
from memlog.service.watching.worker import WatchStep, Worker

_EMBED_STEP = 16
_TICK = 0.25
_NICENESS = 10


class Vectors(Worker):
    """Gives passages vectors, in small steps, while the processors have nothing better to do."""

    def _work(self) -> None:
        _be_nice()
        last = time.monotonic()
        while not self._shared.stop.is_set():
            if self._shared.rows_came.wait(_TICK) or time.monotonic() - last >= SWEEP_SECONDS:
                self._shared.rows_came.clear()
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
        return is_other or index.count_pending(db) > 0


def _be_nice() -> None:
    """Have this thread, and those that it starts, yield to all others, where the system can: on Linux alone a
    thread has a niceness of its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS))
