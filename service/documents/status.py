"""The state of each source: progress, documents and errors."""

import os
from typing import Literal

import msgspec

from memlog.query.documents import Source
from memlog.service.documents.indexing import described
from memlog.service.documents.records import IndexingJob

SourceState = Literal["idle", "indexing", "error"]


class SourceStatus(msgspec.Struct, kw_only=True):
    """A source, and how the reading of it goes.

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


def status_of(source: Source, job: IndexingJob | None) -> SourceStatus:
    """The status of a source, of whose last reading `job` tells."""
    is_read_now = job is not None and job.state == "indexing"
    error = None if is_read_now else _why_unreachable(source.root) or (job and job.error)
    return SourceStatus(
        source_id=source.source_id,
        state="indexing" if is_read_now else "error" if error else "idle",
        files=source.documents,
        chunks=source.passages,
        bytes=source.bytes,
        last_indexed=source.indexed_at,
        last_error=error or _failures(job),
    )


def _why_unreachable(root: str | None) -> str | None:
    if root is None:
        return None
    try:
        os.scandir(root).close()
    except OSError as error:
        return described(error)
    return None


def _failures(job: IndexingJob | None) -> str | None:
    return f"{job.failures} files could not be read" if job is not None and job.failures else None
