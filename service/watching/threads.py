"""Watching a store: what any process appends is projected at once; documents and vectors follow behind.

Rows, vectors and documents have a thread and a connection each, so that no row waits for a vector or a file.
The threads queue calls of the caller's functions, and the thread that called makes them.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from queue import Empty

from memlog.projector.catchup import Progress
from memlog.service.documents.facade import Documents
from memlog.service.maintenance.project import project
from memlog.service.read_model import ReadModel
from memlog.service.requests.maintenance import Replay
from memlog.service.watching.catch_up import Rows, Vectors
from memlog.service.watching.folders import DocumentsBy, Folders, links_of, problems_of
from memlog.service.watching.jobs import DueJobs, RunnerBy
from memlog.service.watching.lock import WatchLock
from memlog.service.watching.worker import Shared, WatchStep, Worker

Tell = Callable[[WatchStep], None]
_PATIENCE = 0.3
"""Seconds for the threads to end, so that the watch ends within one; a busy thread is left to itself."""

_TICK = 0.2


def watch(
    read_model: ReadModel,
    documents_by: DocumentsBy,
    runner_by: RunnerBy,
    *,
    stop: threading.Event,
    tell: Tell,
    progress: Progress | None,
) -> None:
    """See `Store.watch`."""
    read_model.make_store()
    with closing(WatchLock(read_model.path)) as lock:
        shared = Shared(lock, stop, tell, read_model.notify, progress)
        workers: list[Worker] = [
            Rows(shared, read_model),
            Vectors(shared, read_model),
            Folders(shared, read_model, documents_by),
            DueJobs(shared, read_model, runner_by),
        ]
        threads = [threading.Thread(target=worker.run, daemon=True) for worker in workers]
        try:
            for thread in threads:
                thread.start()
            _make_calls(shared, len(threads))
        except BaseException:
            stop.set()
            deadline = time.monotonic() + _PATIENCE
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            raise
        stop.set()


def bring_up(read_model: ReadModel, documents: Documents, *, tell: Tell, progress: Progress | None) -> None:
    """See `Store.watch`, `once`."""
    read_model.make_store()
    started = time.perf_counter()
    with closing(WatchLock(read_model.path)):
        # First, since documents are compared with the rows.
        rows = project(read_model, Replay(embed=False, progress=progress))
        _notify(read_model, rows.notes)
        reports = documents.refresh(progress=progress)
        _notify(read_model, [*problems_of(reports), *(note for each in reports for note in links_of(each))])
        done = project(read_model, Replay(progress=progress))
    _notify(read_model, [*done.notes, *(f"no vectors: {why}" for why in done.silent.values())])
    tell(
        WatchStep(
            projected=rows.events + done.events,
            embedded=done.vectors_computed + done.vectors_cached,
            indexed=sum(each.indexed for each in reports),
            removed=sum(each.removed for each in reports),
            pending=done.vectors_pending,
            ms=round((time.perf_counter() - started) * 1000, 3),
        )
    )


def _notify(read_model: ReadModel, notes: list[str]) -> None:
    for note in notes:
        read_model.notify(note)


def _make_calls(shared: Shared, running: int) -> None:
    """Make the calls that threads queue until all threads have ended, a call raises, or patience has."""
    deadline = math.inf
    while running and time.monotonic() < deadline:
        if shared.stop.is_set():
            deadline = min(deadline, time.monotonic() + _PATIENCE)
        with suppress(Empty):
            call = shared.calls.get(timeout=_TICK)
            if call is None:
                running -= 1
            else:
                call()
