"""Watching a store: what any process appends is projected at once; documents and vectors follow behind.

Rows, vectors and documents have a thread and a connection each, so that no row waits for a vector or a file.
The threads tell what they did through one queue to the thread that called, which alone calls back.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty

from memlog.projector.catchup import Progress
from memlog.service.documents.facade import Documents
from memlog.service.maintenance.project import project
from memlog.service.read_model import ReadModel
from memlog.service.requests.maintenance import Replay
from memlog.service.watching.folders import DocumentsBy, Folders, notes_of
from memlog.service.watching.lock import WatchLock
from memlog.service.watching.rows import Rows
from memlog.service.watching.vectors import Vectors
from memlog.service.watching.worker import Shared, Stage, ThreadEnd, Told, WatchStep, Worker

Tell = Callable[[WatchStep], None]
_PATIENCE = 0.3
"""Seconds for what is being done to end, so that all ends within one; what goes on then is left to itself."""

_TICK = 0.2


def watch(
    read_model: ReadModel,
    documents_by: DocumentsBy,
    *,
    stop: threading.Event,
    tell: Tell,
    progress: Progress | None,
) -> None:
    """See `Store.watch`."""
    read_model.make_store()
    with WatchLock(read_model.path) as lock:
        shared = Shared(lock, stop)
        rows_came = threading.Event()
        workers: list[Worker] = [
            Rows(shared, read_model, rows_came),
            Vectors(shared, read_model, rows_came),
            Folders(shared, read_model, documents_by),
        ]
        threads = [threading.Thread(target=worker.run, daemon=True) for worker in workers]
        try:
            for thread in threads:
                thread.start()
            _pass_on(shared, len(threads), tell, read_model.notify, progress)
        except BaseException:
            stop.set()
            _join(threads)
            raise
        stop.set()


def bring_up(read_model: ReadModel, documents: Documents, *, tell: Tell, progress: Progress | None) -> None:
    """See `Store.watch`, `once`."""
    read_model.make_store()
    started = time.perf_counter()
    with WatchLock(read_model.path):
        projected = _rows(read_model, progress)
        added = documents.refresh(progress=progress)
        for note in notes_of(added):
            read_model.notify(note)
        report = project(read_model, Replay(progress=progress))
    for note in (*report.notes, *(f"no vectors: {why}" for why in report.silent.values())):
        read_model.notify(note)
    tell(
        WatchStep(
            projected=projected + report.events,
            embedded=report.vectors_computed + report.vectors_cached,
            indexed=sum(each.indexed for each in added),
            removed=sum(each.removed for each in added),
            pending=report.vectors_pending,
            ms=round((time.perf_counter() - started) * 1000, 3),
        )
    )


def _rows(read_model: ReadModel, progress: Progress | None) -> int:
    """Bring the rows up to the log, which documents are compared with, and return how many events came."""
    report = project(read_model, Replay(embed=False, progress=progress))
    for note in report.notes:
        read_model.notify(note)
    return report.events


def _pass_on(
    shared: Shared, running: int, tell: Tell, notify: Callable[[str], None], progress: Progress | None
) -> None:
    """Call back with what the threads tell, until all have ended, one by an error, or patience has."""
    deadline = math.inf
    while running and time.monotonic() < deadline:
        if shared.stop.is_set():
            deadline = min(deadline, time.monotonic() + _PATIENCE)
        with suppress(Empty):
            running -= _passed_on(shared.outbox.get(timeout=_TICK), tell, notify, progress)


def _passed_on(told: Told, tell: Tell, notify: Callable[[str], None], progress: Progress | None) -> bool:
    """Call back with what a thread tells; whether it was that it has ended."""
    match told:
        case WatchStep() as done:
            tell(done)
        case str() as note:
            notify(note)
        case Stage() as stage if progress is not None:
            progress(*stage)
        case ThreadEnd(outcome):
            if outcome is not None:
                raise outcome
            return True
    return False


def _join(threads: list[threading.Thread]) -> None:
    deadline = time.monotonic() + _PATIENCE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
