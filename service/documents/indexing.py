"""Brings a source's documents up to date, and records the outcome for each file."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.events import DocumentIndexed, DocumentRemoved, Event
from memlog.eventlog.files import disk, file_io, locks
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.log.layout import SOURCE_RECORDS
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.log.writer import split_into_batches
from memlog.eventlog.positions import Position
from memlog.eventlog.secrets.detection import mask_keys
from memlog.projector.catchup import Progress
from memlog.query.documents import Source
from memlog.service.documents import text_files
from memlog.service.documents.scan import SkippedFile, walk_source_folder
from memlog.service.documents.sources import USER_FILE, FileWarning, IndexingReport, SourcePlan
from memlog.service.documents.text_files import GONE, Look, Reason, Root, TextFile, Unfit, filetype_of_suffix
from memlog.service.engine.sandbox import Readers
from memlog.service.memory.core import CoreImportReport

# The records are three files per source in cache/documents, and disposable: without them, every file is read
# again, but none is appended again.

_KILLED = "the process that read it was killed"

Record = TypeVar("Record")
JobState = Literal["indexing", "done", "error"]
SourceState = Literal["idle", "indexing", "error"]


class IndexingJob(msgspec.Struct, kw_only=True):
    """The last indexing of a source.

    state: `indexing` while a process reads the source. started, ended: RFC 3339; `ended` is None until then.
    done, total: numbers of files. failures: how many could not be read. error: what aborted it, if anything.
    """

    source_id: str
    state: JobState = "indexing"
    started: str = msgspec.field(default_factory=timestamps.now)
    ended: str | None = None
    done: int = 0
    total: int = 0
    failures: int = 0
    error: str | None = None


class SourceStatus(msgspec.Struct, kw_only=True):
    """A source and its state.

    state: `indexing` while a process reads it; `error` if its folder is unreadable, or the last indexing was
        aborted.
    files, chunks, bytes: how many documents and passages it has, and the total size of its files.
    last_indexed: when the newest document was indexed, RFC 3339; None if there are no documents.
    last_error: the current error, or the error of the last indexing; None if there is no error.
    """

    source_id: str
    state: SourceState
    files: int
    chunks: int
    bytes: int
    last_indexed: str | None
    last_error: str | None


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A file as last read. version: the SHA-256 of its bytes. reason: why it was rejected, if it was."""

    look: Look
    version: str | None
    reason: Reason | None
    detail: str | None = None


class Sightings(msgspec.Struct, array_like=True):
    """A source's files as they were last read.

    root: device and inode of the source's folder; None if the source was never read.
    files: keyed by path below the folder.
    seconds: the time limit per file; with a longer limit, more files may be readable.
    """

    root: tuple[int, int] | None = None
    files: dict[str, Seen] = {}
    seconds: int = 0


_SUFFIXES: dict[type, str] = {IndexingJob: "job", Sightings: "seen"}


