"""Watches a store: projects new events immediately; vectors, documents and jobs follow.

Each of these has its own thread and connection, so that no row waits for a vector or a file. The
threads queue calls of the caller's functions, and the calling thread makes them.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from queue import Empty

from memlog.eventlog.errors import Busy
from memlog.eventlog.files.file_io import file_version
from memlog.eventlog.files.folder_events import ChangeHints
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.reader import FileState, read_log_state
from memlog.eventlog.log.tail import SWEEP_SECONDS, wait_for_polls
from memlog.eventlog.settings import DEFAULTS
from memlog.projector.catchup import Progress
from memlog.projector.embedding.fill import Embedded
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection
from memlog.query import documents as queries
from memlog.query.documents import Registered
from memlog.service.documents.documents import Documents
from memlog.service.documents.scan import walk_source_folder
from memlog.service.documents.sources import IndexingReport, why_not_refreshed
from memlog.service.documents.text_files import Root
from memlog.service.engine.read_model import ReadModel
from memlog.service.engine.sandbox import Readers
from memlog.service.upkeep.jobs import JobRunner
from memlog.service.upkeep.project import project_log
from memlog.service.upkeep.worker import Shared, WatchLock, WatchStep, Worker

_AT_A_TIME = 0.1  # so that new events need not wait for a long catch-up with many documents
_SETTLED = 0.3
_EMBED_STEP = 16
_TICK = 0.25
_NICENESS = 10
_VECTORS_SWEEP = 10.0
"""Seconds until another process's passages without vectors are noticed; the rows thread reports its own."""


class Rows(Worker):
    """Updates rows and full text whenever the log changes."""

    def __init__(self, shared: Shared, read_model: ReadModel) -> None:
        super().__init__(shared, read_model)
        self._log = read_model.path / LOG
        self._done: tuple[list[FileState], Path | None] | None = None
        self._is_first = True

    def _work_until_stopped(self) -> None:
        for _ in wait_for_polls(self._log, self._shared.stop):
            self._run_and_report(self._catch_up_if_changed)

    def _catch_up_if_changed(self) -> bool:
        if not self._has_store():
            return False
        projector = self._read_model.projector
        # Taken before reading, so that the next poll sees what is appended meanwhile.
        state = read_log_state(self._log), projector.generations.find_live_file()
        if state == self._done or (state[1] is None and self._is_being_removed()):
            return False
        self._done = None
        self._shared.caught_up.clear()
        while not self._catch_up_for_a_moment():
            if self._shared.stop.is_set():
                return True
        self._shared.caught_up.set()
        self._done = state
        return True

    def _has_store(self) -> bool:
        """Whether the store exists. If it was recreated, the first process to lock it watches it."""
        if self._shared.lock.is_locked_file_current():
            return True
        self._read_model.close()
        self._done = None
        if not self._read_model.path.is_dir():
            return False
        self._shared.lock.take_lock()
        return True

    def _is_being_removed(self) -> bool:
        """Whether the store is being removed, read model first, so that nothing may be created in it."""
        if self._is_first:
            return False
        self._shared.stop.wait(_SETTLED)
        return not self._shared.lock.is_locked_file_current()

    def _catch_up_for_a_moment(self) -> bool:
        """Catch up for at most `_AT_A_TIME` seconds. Return whether the whole log has been read."""
        started = time.perf_counter()
        read_model = self._read_model
        done = read_model.run_with_repair(
            lambda: read_model.projector.catch_up(progress=self._show_progress, seconds=_AT_A_TIME)
        )
        read_model.pass_on_notes(done)
        if done.read.bytes or done.rebuilt or self._is_first:
            self._shared.rows_came.set()
            self._tell_of_work(WatchStep(projected=done.read.events), started)
        self._is_first = False
        return done.read.is_whole


