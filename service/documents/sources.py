"""Registrations of sources, and reports on their files."""

from glob import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.events import DocumentRemoved, Event, SourceRegistered
from memlog.query.documents import Registered
from memlog.service.documents.scan import SkippedFile
from memlog.service.memory.core import CoreImportReport

USER_FILE = "USER.md"
"""A file of a workspace that is imported into the core memory instead of being indexed."""


class FileWarning(msgspec.Struct, frozen=True):
    """A warning about a file, by its path below the root, in one short line.

    A library printed it, so it is untrusted; or the file's event has a probable key.
    """

    file: str
    text: str


class IndexingReport(msgspec.Struct, kw_only=True):
    """The outcome for the files of a source.

    registered: whether the source is new, or its registration changed.
    found: files and skipped folders, equal to the sum of indexed, unchanged and skipped.
    indexed, unchanged, removed: documents that were read into the log, are up to date, or whose file is gone
        or no longer matches.
    skipped: files and folders that were skipped, and why. The document of an unreadable file stays.
    warnings: about files that were read nevertheless, one line each, and about their events.
    user: what a workspace's USER.md, which does not count as a file, has set in the core memory; None if it
        was not read.
    shared: for an added source: how many of its files other sources also have, by their names. A search
        returns such a file once, as one of the innermost folder.
    registered_by: the writer of another copy of the store, if only that copy refreshes the source: nothing
        was done here.
    error: why the files could not be read, so that the documents stay; None if they were.
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
        """Why nothing was done, in words."""
        if self.registered_by is not None:
            return left_to_another_copy(self.source_id, self.registered_by)
        return None if self.error is None else f"{self.source_id}: {self.error}: its documents stay"


class SourcePlan(NamedTuple):
    """The registration of a source, and which of its documents the log has.

    is_new: whether the log has no such registration. versions: the versions of its documents, by file.
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
        """Return a report without any files."""
        return IndexingReport(
            source_id=self.registration.source_id,
            root=str(self.registration.root),
            registered=self.is_new,
            registered_by=registered_by,
            error=error,
        )


def claiming(source_id: str) -> str:
    """Return the call by which this copy of a store takes over a source from another copy."""
    return f"store.documents.add(FOLDER, source={source_id!r})"


def left_to_another_copy(source_id: str, writer: str) -> str:
    """Return why this copy of the store does not refresh a source."""
    return (
        f"{source_id}: another copy of the store (writer {writer}) refreshes it; to refresh it here instead:"
        f" {claiming(source_id)}"
    )


def registration_of(source: Registered) -> SourceRegistered:
    """Return the event of the current registration of a source."""
    return msgspec.convert(source, SourceRegistered, from_attributes=True)


def as_registered(source: Registered, versions: dict[str, str]) -> SourcePlan:
    """Return a plan without changes, except that a source from an older memlog gets this copy's writer."""
    return SourcePlan(registration_of(source), source.writer == "", versions)


def without_file(source_id: str, source: Registered | None, file: str) -> list[Event]:
    """Return the events that remove a document, and exclude its file so that it is not read again."""
    removed = DocumentRemoved(source_id=source_id, file=file)
    if source is None:
        return [removed]
    exclude = [*source.exclude, escape(file)]
    return [msgspec.structs.replace(registration_of(source), exclude=exclude), removed]