class SourceRecords:
    """The cached records of one source's last indexing."""

    def __init__(self, store: Path, source_id: str) -> None:
        self._source_id = source_id
        self._folder = store / SOURCE_RECORDS
        self._stem = sha256(source_id.encode(errors="surrogatepass")).hexdigest()[:32]

    @contextmanager
    def holding_source_lock(self, timeout: float) -> Iterator[None]:
        """Hold the source's lock in this context, so that no file is appended twice.

        Raises:
            Busy: another process holds the lock for longer than `timeout` seconds.
            OSError: the lock file cannot be created.
        """
        make_folder_and_parents(self._folder)
        with locks.holding_lock(
            self._path_of_record("lock"), f"the reading of the source {self._source_id!r}", timeout
        ):
            yield

    def read_job(self) -> IndexingJob | None:
        """Return the last indexing; None if there is no record of it."""
        job = self._read_record(IndexingJob)
        # The kernel releases the lock when a process ends for any reason.
        if (
            job is not None
            and job.state == "indexing"
            and not locks.is_lock_held(self._path_of_record("lock"))
        ):
            return msgspec.structs.replace(job, state="error", error=_KILLED)
        return job

    def read_sightings(self) -> Sightings:
        """Return the files as they were last read; no files if the source was never read."""
        return self._read_record(Sightings) or Sightings()

    def write_record(self, record: IndexingJob | Sightings) -> None:
        """Store the record of the last indexing, or the record of the files."""
        # Without the record, on a full disk or after the cache was removed, files are only read again.
        with suppress(OSError):
            file_io.replace_file(
                self._path_of_record(_SUFFIXES[type(record)]), msgspec.msgpack.encode(record)
            )

    def _path_of_record(self, suffix: str) -> Path:
        return self._folder / f"{self._stem}.{suffix}"

    def _read_record(self, kind: type[Record]) -> Record | None:
        try:
            data = file_io.read_file(self._path_of_record(_SUFFIXES[kind]))
            return None if data is None else msgspec.msgpack.decode(data, type=kind)
        except (OSError, msgspec.DecodeError):
            # A record that is damaged, or of another version of memlog, counts as missing.
            return None


def to_source_status(source: Source, job: IndexingJob | None) -> SourceStatus:
    """Return a source's status. job: its last indexing, if known."""
    is_read_now = job is not None and job.state == "indexing"
    error = None if is_read_now else _why_unreachable(source.root) or (job and job.error)
    failures = f"{job.failures} files could not be read" if job is not None and job.failures else None
    return SourceStatus(
        source_id=source.source_id,
        state="indexing" if is_read_now else "error" if error else "idle",
        files=source.documents,
        chunks=source.passages,
        bytes=source.bytes,
        last_indexed=source.indexed_at,
        last_error=error or failures,
    )


def _why_unreachable(root: str | None) -> str | None:
    if root is None:
        return None
    try:
        os.scandir(root).close()
    except OSError as error:
        return describe_indexing_error(error)
    return None


def describe_indexing_error(error: BaseException) -> str:
    """Describe, in one line, an error that aborted an indexing."""
    match error:
        case MemlogError():
            return error.message
        case OSError():
            return f"{escape_invalid_utf8(error.filename or 'input or output')}: {error.strerror or error}"
        case KeyboardInterrupt():
            return "interrupted"
    return f"{type(error).__name__}: {error}"


def remove_all_records(store: Path) -> None:
    """Remove the records of every source, which contain file names and errors.

    Raises:
        OSError: a record cannot be removed.
    """
    with suppress(FileNotFoundError):
        with disk.scan_folder(store / SOURCE_RECORDS) as entries:
            paths = [Path(entry.path) for entry in entries if not entry.name.endswith(".lock")]
        for path in paths:
            disk.unlink(path)


_FAILURES: tuple[Reason, ...] = ("unreadable", "changing")
"""Reasons that may be temporary."""

_UNREAD: tuple[Reason, ...] = (*_FAILURES, "no_reader", "limit")
"""Reasons that do not depend on the file's content, so that its document stays."""

_ENVELOPE_BYTES = 1024
"""An upper bound for the bytes that id, times, version and crc add to an event."""

_BATCH_BYTES = 1024 * 1024
_BATCH_EVENTS = 256

_READING = "files read"
_BETWEEN_RECORDS = 0.5

TakeOver = Callable[[str, str], CoreImportReport]
Append = Callable[[Iterable[Event | dict[str, Any] | bytes]], list[Position]]


class IndexingTools(NamedTuple):
    """The tools for indexing, shared by all sources of a store.

    store: the store's folder, which is never indexed. append: appends events.
    take_over: imports a named text into the core memory.
    readers: read HTML, PDF and the rules of `.gitignore`. redact: skip files whose names look like keys.
    """

    store: Path
    append: Append
    take_over: TakeOver
    readers: Readers
    redact: bool