class Vectors(Worker):
    """Embeds passages in small steps, at low priority."""

    def _work_until_stopped(self) -> None:
        if sys.platform == "linux":  # only Linux has a niceness per thread; new threads inherit it
            thread = threading.get_native_id()
            niceness = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
            os.setpriority(os.PRIO_PROCESS, thread, min(19, niceness))
        last = time.monotonic()
        while not self._shared.stop.is_set():
            if self._shared.rows_came.wait(_VECTORS_SWEEP) or time.monotonic() - last >= _VECTORS_SWEEP:
                self._shared.rows_came.clear()
                last = time.monotonic()
                if not self._shared.lock.is_locked_file_current():
                    self._read_model.close()
                elif self._read_model.projector.generations.find_live_file() is not None:
                    self._run_and_report(lambda: self._read_model.run_with_repair(self._embed_if_due))

    def _embed_if_due(self) -> bool:
        projector, model = self._read_model.projector, self._read_model.model
        was_due = False
        while self._has_work(projector.connect_to_live()):
            was_due = True
            models, silent = model.load_models_or_why()
            if not models.available_models:
                self._notes += [f"no vectors: {why}" for why in silent.values()]
                break
            started = time.perf_counter()
            done = Embedded()
            for embedder in models.available_models:
                done += projector.embed_passages(
                    embedder, limit=_EMBED_STEP, batch=_EMBED_STEP, progress=self._show_progress
                )
            embedded = done.computed + done.cached
            if not embedded + done.withheld:  # another process was faster
                break
            self._tell_of_work(WatchStep(embedded=embedded), started)
        return was_due

    def _has_work(self, db: Connection) -> bool:
        """Whether passages wait for a vector. Does not load the model, which takes 260 MB."""
        known = self._read_model.model.list_known_models()
        is_other = any(
            vectors.read_model_of_vectors(db, vectors.choose_vector_set_for_model(each)) != each.id
            for each in known
        )
        return is_other or index.count_pending_passages_of_all_sets(db) > 0


# File system events are only hints: a source is read again if names, sizes or times of its files have
# changed, which a check finds without opening them. Checks run after an event in a folder of the source, and
# periodically.

# An editor writes a file in several steps, so wait until the folder has been quiet for a moment.
_QUIET_MS = 100
_AT_MOST_MS = 400
_SHARE = 25
"""Periodic checks of a large source take 1/25 of the time."""

_GONE = -1


DocumentsBy = Callable[[ReadModel, Callable[[], None]], Documents]
"""Returns the `Documents` of the store for a read model. The second argument is called while a file takes
long; raising in it ends the reading."""


class _Watched:
    """A source, and its state when its documents were last up to date.

    state: a hash of the names, sizes and times of its files; None if its documents may be outdated.
    folders: the folders that contain its files. due: when to check it next, in `time.monotonic()` seconds.
    """

    def __init__(self, source: Registered) -> None:
        self.source = source
        self.root = Path(source.root)
        self.state: int | None = None
        self.folders = {self.root}
        self.due = 0.0

    def update_and_read_state(self, store: Path, readers: Readers) -> int:
        """Return the current state of the source, and update `folders` and `due`."""
        started = time.monotonic()
        self.folders = {self.root}
        state = _GONE
        with suppress(OSError), Root(self.root) as root:
            files = walk_source_folder(root, self.source, store, readers).files
            self.folders |= {(self.root / file).parent for file in files}
            state = sum(_hash_of_file_version(root, file) for file in files)
        now = time.monotonic()
        self.due = now + max(SWEEP_SECONDS, _SHARE * (now - started))
        return state


