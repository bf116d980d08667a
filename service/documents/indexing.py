"""Brings the documents of a source up to its files: appends what is new or changed, removes what is gone."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.damage import MAX_LINE
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.events import DocumentIndexed, DocumentRemoved, Event, SourceRegistered
from memlog.eventlog.log import Position
from memlog.eventlog.streams import shown
from memlog.projector.catchup import Progress
from memlog.service.core.core import Imported
from memlog.service.documents import text_files
from memlog.service.documents.folder import Patterns, Skipped, Walk, walk
from memlog.service.documents.records import JobState, Seen, Sightings, SourceRecords, new_job
from memlog.service.documents.text_files import Reason, TextFile, Unfit, filetype

_BATCH_BYTES = 1024 * 1024
_BATCH_EVENTS = 256
_ENVELOPE_BYTES = 1024
"""More than id, times, version and crc add to an event."""

_READING = "files read"
_BETWEEN_RECORDS = 0.5
_FAILURES: tuple[Reason, ...] = ("unreadable", "changing")
_UNREAD: tuple[Reason, ...] = (*_FAILURES, "no_reader")
"""What says nothing of what the file holds: a document that stood stays."""

USER_FILE = "USER.md"
"""Of a workspace it is no document: what it says goes to the core memory."""

TakeOver = Callable[[str, str], Imported]
Append = Callable[[Iterable[Event | dict[str, Any] | bytes]], list[Position]]


class Added(msgspec.Struct, kw_only=True):
    """What became of the files of a source.

    registered: whether the source is new, or says now something else than before.
    found: files, and folders that were left out: as many as were indexed, unchanged, and skipped.
    indexed, unchanged, removed: documents: those that were read into the log, those that stood there as they
        are, and those whose file is gone or no longer asked for.
    skipped: what was left out, and why. Where a file could not be read, the document of it stays.
    user: what USER.md of a workspace, which counts as no file, has set in the core memory; None where none
        was read.
    error: why the files could not be looked at; the documents stay then. None where they could.
    """

    source_id: str
    root: str
    registered: bool
    found: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[Skipped] = []
    user: Imported | None = None
    error: str | None = None


class Wanted(NamedTuple):
    """What a source is to be: how it is registered, and what is taken.

    is_new: whether the log says something else so far. versions: of the documents that stand, by file.
    """

    registration: SourceRegistered
    patterns: Patterns
    is_new: bool
    versions: dict[str, str]

    @property
    def is_workspace(self) -> bool:
        """Whether USER.md is asked for, to be taken over into the core memory."""
        return self.registration.kind == "memory" and USER_FILE in self.registration.include

    @property
    def root(self) -> Path:
        """The source's folder."""
        return Path(str(self.registration.root))

    def nothing_done(self, error: str | None = None) -> Added:
        """What became of the source where nothing was read yet."""
        return Added(
            source_id=self.registration.source_id,
            root=str(self.registration.root),
            registered=self.is_new,
            error=error,
        )


class Indexing:
    """One reading of a source, by the process that holds its records.

    append: puts events into the log. take_over: puts what a text says into the core memory, given the text
        and its name. store: a folder that is no document.
    """

    def __init__(
        self,
        wanted: Wanted,
        records: SourceRecords,
        *,
        append: Append,
        take_over: TakeOver,
        store: Path,
        progress: Progress | None,
    ) -> None:
        self._wanted = wanted
        self._records = records
        self._append = append
        self._take_over = take_over
        self._store = store
        self._show = progress
        self._job = new_job(wanted.registration.source_id)
        self._recorded = 0.0

    def run(self, *, is_by_name: bool) -> Added:
        """Bring the source up to its files.

        is_by_name: whether somebody has named the folder, and so means the one that stands there now.

        Raises:
            OSError: the folder is gone, cannot be listed, or another and empty one stands in its place.
            Busy, LogError: as `Store.append`. What was appended stays.
        """
        self._records.keep_job(self._job)
        try:
            added = self._brought_up(is_by_name=is_by_name)
        except BaseException as error:
            self._end("error", described(error))
            raise
        self._end("done", None)
        return added

    def _brought_up(self, *, is_by_name: bool) -> Added:
        wanted, before = self._wanted, self._records.sightings()
        root = _identity(wanted.root)
        found = walk(wanted.root, wanted.patterns, self._store, kind=wanted.registration.kind)
        if not is_by_name and wanted.versions and _is_empty_instead(found, root, before):
            raise OSError(errno.ESTALE, "another folder, an empty one, stands there now", str(wanted.root))
        if wanted.is_new:
            self._append([wanted.registration])
        has_user = wanted.is_workspace and USER_FILE in found.files
        if has_user:
            found.files.remove(USER_FILE)
        files = _Files(wanted, found, before)
        try:
            for batch in _batches(files.lines(self._note)):
                files.added.indexed += len(self._append(batch))
            # Where the root itself went meanwhile, no file of it can be said to be gone.
            os.scandir(wanted.root).close()
        finally:
            self._job.failures = sum(each.reason in _FAILURES for each in files.added.skipped)
            now = Sightings(root, files.seen)
            if now != before:
                self._records.keep_sightings(now)
        files.added.removed = len(self._append(files.removals()))
        if has_user:
            self._read_user(files.added)
        return files.added

    def _read_user(self, added: Added) -> None:
        try:
            text = text_files.read(f"{self._wanted.root}/{USER_FILE}")
        except (FileNotFoundError, NotADirectoryError):
            # It was removed since the folder was listed.
            return
        except Unfit as unfit:
            added.found += 1
            added.skipped.append(Skipped(USER_FILE, unfit.reason, unfit.detail))
            return
        added.user = self._take_over(text.content, f"{added.source_id}/{USER_FILE}")

    def _note(self, done: int, total: int) -> None:
        """Tell how many files were read; the record of it is written now and then."""
        self._job.done, self._job.total = done, total
        now = time.monotonic()
        if now - self._recorded >= _BETWEEN_RECORDS and done < total:
            self._recorded = now
            self._records.keep_job(self._job)
        if self._show is not None:
            self._show(_READING, done, total)

    def _end(self, state: JobState, error: str | None) -> None:
        self._job.state, self._job.error, self._job.ended = state, error, timestamps.now()
        self._records.keep_job(self._job)


