"""Registrations of sources, and reports about their files."""

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
    """A one-line warning about a file. file: its path below the root.

    The text either comes from a library, and so is untrusted, or says that the file's event seems to contain
    a key.
    """

    file: str
    text: str


class IndexingReport(msgspec.Struct, kw_only=True):
    """The outcome for the files of a source.

    registered: whether the source is new, or its registration changed.
    found: files and skipped folders, equal to the sum of indexed, unchanged and skipped.
    indexed, unchanged, removed: how many documents were read into the log, are up to date, or were removed
        because their file is gone or no longer matches.
    skipped: the skipped files and folders, with the reasons. The document of an unreadable file stays.
    warnings: about files that were read nevertheless, one line each, and about their events.
    user: the import of a workspace's USER.md, which does not count as a file, into the core memory; None if
        it was not read.
    shared: for an added source: how many of its files other sources also have, by source name. A search
        returns such a file once, from the source with the innermost folder.
    registered_by: the writer of another copy of the store, if only that copy refreshes the source; then
        nothing was done here.
    error: why the files could not be read, so that the documents stay; None if they were read.
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
        """Why the source was not read, as a sentence; None if it was read."""
        if self.registered_by is not None:
            return why_not_refreshed(self.source_id, self.registered_by)
        return None if self.error is None else f"{self.source_id}: {self.error}: its documents stay"


class SourcePlan(NamedTuple):
    """The registration that a source will have, and the versions of its documents in the log.

    is_new: whether the registration is not in the log yet. versions: keyed by file.
    """

    registration: SourceRegistered
    is_new: bool
    versions: dict[str, str]

    @property
    def is_workspace(self) -> bool:
        """Whether the source is a workspace, whose USER.md is imported into the core memory."""
        return self.registration.kind == "memory" and USER_FILE in self.registration.include

    @property
    def root(self) -> Path:
        """The source's folder."""
        return Path(str(self.registration.root))

    def create_empty_report(
        self, error: str | None = None, registered_by: str | None = None
    ) -> IndexingReport:
        """Return an empty report, which the indexing of the source fills in."""
        return IndexingReport(
            source_id=self.registration.source_id,
            root=str(self.registration.root),
            registered=self.is_new,
            registered_by=registered_by,
            error=error,
        )


def format_call_to_claim_source(source_id: str) -> str:
    """Return the call with which this copy of a store takes over a source from another copy."""
    return f"store.documents.add(FOLDER, source={source_id!r})"


def why_not_refreshed(source_id: str, writer: str) -> str:
    """Say that another copy of the store, whose writer is `writer`, refreshes a source."""
    return (
        f"{source_id}: another copy of the store (writer {writer}) refreshes it; to refresh it here instead:"
        f" {format_call_to_claim_source(source_id)}"
    )


def make_registration_event(source: Registered) -> SourceRegistered:
    """Return a source's current registration as an event."""
    return msgspec.convert(source, SourceRegistered, from_attributes=True)


def make_plan_without_changes(source: Registered, versions: dict[str, str]) -> SourcePlan:
    """Return a plan that keeps the registration. A source from an older memlog gets this copy's writer."""
    return SourcePlan(make_registration_event(source), source.writer == "", versions)


def make_removal_events(source_id: str, source: Registered | None, file: str) -> list[Event]:
    """Return events that remove a document, and exclude its file so that it is not indexed again."""
    removed = DocumentRemoved(source_id=source_id, file=file)
    if source is None:
        return [removed]
    exclude = [*source.exclude, escape(file)]
    return [msgspec.structs.replace(make_registration_event(source), exclude=exclude), removed]