class Folders(Worker):
    """Adds changed files to the log."""

    lock_timeout = DEFAULTS.lock_timeout
    """Long, because the rows thread has precedence and may take many turns in a row."""

    def __init__(self, shared: Shared, read_model: ReadModel, documents_by: DocumentsBy) -> None:
        super().__init__(shared, read_model)
        self._documents = documents_by(self._read_model, self._end_if_stopped)
        self._store = read_model.path
        self._watched: dict[str, _Watched] = {}
        self._left_to_others: list[str] = []
        self._links: dict[str, list[str]] = {}

    def _work_until_stopped(self) -> None:
        stop = self._shared.stop
        hints = ChangeHints(is_deep=False, stop=stop, step_ms=_QUIET_MS, group_ms=_AT_MOST_MS)
        with closing(hints), closing(self._documents):
            while not stop.is_set():
                self._run_and_report(self._refresh_due_sources)
                folders = {folder for each in self._watched.values() for folder in each.folders}
                changed = hints.wait_for_changes(sorted(folders), self._seconds_to_wait())
                for each in self._watched.values():
                    root = str(each.root)
                    if any(path == root or path.startswith(f"{root}/") for path in changed):
                        each.due = 0.0

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next source is due, at most `SWEEP_SECONDS`: sources may be added."""
        next_due = min((each.due for each in self._watched.values()), default=float("inf"))
        return max(0.0, min(SWEEP_SECONDS, next_due - time.monotonic()))

    def _refresh_due_sources(self) -> bool:
        if not self._shared.lock.is_locked_file_current():
            self._read_model.close()
            self._watched.clear()
        elif self._read_model.projector.why_live_generation_unusable() is None:
            self._watch_only(self._read_model.run_with_repair(self._own_sources_and_note_others))
            due = [each for each in self._watched.values() if each.due <= time.monotonic()]
            return sum(self._refresh_source(each) for each in due) > 0
        return False

    def _own_sources_and_note_others(self) -> list[Registered]:
        """Return the sources that this copy of the store refreshes.

        Queues a note, once, for every source that another copy refreshes.
        """
        registered = queries.list_registered_sources(self._read_model.projector.connect_to_live())
        others = [each for each in registered if self._documents.is_of_another_copy(each)]
        notes = [why_not_refreshed(each.source_id, each.writer) for each in others]
        for note in notes:
            if note not in self._left_to_others:
                self._queue_note(note)
        self._left_to_others = notes
        return [each for each in registered if each not in others]

    def _notes_on_new_links(self, reports: Iterable[IndexingReport]) -> list[str]:
        """Return notes about skipped links that the previous report on the same source did not mention."""
        before, now = self._links, {each.source_id: notes_on_links(each) for each in reports}
        self._links = before | now
        return [note for name, notes in now.items() for note in notes if note not in before.get(name, ())]

    def _watch_only(self, registered: list[Registered]) -> None:
        """Watch exactly the sources in `registered`, keeping the state of those that have not changed."""
        before = self._watched
        self._watched = {
            source.source_id: before[source.source_id]
            if source.source_id in before and before[source.source_id].source == source
            else _Watched(source)
            for source in registered
        }

    def _refresh_source(self, watched: _Watched) -> bool:
        """Update the documents of a source if its files have changed, and return whether they have."""
        started = time.perf_counter()
        # Taken before reading: a later change gives another state.
        state = watched.update_and_read_state(self._store, self._documents.readers)
        if state == watched.state:
            return False
        # Otherwise this thread would project instead of the rows thread, and delay it.
        while not self._shared.caught_up.wait(_TICK):
            self._end_if_stopped()
        reports = self._documents.refresh(watched.source.source_id, progress=self._show_progress)
        notes = notes_on_problems(reports)
        self._notes += [*notes, *self._notes_on_new_links(reports)]
        # Retry what could not be read, except a missing folder: `update_and_read_state` notices its return.
        watched.state = None if notes and state != _GONE else state
        step = WatchStep(
            indexed=sum(each.indexed for each in reports), removed=sum(each.removed for each in reports)
        )
        if step.indexed or step.removed:
            self._tell_of_work(step, started)
        return True


def notes_on_links(report: IndexingReport) -> list[str]:
    """Return a note for each link that was skipped in a source, with the reason."""
    told = (each for each in report.skipped if each.reason == "link" and each.detail is not None)
    return [f"{report.source_id}/{each.file}: {each.detail}" for each in told]


def notes_on_problems(reports: Iterable[IndexingReport]) -> list[str]:
    """Return the reason for each source that could not be refreshed."""
    return [each.problem for each in reports if each.problem is not None]


def _hash_of_file_version(root: Root, file: str) -> int:
    """Return a number that changes whenever the file changes; 0 if it does not exist."""
    try:
        return hash((file, file_version(root.read_status_of_file(file))))
    except OSError:
        return 0


_JOBS_TICK = 15.0
"""Seconds between two checks: no job is urgent."""

_UNTIL_THERE = 0.5
"""Seconds until the next check while there is no read model."""

RunnerBy = Callable[[ReadModel, Callable[[], None], Callable[[str], None]], JobRunner]
"""Returns the job runner for a read model, a heartbeat that may end a run, and a function to notify of each
request to a language model."""


class DueJobs(Worker):
    """Runs the jobs that are due."""

    def __init__(self, shared: Shared, read_model: ReadModel, runner_by: RunnerBy) -> None:
        super().__init__(shared, read_model)
        self._runner = runner_by(self._read_model, self._end_if_stopped, self._queue_note)

    def _work_until_stopped(self) -> None:
        pause = 0.0
        while not self._shared.stop.wait(pause):
            is_there = (
                self._shared.lock.is_locked_file_current()
                and self._read_model.projector.generations.find_live_file()
            )
            if is_there:
                self._run_and_report(self._run_jobs_if_due)
            pause = _JOBS_TICK if is_there else _UNTIL_THERE

    def _run_jobs_if_due(self) -> bool:
        if not self._runner.may_be_due(self._read_model.projector.connect_to_live()):
            return False
        done = False
        try:
            for report in self._runner.run_due_jobs():
                done = True
                if report.period is not None:
                    self._notes.append(f"ran the {report.job} job of {report.period}")
                self._end_if_stopped()
        except Busy:  # another process runs jobs
            return done
        return done


Tell = Callable[[WatchStep], None]
_PATIENCE = 0.3
"""Seconds for the threads to end, so that the watch ends within one second; a busy thread is abandoned."""

_CALLS_TICK = 1.0


def watch_store(
    read_model: ReadModel,
    documents_by: DocumentsBy,
    runner_by: RunnerBy,
    *,
    stop: threading.Event,
    tell: Tell,
    progress: Progress | None,
) -> None:
    """Watch until `stop` is set; see `Maintenance.watch`."""
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
            _run_calls(shared, len(threads))
        except BaseException:
            stop.set()
            deadline = time.monotonic() + _PATIENCE
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            raise
        stop.set()


def run_single_watch_pass(
    read_model: ReadModel, documents: Documents, *, tell: Tell, progress: Progress | None
) -> None:
    """Run a single pass of a watch, then return; see the argument `once` of `Maintenance.watch`."""
    read_model.make_store()
    started = time.perf_counter()
    with closing(WatchLock(read_model.path)):
        # First, as documents are compared with the rows.
        rows = project_log(read_model, progress, embed=False)
        _notify_all(read_model, rows.notes)
        reports = documents.refresh(progress=progress)
        _notify_all(
            read_model,
            [*notes_on_problems(reports), *(note for each in reports for note in notes_on_links(each))],
        )
        done = project_log(read_model, progress)
    _notify_all(read_model, [*done.notes, *(f"no vectors: {why}" for why in done.silent.values())])
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


def _notify_all(read_model: ReadModel, notes: list[str]) -> None:
    for note in notes:
        read_model.notify(note)


def _run_calls(shared: Shared, running: int) -> None:
    """Make queued calls until all threads end, a call raises, or `_PATIENCE` seconds pass after a stop."""
    deadline = math.inf
    while running and time.monotonic() < deadline:
        if shared.stop.is_set():
            shared.rows_came.set()  # a thread may wait for it
            deadline = min(deadline, time.monotonic() + _PATIENCE)
        with suppress(Empty):
            call = shared.calls.get(timeout=_CALLS_TICK)
            if call is None:
                running -= 1
            else:
                call()
