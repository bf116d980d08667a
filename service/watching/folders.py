"""The thread of a watch that keeps documents up to the files of their sources.

The file system's events are hints here too: a source is read again if the names, sizes or times of its files
have changed, which a look finds without opening any. It is looked at after an event in one of its folders,
and from time to time without.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from memlog.eventlog.file_io import file_version
from memlog.eventlog.folder_events import ChangeHints
from memlog.eventlog.limits import LOCK_TIMEOUT
from memlog.eventlog.tail import SWEEP_SECONDS
from memlog.query import documents as queries
from memlog.query.documents import Registered
from memlog.service.documents.facade import Documents
from memlog.service.documents.folder import walk
from memlog.service.documents.readers import Readers
from memlog.service.documents.root import Root
from memlog.service.documents.sources import IndexingReport, left_to_another_copy
from memlog.service.read_model import ReadModel
from memlog.service.watching.worker import Shared, WatchStep, Worker

# An editor writes a file in several steps: it is read when the folder has been quiet for a moment.
_QUIET_MS = 100
_AT_MOST_MS = 400
_SHARE = 25
"""Looking at a large source without an event takes 1/25 of the time."""

_TICK = 0.25
_GONE = -1


DocumentsBy = Callable[[ReadModel, Callable[[], None]], Documents]
"""Makes the documents of the store, as another read model of it sees them. The other argument is called while
a file takes long; an exception of it ends the reading."""


class _Watched:
    """A source, and its state when its documents were brought up to its files.

    state: a hash of its files' names, sizes and times; None where its documents may be behind them.
    folders: those of its files. due: when to look at it next.
    """

    def __init__(self, source: Registered) -> None:
        self.source = source
        self.root = Path(source.root)
        self.state: int | None = None
        self.folders = {self.root}
        self.due = 0.0

    def look(self, store: Path, readers: Readers) -> int:
        """Its present state."""
        started = time.monotonic()
        self.folders = {self.root}
        state = _GONE
        with suppress(OSError), Root(self.root) as root:
            files = walk(root, self.source, store, readers).files
            self.folders |= {(self.root / file).parent for file in files}
            state = sum(_hash_of(root, file) for file in files)
        now = time.monotonic()
        self.due = now + max(SWEEP_SECONDS, _SHARE * (now - started))
        return state


class Folders(Worker):
    """Reads files into the log as they change.

    documents_by: makes the documents of the store, as a read model sees them.
    """

    lock_timeout = LOCK_TIMEOUT.default
    """The rows thread has precedence, and takes turn after turn."""

    def __init__(self, shared: Shared, read_model: ReadModel, documents_by: DocumentsBy) -> None:
        super().__init__(shared, read_model)
        self._documents = documents_by(self._read_model, self._go_on)
        self._store = read_model.path
        self._watched: dict[str, _Watched] = {}
        self._left_to_others: list[str] = []
        self._links: dict[str, list[str]] = {}

    def _work(self) -> None:
        stop = self._shared.stop
        hints = ChangeHints(is_deep=False, stop=stop, step_ms=_QUIET_MS, group_ms=_AT_MOST_MS)
        with closing(hints), closing(self._documents):
            while not stop.is_set():
                self._try(self._look)
                folders = {folder for each in self._watched.values() for folder in each.folders}
                self._hear(hints.wait(sorted(folders), self._pause()))

    def _pause(self) -> float:
        """Seconds until the next source is due, or may have been registered."""
        next_due = min((each.due for each in self._watched.values()), default=float("inf"))
        return max(0.0, min(SWEEP_SECONDS, next_due - time.monotonic()))

    def _hear(self, changed: Iterable[str]) -> None:
        for each in self._watched.values():
            root = str(each.root)
            if any(path == root or path.startswith(f"{root}/") for path in changed):
                each.due = 0.0

    def _look(self) -> bool:
        if not self._shared.lock.holds():
            self._read_model.close()
            self._watched.clear()
        elif self._read_model.projector.why_unusable() is None:
            self._take(self._read_model.healed(self._refreshed_here))
            due = [each for each in self._watched.values() if each.due <= time.monotonic()]
            return sum(self._bring_up(each) for each in due) > 0
        return False

    def _refreshed_here(self) -> list[Registered]:
        """The sources that this copy of the store refreshes; other sources are reported once."""
        registered = queries.registered(self._read_model.projector.live())
        others = [each for each in registered if self._documents.is_of_another_copy(each)]
        notes = [left_to_another_copy(each.source_id, each.writer) for each in others]
        for note in notes:
            if note not in self._left_to_others:
                self._notify(note)
        self._left_to_others = notes
        return [each for each in registered if each not in others]

    def _new_links(self, reports: Iterable[IndexingReport]) -> list[str]:
        """What is told of links that were none when their source was read last."""
        before, now = self._links, {each.source_id: links_of(each) for each in reports}
        self._links = before | now
        return [note for name, notes in now.items() for note in notes if note not in before.get(name, ())]

    def _take(self, registered: list[Registered]) -> None:
        """Watch these from now on, and no others."""
        before = self._watched
        self._watched = {
            source.source_id: before[source.source_id]
            if source.source_id in before and before[source.source_id].source == source
            else _Watched(source)
            for source in registered
        }

    def _bring_up(self, watched: _Watched) -> bool:
        """Bring the documents of a source up to its files, and return whether these have changed."""
        started = time.perf_counter()
        # Looked at before they are read: what changes meanwhile is another state.
        state = watched.look(self._store, self._documents.readers)
        if state == watched.state:
            return False
        # Otherwise this thread would project in place of the rows thread, and hold that up.
        while not self._shared.caught_up.wait(_TICK):
            self._go_on()
        reports = self._documents.refresh(watched.source.source_id, progress=self._progress)
        notes = problems_of(reports)
        self._notes += [*notes, *self._new_links(reports)]
        # What could not be read is tried again, except a missing folder: `look` sees when it is back.
        watched.state = None if notes and state != _GONE else state
        step = WatchStep(
            indexed=sum(each.indexed for each in reports), removed=sum(each.removed for each in reports)
        )
        if step.indexed or step.removed:
            self._tell(step, started)
        return True


def links_of(report: IndexingReport) -> list[str]:
    """What is told of the links in a folder of notes."""
    told = (each for each in report.skipped if each.reason == "link" and each.detail is not None)
    return [f"{report.source_id}/{each.file}: {each.detail}" for each in told]


def problems_of(reports: Iterable[IndexingReport]) -> list[str]:
    """Why sources were not refreshed, for people."""
    return [each.problem for each in reports if each.problem is not None]


def _hash_of(root: Root, file: str) -> int:
    """A number that changes when a file does; the same for all that are gone."""
    try:
        return hash((file, file_version(root.status(file))))
    except OSError:
        return 0
