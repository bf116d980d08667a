"""Sources: how one is registered, and what became of its files."""

from glob import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.events import DocumentRemoved, Event, SourceRegistered
from memlog.query.documents import Registered
from memlog.service.documents.scan import SkippedFile
from memlog.service.memory.core import CoreImportReport

USER_FILE = "USER.md"
"""A file of a workspace that is no document: it is imported into the core memory."""


class FileWarning(msgspec.Struct, frozen=True):
    """What is odd about a file, by its path below the root, in a short line.

    A library printed it, a stranger's text; or the event of the file holds what looks like a key.
    """

    file: str
    text: str


class IndexingReport(msgspec.Struct, kw_only=True):
    """What became of the files of a source.

    registered: whether the source is new, or its registration changed.
    found: files, and folders that were left out: as many as were indexed, unchanged, and skipped.
    indexed, unchanged, removed: documents: those that were read into the log, those that are up to date, and
        those whose file is gone or no longer matched.
    skipped: what was left out, and why. Where a file could not be read, its document stays.
    warnings: of files that were read nevertheless, a line a file; and of their events.
    user: what USER.md of a workspace, which counts as no file, has set in the core memory; None where none
        was read.
    shared: of a source that was added: how many of its files another source has, too, by that one's name. A
        search gives such a file once, as one of the innermost folder.
    registered_by: the writer of another copy of the store, which alone refreshes the source: nothing was done
        here. None where this copy does.
    error: why the files could not be looked at; the documents stay then. None where they could.
    """

    source_id: str
    root: str
    registered: bool
    found: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[SkippedFile] = []
    warnings: list[FileWarning] = []
    user: CoreImportReport | None = None
    shared: dict[str, int] = {}
    registered_by: str | None = None
    error: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nothing was done, for people."""
        if self.registered_by is not None:
            return left_to_another_copy(self.source_id, self.registered_by)
        return None if self.error is None else f"{self.source_id}: {self.error}: its documents stay"


class SourcePlan(NamedTuple):
    """How a source is to be registered.

    is_new: whether its registration in the log differs. versions: of its documents, by file.
    """

    registration: SourceRegistered
    is_new: bool
    versions: dict[str, str]

    @property
    def is_workspace(self) -> bool:
        """Whether USER.md is imported into the core memory."""
        return self.registration.kind == "memory" and USER_FILE in self.registration.include

    @property
    def root(self) -> Path:
        """The source's folder."""
        return Path(str(self.registration.root))

    def report(self, error: str | None = None, registered_by: str | None = None) -> IndexingReport:
        """Return a report in which no file was read yet."""
        return IndexingReport(
            source_id=self.registration.source_id,
            root=str(self.registration.root),
            registered=self.is_new,
            registered_by=registered_by,
            error=error,
        )


def claiming(source_id: str) -> str:
    """Return the call with which a copy of a store claims a source that another one registered."""
    return f"store.documents.add(FOLDER, source={source_id!r})"


def left_to_another_copy(source_id: str, writer: str) -> str:
    """Return why this copy of the store does not refresh a source, for people."""
    return (
        f"{source_id}: another copy of the store (writer {writer}) refreshes it; to refresh it here instead:"
        f" {claiming(source_id)}"
    )


def registration_of(source: Registered) -> SourceRegistered:
    """Return the event that registers a source as it is."""
    return msgspec.convert(source, SourceRegistered, from_attributes=True)


def as_registered(source: Registered, versions: dict[str, str]) -> SourcePlan:
    """Return a plan without changes, except that a source of an older memlog gets this copy's writer."""
    return SourcePlan(registration_of(source), source.writer == "", versions)


def without_file(source_id: str, source: Registered | None, file: str) -> list[Event]:
    """Return the events that remove a document: its source excludes the file, or would read it again."""
    removed = DocumentRemoved(source_id=source_id, file=file)
    if source is None:
        return [removed]
    exclude = [*source.exclude, escape(file)]
    return [msgspec.structs.replace(registration_of(source), exclude=exclude), removed]
