"""The records of the reading of each source: who reads it now, its progress, and what each file looked like.

They are three files a source in cache/documents, and disposable: without them every file is read again,
and none is appended that the log has.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from memlog.eventlog import disk, locks, timestamps
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.folders import make_path
from memlog.eventlog.hashing import sha256
from memlog.eventlog.layout import SOURCE_RECORDS
from memlog.eventlog.streams import shown
from memlog.projector import atomic_file
from memlog.query.documents import Source
from memlog.service.documents.text_files import Look, Reason

_KILLED = "the process that read it was killed"

Record = TypeVar("Record")
JobState = Literal["indexing", "done", "error"]
SourceState = Literal["idle", "indexing", "error"]


class IndexingJob(msgspec.Struct, kw_only=True):
    """The last reading of a source.

    state: `indexing` while a process is at it. started, ended: RFC 3339; `ended` is None until it has.
    done, total: files. failures: files that could not be read. error: what stopped it, if anything did.
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
    """A source, and the state of its reading.

    state: `indexing` while a process reads it; `error` where its folder cannot be read now, or the last
        reading was stopped.
    files, chunks, bytes: documents, their passages, and the bytes of their files.
    last_indexed: when the newest was indexed, RFC 3339; None without documents.
    last_error: what is wrong, or was in the last reading; None where nothing is known.
    """

    source_id: str
    state: SourceState
    files: int
    chunks: int
    bytes: int
    last_indexed: str | None
    last_error: str | None


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read: sha256 of its bytes, in hex; or why it is no document."""

    look: Look
    version: str | None
    reason: Reason | None
    detail: str | None = None


class Sightings(msgspec.Struct, array_like=True):
    """What the files of a source were when they were last read.

    root: device and inode of the source's folder; None where it was never read.
    files: by their paths below it. seconds: that a file could take; with more, another one may be read.
    """

    root: tuple[int, int] | None = None
    files: dict[str, Seen] = {}
    seconds: int = 0


_SUFFIXES: dict[type, str] = {IndexingJob: "job", Sightings: "seen"}


class SourceRecords:
    """The records of one source of the store at `store`."""

    def __init__(self, store: Path, source_id: str) -> None:
        self._source_id = source_id
        self._folder = store / SOURCE_RECORDS
        self._stem = sha256(source_id.encode(errors="surrogatepass")).hexdigest()[:32]

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Be the only one who reads the source, so that no file is appended twice.

        Raises:
            Busy: another process reads it for longer than `timeout` seconds.
            OSError: the lock cannot be made.
        """
        make_path(self._folder)
        with locks.locked(self._path("lock"), f"the reading of the source {self._source_id!r}", timeout):
            yield

    def job(self) -> IndexingJob | None:
        """The last reading; None where none is known."""
        job = self._read(IndexingJob)
        # The kernel frees the lock of a process that ends, however it does.
        if job is not None and job.state == "indexing" and not locks.is_held(self._path("lock")):
            return msgspec.structs.replace(job, state="error", error=_KILLED)
        return job

    def sightings(self) -> Sightings:
        """What the files were when they were last read; nothing where that is not known."""
        return self._read(Sightings) or Sightings()

    def keep(self, record: IndexingJob | Sightings) -> None:
        """Replace the record of the last reading, or of the files."""
        # A full disk, or a cache that was just removed, costs only time.
        with suppress(OSError):
            atomic_file.replace(self._path(_SUFFIXES[type(record)]), msgspec.msgpack.encode(record))

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self._stem}.{suffix}"

    def _read(self, kind: type[Record]) -> Record | None:
        try:
            data = atomic_file.read(self._path(_SUFFIXES[kind]))
            return None if data is None else msgspec.msgpack.decode(data, type=kind)
        except (OSError, msgspec.DecodeError):
            # Another version of memlog wrote it, or it is damaged: it is worth no error.
            return None


def status_of(source: Source, job: IndexingJob | None) -> SourceStatus:
    """The status of a source, from the record of its last reading."""
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
        return described(error)
    return None


def described(error: BaseException) -> str:
    """What stopped work, in a line."""
    match error:
        case MemlogError():
            return error.message
        case OSError():
            return f"{shown(error.filename or 'input or output')}: {error.strerror or error}"
        case KeyboardInterrupt():
            return "interrupted"
    return f"{type(error).__name__}: {error}"


def forget_all(store: Path) -> None:
    """Remove the records of every source, which hold names of files and errors.

    Raises:
        OSError: one cannot be removed.
    """
    with suppress(FileNotFoundError):
        with disk.entries(store / SOURCE_RECORDS) as entries:
            paths = [Path(entry.path) for entry in entries if not entry.name.endswith(".lock")]
        for path in paths:
            disk.unlink(path)
