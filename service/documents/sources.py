"""What a source is to be, and what became of its files."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.events import SourceRegistered
from memlog.service.core.facade import CoreImportReport
from memlog.service.documents.folder import Patterns, SkippedFile

USER_FILE = "USER.md"
"""Of a workspace it is no document: what it says goes to the core memory."""


class FileWarning(msgspec.Struct, frozen=True):
    """What a library printed about a file, by its path below the root: a stranger's text, in a short line."""

    file: str
    text: str


class IndexingReport(msgspec.Struct, kw_only=True):
    """What became of the files of a source.

    registered: whether the source is new, or says now something else than before.
    found: files, and folders that were left out: as many as were indexed, unchanged, and skipped.
    indexed, unchanged, removed: documents: those that were read into the log, those that stood there as they
        are, and those whose file is gone or no longer asked for.
    skipped: what was left out, and why. Where a file could not be read, the document of it stays.
    warnings: what libraries printed about files that were read nevertheless, a line a file.
    user: what USER.md of a workspace, which counts as no file, has set in the core memory; None where none
        was read.
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
    registered_by: str | None = None
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

    def nothing_done(self, error: str | None = None, registered_by: str | None = None) -> IndexingReport:
        """What became of the source where nothing was read yet."""
        return IndexingReport(
            source_id=self.registration.source_id,
            root=str(self.registration.root),
            registered=self.is_new,
            registered_by=registered_by,
            error=error,
        )
