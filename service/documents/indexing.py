"""Brings the documents of a source up to date: appends new and changed files, removes deleted ones."""

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memlog.eventlog import timestamps
from memlog.eventlog.events import Event
from memlog.eventlog.writer import Position
from memlog.projector.catchup import Progress
from memlog.service.core.facade import CoreImportReport
from memlog.service.documents import text_files
from memlog.service.documents.folder import Patterns, SkippedFile, Walk, walk
from memlog.service.documents.readers import Readers
from memlog.service.documents.records import IndexingJob, JobState, Sightings, SourceRecords, described
from memlog.service.documents.root import Root
from memlog.service.documents.source_files import FAILURES, Files
from memlog.service.documents.sources import USER_FILE, IndexingReport, SourcePlan
from memlog.service.documents.text_files import GONE, Unfit

_BATCH_BYTES = 1024 * 1024
_BATCH_EVENTS = 256

_READING = "files read"
_BETWEEN_RECORDS = 0.5

TakeOver = Callable[[str, str], CoreImportReport]
Append = Callable[[Iterable[Event | dict[str, Any] | bytes]], list[Position]]


class IndexingTools(NamedTuple):
    """What indexing needs, for every source of a store.

    store: its folder, which is never indexed. append: appends events.
    take_over: imports a text into the core memory, given the text and its name.
    readers: read HTML, PDF and the rules of `.gitignore`. redact: skip files whose names look like keys.
    """

    store: Path
    append: Append
    take_over: TakeOver
    readers: Readers
    redact: bool


class Indexing:
    """One reading of a source, by the process that holds its records."""

    def __init__(
        self, plan: SourcePlan, records: SourceRecords, tools: IndexingTools, progress: Progress | None
    ) -> None:
        self._plan = plan
        self._records = records
        self._tools = tools
        self._show = progress
        self._job = IndexingJob(source_id=plan.registration.source_id)
        self._recorded = 0.0

    def run(self, *, is_by_name: bool) -> IndexingReport:
        """Bring the source up to its files.

        is_by_name: whether a user named the folder, and so means the present one.

        Raises:
            OSError: the folder is gone, cannot be listed, or was replaced by an empty one.
            Busy, LogError: as `Store.append`. What was appended stays.
        """
        self._records.keep_job(self._job)
        try:
            with Root(self._plan.root) as root:
                report = self._read_all(root, is_by_name=is_by_name)
        except BaseException as error:
            self._end("error", described(error))
            raise
        self._end("done", None)
        return report

    def _read_all(self, root: Root, *, is_by_name: bool) -> IndexingReport:
        plan, tools, before = self._plan, self._tools, self._records.sightings()
        patterns = Patterns.of(plan.registration)
        found = walk(root, patterns, tools.store, kind=plan.registration.kind, readers=tools.readers)
        if not is_by_name and plan.versions and _is_empty_instead(found, root, before):
            raise OSError(errno.ESTALE, "another folder, an empty one, is there now", str(plan.root))
        if plan.is_new:
            tools.append([plan.registration])
        has_user = plan.is_workspace and USER_FILE in found.files
        if has_user:
            found.files.remove(USER_FILE)
        files = Files(plan, root, found, before, readers=tools.readers, redact=tools.redact)
        report = files.report
        try:
            for batch in _batches(files.lines(self._note)):
                report.indexed += len(tools.append(batch))
            # If the root itself was replaced meanwhile, a missing file does not mean that it was removed.
            root.check_same()
        finally:
            self._job.failures = sum(each.reason in FAILURES for each in report.skipped)
            now = Sightings(root.identity, files.seen, tools.readers.seconds)
            if now != before:
                self._records.keep_sightings(now)
        report.removed = len(tools.append(files.removals()))
        if has_user:
            self._read_user(root, report)
        return report

    def _read_user(self, root: Root, report: IndexingReport) -> None:
        try:
            text = text_files.read(root, USER_FILE, self._tools.readers)
        except GONE:
            return
        except Unfit as unfit:
            report.found += 1
            report.skipped.append(SkippedFile(USER_FILE, unfit.reason, unfit.detail))
            return
        report.user = self._tools.take_over(text.content, f"{report.source_id}/{USER_FILE}")

    def _note(self, done: int, total: int) -> None:
        """Report how many files were read; now and then, record it."""
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


def _is_empty_instead(found: Walk, root: Root, before: Sightings) -> bool:
    """Whether an empty folder has replaced the one that was indexed, as after an unmount."""
    return not (found.files or found.skipped) and before.root not in (None, root.identity)


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