class _Files:
    """The files of a source, as they are read one after the other, one in memory at a time.

    added: counts what becomes of them. seen: what to remember of them.
    """

    def __init__(self, wanted: Wanted, found: Walk, before: Sightings) -> None:
        self.added = wanted.nothing_done()
        self.added.skipped = found.skipped
        self.added.found = len(found.files) + len(found.skipped)
        self.seen: dict[str, Seen] = {}
        self._source_id = wanted.registration.source_id
        self._root = str(wanted.root)
        self._names = found.files
        self._before = before.files
        self._standing = wanted.versions
        self._gone = dict(wanted.versions)

    def lines(self, note: Callable[[int, int], None]) -> Iterator[bytes]:
        """The events of the files whose documents do not stand as they are."""
        for number, file in enumerate(self._names, start=1):
            try:
                if (line := self._line_of(file)) is not None:
                    yield line
            finally:
                note(number, len(self._names))

    def removals(self) -> list[DocumentRemoved]:
        """The events of the documents whose files are gone, as far as all was read where they may be."""
        unread = [each.file for each in self.added.skipped if each.reason in _UNREAD]
        return [
            DocumentRemoved(source_id=self._source_id, file=file)
            for file in sorted(self._gone)
            if not any(file == path or file.startswith(f"{path}/") for path in unread)
        ]

    def _line_of(self, file: str) -> bytes | None:
        """The event of a file; None where its document stands so, or it is none."""
        path, moment = f"{self._root}/{file}", time.time_ns()
        try:
            seen = self._as_seen(file, path) or self._read(file, path, moment)
        except (FileNotFoundError, NotADirectoryError):
            # It was removed since its folder was listed.
            self.added.found -= 1
            return None
        except Unfit as unfit:
            self._skip(file, unfit, moment)
            return None
        self._gone.pop(file, None)
        if isinstance(seen, bytes):
            return seen
        self.added.unchanged += 1
        return None

    def _as_seen(self, file: str, path: str) -> Seen | None:
        """What was seen of a file before, where it looks the same, and what was seen settles what it is."""
        seen = self._before.get(file)
        if seen is None or seen.look != text_files.look_at(path):
            return None
        if seen.reason is not None:
            raise Unfit(seen.reason, look=seen.look)
        if seen.version != self._standing.get(file):
            return None
        self.seen[file] = seen
        return seen

    def _read(self, file: str, path: str, moment: int) -> Seen | bytes:
        """What a file is, or the event of it where the log says otherwise."""
        text = text_files.read(path)
        line = None if text.version == self._standing.get(file) else _line(self._source_id, file, text)
        seen = Seen(text.look, text.version, None)
        if text.look.is_settled(moment):
            self.seen[file] = seen
        return seen if line is None else line

    def _skip(self, file: str, unfit: Unfit, moment: int) -> None:
        self.added.skipped.append(Skipped(file, unfit.reason, unfit.detail))
        if unfit.look is not None and unfit.look.is_settled(moment):
            self.seen[file] = Seen(unfit.look, None, unfit.reason)


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _is_empty_instead(found: Walk, root: tuple[int, int], before: Sightings) -> bool:
    """Whether an empty folder stands in the place of the one that was read: what was mounted is not."""
    return not (found.files or found.skipped) and before.root not in (None, root)


def described(error: BaseException) -> str:
    """What stopped a reading, in a line."""
    match error:
        case MemlogError():
            return error.message
        case OSError():
            return f"{shown(str(error.filename))}: {error.strerror}"
        case KeyboardInterrupt():
            return "interrupted"
    return f"{type(error).__name__}: {error}"


def _line(source_id: str, file: str, text: TextFile) -> bytes:
    """The event of a document, as JSON: an event that is encoded here can be measured.

    Raises:
        Unfit: it is longer than an event can be.
    """
    event = DocumentIndexed(
        source_id=source_id,
        file=file,
        filetype=filetype(file),
        mtime=text.mtime,
        size=text.size,
        version=text.version,
        content=text.content,
    )
    line = msgspec.json.encode(event)
    if len(line) > MAX_LINE - _ENVELOPE_BYTES:
        raise Unfit("too_large", look=text.look)
    return line


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """`lines` in groups that share a sync, and that memory holds easily."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _BATCH_BYTES or len(batch) == _BATCH_EVENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