class Indexing:
    """A run that indexes a source whose lock the process holds. Only one file at a time is in memory."""

    def __init__(self, plan: SourcePlan, tools: IndexingTools, progress: Progress | None) -> None:
        self._plan = plan
        self._tools = tools
        self._show = progress
        self._source_id = plan.registration.source_id
        self._records = SourceRecords(tools.store, self._source_id)
        self._report = plan.create_empty_report()
        self._before = self._records.read_sightings()
        self._seen: dict[str, Seen] = {}
        # No event can name a document whose name looks like a key, so it stays.
        self._gone = {file for file in plan.versions if not self._is_name_secret(file)}
        self._job = IndexingJob(source_id=self._source_id)
        self._recorded = 0.0

    def run(self, *, is_by_name: bool) -> IndexingReport:
        """Bring the documents up to date with the files, and return a report.

        is_by_name: whether a user named the folder, so that an empty folder in its place is accepted.

        Raises:
            OSError: the folder is gone, cannot be listed, or was replaced by an empty one.
            Busy, LogError: as `Store.append`. Earlier appends stay.
        """
        self._records.write_record(self._job)
        try:
            with Root(self._plan.root) as root:
                self._read_all_files(root, is_by_name=is_by_name)
        except BaseException as error:
            self._record_end_of_job("error", describe_indexing_error(error))
            raise
        self._record_end_of_job("done", None)
        return self._report

    def _read_all_files(self, root: Root, *, is_by_name: bool) -> None:
        plan, tools, report = self._plan, self._tools, self._report
        found = walk_source_folder(root, plan.registration, tools.store, tools.readers)
        is_empty = not (found.files or found.skipped)
        is_another = self._before.root not in (None, root.identity)  # as after an unmount
        if not is_by_name and plan.versions and is_empty and is_another:
            raise OSError(errno.ESTALE, "it was replaced by an empty folder", str(plan.root))
        if plan.is_new:
            tools.append([plan.registration])
        has_user = plan.is_workspace and USER_FILE in found.files
        if has_user:
            found.files.remove(USER_FILE)
        if plan.registration.kind == "memory":
            # Unlike skipped code, notes behind a link may have been indexed before, or are missed.
            detail = "it is a link, which is not followed: searches do not find its notes"
            found.skipped = [
                msgspec.structs.replace(each, detail=detail) if each.reason == "link" else each
                for each in found.skipped
            ]
        report.skipped = found.skipped
        report.found = len(found.files) + len(found.skipped)
        try:
            # The events of a batch share one fsync, and fit easily into memory.
            for batch in split_into_batches(
                self._encode_events_of_changed_files(root, found.files), len, _BATCH_BYTES, _BATCH_EVENTS
            ):
                report.indexed += len(self._append_batch(batch))
            # If the root was replaced meanwhile, a missing file may not have been removed.
            root.check_not_replaced()
        finally:
            self._job.failures = sum(each.reason in _FAILURES for each in report.skipped)
            now = Sightings(root.identity, self._seen, tools.readers.seconds)
            if now != self._before:
                self._records.write_record(now)
        report.removed = len(tools.append(self._removal_events()))
        if has_user:
            self._import_user_file(root)

    def _append_batch(self, batch: list[bytes]) -> list[Position]:
        positions = self._tools.append(batch)
        for line, position in zip(batch, positions, strict=True):
            if position.warnings:
                file = str(msgspec.json.decode(line)["file"])
                self._report.warnings += [FileWarning(file, each.message) for each in position.warnings]
        return positions

    def _encode_events_of_changed_files(self, root: Root, files: list[str]) -> Iterator[bytes]:
        for number, file in enumerate(files, start=1):
            try:
                if (line := self._encode_event_if_changed(root, file)) is not None:
                    yield line
            finally:
                self._record_progress(number, len(files))

    def _encode_event_if_changed(self, root: Root, file: str) -> bytes | None:
        """Return the event for a file; None if its document is up to date, or the file is not a document."""
        moment = time.time_ns()
        try:
            line = (
                None
                if self._is_document_up_to_date(root, file)
                else self._read_event_of_file(root, file, moment)
            )
        except GONE:
            self._report.found -= 1
            return None
        except Unfit as unfit:
            self._report_skipped_file(file, unfit)
            if unfit.look is not None and unfit.look.is_settled(moment):
                self._seen[file] = Seen(unfit.look, None, unfit.reason, unfit.detail)
            return None
        self._gone.discard(file)
        self._report.unchanged += line is None
        return line

    def _is_name_secret(self, file: str) -> bool:
        """Whether a file is skipped because its name contains a key and keys are masked."""
        return self._tools.redact and mask_keys(file) != file

    def _is_document_up_to_date(self, root: Root, file: str) -> bool:
        """Whether a file is unchanged since its document was indexed.

        Raises:
            Unfit: the file's name looks like a key, or the file is unchanged since it was rejected.
        """
        if self._is_name_secret(file):
            raise Unfit("secret", "its name looks like a key: rename it")
        seen = self._before.files.get(file)
        if seen is None or seen.look != text_files.read_file_look(root, file):
            return False
        if seen.reason == "limit" and self._before.seconds != self._tools.readers.seconds:
            return False
        if seen.reason is not None:
            raise Unfit(seen.reason, seen.detail, seen.look)
        if seen.version != self._plan.versions.get(file):
            return False
        self._seen[file] = seen
        return True

    def _read_event_of_file(self, root: Root, file: str, moment: int) -> bytes | None:
        """Return the event for a file; None if the log already has its content."""
        text = text_files.read_text_file(root, file, self._tools.readers)
        if text.warning:
            self._report.warnings.append(FileWarning(file, text.warning))
        is_known = text.version == self._plan.versions.get(file)
        line = None if is_known else _encode_event(self._source_id, file, text)
        if text.look.is_settled(moment):
            self._seen[file] = Seen(text.look, text.version, None)
        return line

    def _removal_events(self) -> list[DocumentRemoved]:
        """Return events that remove the documents of missing files, except below unread folders."""
        unread = [each.file for each in self._report.skipped if each.reason in _UNREAD]
        return [
            DocumentRemoved(source_id=self._source_id, file=file)
            for file in sorted(self._gone)
            if not any(file == path or file.startswith(f"{path}/") for path in unread)
        ]

    def _import_user_file(self, root: Root) -> None:
        try:
            text = text_files.read_text_file(root, USER_FILE, self._tools.readers)
        except GONE:
            return
        except Unfit as unfit:
            self._report.found += 1
            self._report_skipped_file(USER_FILE, unfit)
            return
        self._report.user = self._tools.take_over(text.content, f"{self._source_id}/{USER_FILE}")

    def _report_skipped_file(self, file: str, unfit: Unfit) -> None:
        name = mask_keys(file) if self._tools.redact else file
        self._report.skipped.append(SkippedFile(name, unfit.reason, unfit.detail))

    def _record_progress(self, done: int, total: int) -> None:
        """Report how many files have been read, and periodically save the job's record."""
        self._job.done, self._job.total = done, total
        now = time.monotonic()
        if now - self._recorded >= _BETWEEN_RECORDS and done < total:
            self._recorded = now
            self._records.write_record(self._job)
        if self._show is not None:
            self._show(_READING, done, total)

    def _record_end_of_job(self, state: JobState, error: str | None) -> None:
        self._job.state, self._job.error, self._job.ended = state, error, timestamps.now()
        self._records.write_record(self._job)


def _encode_event(source_id: str, file: str, text: TextFile) -> bytes:
    """Return a document's encoded event.

    Raises:
        Unfit: the event is too large.
    """
    event = DocumentIndexed(
        source_id=source_id,
        file=file,
        filetype=filetype_of_suffix(file),
        mtime=text.look.modified,
        size=text.look.size,
        version=text.version,
        content=text.content,
    )
    line = msgspec.json.encode(event)
    if len(line) > MAX_LINE - _ENVELOPE_BYTES:
        raise Unfit("too_large", look=text.look)
    return line
