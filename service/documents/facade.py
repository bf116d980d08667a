"""Documents: folders and files of text that are read into the log, and found by a search."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from memlog.eventlog.errors import BadInput, Busy, NotFound
from memlog.eventlog.events import (
    SourceKind,
    SourceRegistered,
    SourceRemoved,
)
from memlog.eventlog.writer import Position
from memlog.projector.catchup import Progress
from memlog.query import documents as standing
from memlog.query.documents import Document, DocumentFolder, DocumentText, Registered, Source, tree
from memlog.service.documents.folder import Patterns
from memlog.service.documents.indexing import Indexing, IndexingTools, described
from memlog.service.documents.readers import Readers
from memlog.service.documents.records import IndexingJob, SourceRecords
from memlog.service.documents.registrations import as_registered, claiming, says_the_same, without_file
from memlog.service.documents.request import (
    Asked,
    by_folder,
    check_without_keys,
    checked_name,
    checked_path,
    checked_patterns,
    patterns_of,
    standing_root_of,
)
from memlog.service.documents.sources import IndexingReport, Wanted
from memlog.service.documents.status import SourceStatus, known, status_of
from memlog.service.operations import operation
from memlog.service.read_model import Deciding, Reading
from memlog.service.requests.documents import (
    AddSource,
    AddSources,
    GetDocument,
    ListDocuments,
    ListIndexingJobs,
    RefreshDocuments,
    RemoveDocuments,
    ShowDocumentTree,
    ShowSourceStatus,
)

_Sources = list[Source]
_Documents = list[Document]
_Folders = list[DocumentFolder]
_Jobs = list[IndexingJob]
_Statuses = list[SourceStatus]


class Documents:
    """The documents of a store: `store.documents`.

    read: queries the read model. decide: queries it once it has caught up with the log.
    lock_timeout: seconds to wait for other processes that index the same source.
    own_writers: answers which writers of the store are this copy.
    """

    def __init__(
        self,
        tools: IndexingTools,
        *,
        read: Reading,
        decide: Deciding,
        lock_timeout: float,
        own_writers: Callable[[], tuple[str, ...]],
    ) -> None:
        self._tools = tools
        self._read = read
        self._decide = decide
        self._lock_timeout = lock_timeout
        self._own_writers = own_writers

    @property
    def readers(self) -> Readers:
        """The reader process."""
        return self._tools.readers

    def close(self) -> None:
        """End the reader process. It starts again when it is needed."""
        self._tools.readers.close()

    @operation(AddSource)
    def add(self, asked: AddSource) -> IndexingReport:
        (added,) = self._add_all([Path(asked.path)], asked)
        return added

    @operation(AddSources)
    def add_all(self, asked: AddSources) -> list[IndexingReport]:
        return self._add_all([Path(path) for path in asked.paths], asked)

    def _add_all(self, paths: Sequence[Path], asked: AddSource | AddSources) -> list[IndexingReport]:
        given = checked_patterns([*asked.include], [*asked.exclude])
        named = [
            (each, checked_name(each.root.name if asked.source is None else asked.source))
            for each in by_folder([checked_path(path) for path in paths])
        ]
        for each, name in named:
            self._check_outside_the_store(each.root)
            if self._tools.redact:
                check_without_keys([name, str(each.root), *asked.include, *asked.exclude])
        added = []
        for each, name in named:
            with self._records(name).held(self._lock_timeout):
                added.append(
                    self._added(
                        each, name, given, asked.kind, asked.progress, claims=asked.source is not None
                    )
                )
        return added

    @operation(RefreshDocuments)
    def refresh(self, asked: RefreshDocuments) -> list[IndexingReport]:
        registered = self._decide(standing.registered)
        if asked.source is not None and not any(each.source_id == asked.source for each in registered):
            self._sources(asked.source)
        return [
            self._refreshed(each, asked.progress)
            for each in registered
            if asked.source in (None, each.source_id)
        ]

    if TYPE_CHECKING:  # the answer depends on whether a source is named

        @overload
        def list(self, source: None = None) -> _Sources: ...
        @overload
        def list(self, source: str) -> _Documents: ...
        @overload
        def list(self, source: ListDocuments) -> _Sources | _Documents: ...
        def list(self, source: ListDocuments | str | None = None) -> _Sources | _Documents:
            """See `ListDocuments`."""
    else:

        @operation(ListDocuments)
        def list(self, asked: ListDocuments) -> _Sources | _Documents:
            if asked.source is None:
                return self._read(standing.sources)
            found, documents = self._read(
                lambda db: (standing.source(db, asked.source), standing.documents(db, asked.source))
            )
            if found is None:
                raise unknown_source(asked.source)
            return documents

    @operation(GetDocument)
    def get(self, asked: GetDocument) -> DocumentText | None:
        """Returns None if no document has this name."""
        return self._read(lambda db: standing.text(db, asked.name))

    @operation(ShowDocumentTree)
    def tree(self, asked: ShowDocumentTree) -> _Folders:
        names = [each.source_id for each in self._sources(asked.source)]
        found = self._read(lambda db: [(name, standing.documents(db, name)) for name in names])
        return [tree(name, documents) for name, documents in found]

    @operation(ShowSourceStatus)
    def status(self, asked: ShowSourceStatus) -> _Statuses:
        return [status_of(each, self._records(each.source_id).job()) for each in self._sources(asked.source)]

    @operation(ListIndexingJobs)
    def jobs(self, _: ListIndexingJobs) -> _Jobs:
        return known(self._records(each.source_id).job() for each in self.list())

    def _sources(self, source: str | None) -> _Sources:
        found = [each for each in self.list() if source in (None, each.source_id)]
        if source is not None and not found:
            raise unknown_source(source)
        return found

    @operation(RemoveDocuments)
    def remove(self, asked: RemoveDocuments) -> Position | Literal[False]:
        """Returns False if no source or document has this name."""
        source_id, is_document, file = asked.name.partition("/")
        # First, since locking the records makes their folder: a missing store stays missing.
        self._decide(standing.registered)
        with self._records(source_id).held(self._lock_timeout):
            found, versions = self._standing(source_id)
            if (file not in versions) if is_document else (found is None and not versions):
                return False
            if is_document and found is not None and self.is_of_another_copy(found):
                raise BadInput(
                    f"another copy of the store (writer {found.writer}) refreshes the source {source_id!r}",
                    hint=f"remove the document there, or claim the source first: {claiming(source_id)}",
                )
            events = (
                without_file(source_id, found, file) if is_document else [SourceRemoved(source_id=source_id)]
            )
            return self._tools.append(events)[-1]

    def _added(
        self,
        asked: Asked,
        name: str,
        given: Patterns,
        kind: SourceKind,
        progress: Progress | None,
        *,
        claims: bool,
    ) -> IndexingReport:
        """Add one folder."""
        before, versions = self._standing(name, creates=True)
        if before is not None and not claims and self.is_of_another_copy(before):
            return as_registered(before, versions).nothing_done(registered_by=before.writer)
        wanted = self._wanted(asked, name, given, kind, before, versions)
        return self._indexing(wanted, progress).run(is_by_name=True)

    def is_of_another_copy(self, source: Registered) -> bool:
        """Whether another copy of the store registered the source, and so alone refreshes it."""
        return source.writer not in ("", *self._own_writers())

    def _refreshed(self, known: Registered, progress: Progress | None) -> IndexingReport:
        """Refresh one source."""
        wanted = as_registered(known, {})
        try:
            with self._records(known.source_id).held(self._lock_timeout):
                # Another process may have changed the registration meanwhile.
                found, versions = self._standing(known.source_id)
                wanted = as_registered(found or known, versions)
                if found is not None and self.is_of_another_copy(found):
                    return wanted.nothing_done(registered_by=found.writer)
                if found is not None:
                    return self._indexing(wanted, progress).run(is_by_name=False)
        except (OSError, Busy) as error:
            return wanted.nothing_done(described(error))
        return wanted.nothing_done("it was removed")

    def _indexing(self, wanted: Wanted, progress: Progress | None) -> Indexing:
        return Indexing(wanted, self._records(wanted.registration.source_id), self._tools, progress)

    def _records(self, source_id: str) -> SourceRecords:
        return SourceRecords(self._tools.store, source_id)

    def _standing(self, source_id: str, *, creates: bool = False) -> tuple[Registered | None, dict[str, str]]:
        """The source, or None if it is not registered, and the versions of its documents by file."""
        registered, versions = self._decide(
            lambda db: (standing.registered(db), standing.versions(db, source_id)), creates=creates
        )
        return next((each for each in registered if each.source_id == source_id), None), versions

    def _check_outside_the_store(self, root: Path) -> None:
        if root.resolve().is_relative_to(self._tools.store.resolve()):
            raise BadInput(f"{root} is part of the store itself", hint="name a folder outside the store")

    def _wanted(
        self,
        asked: Asked,
        source_id: str,
        given: Patterns,
        kind: SourceKind,
        before: Registered | None,
        versions: dict[str, str],
    ) -> Wanted:
        # On another machine the folder may have another path.
        may_move = before is None or self.is_of_another_copy(before)
        root = standing_root_of(asked.root, before) if before and not may_move else str(asked.root)
        patterns = patterns_of(asked, given, before)
        registration = SourceRegistered(
            source_id=source_id,
            kind=kind,
            root=root,
            include=[*patterns.include],
            exclude=[*patterns.exclude],
        )
        is_new = (
            before is None
            or before.writer not in self._own_writers()
            or not says_the_same(before, registration)
        )
        return Wanted(registration, patterns, is_new, versions)


def unknown_source(name: str) -> NotFound:
    """The error for an unknown source."""
    return NotFound(f"no source {name!r}", hint="memlog docs list", code="source_not_found")
