"""Documents: folders and files of text that are read into the log, and found by a search."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, overload

from memlog.eventlog.acknowledgements import Position
from memlog.eventlog.errors import BadInput, Busy
from memlog.eventlog.events import SourceRemoved
from memlog.projector.catchup import Progress
from memlog.query import documents as queries
from memlog.query.documents import Document, DocumentFolder, DocumentText, Registered, Source, tree
from memlog.service.core.facade import Core
from memlog.service.documents.indexing import Indexing, IndexingTools
from memlog.service.documents.readers import Readers
from memlog.service.documents.records import IndexingJob, SourceRecords, SourceStatus, described, status_of
from memlog.service.documents.request import (
    FolderRequest,
    check_without_keys,
    folder_requests,
    registration_for,
)
from memlog.service.documents.sources import (
    IndexingReport,
    SourcePlan,
    as_registered,
    claiming,
    registration_of,
    without_file,
)
from memlog.service.engine import Engine, OperationGroup
from memlog.service.missing import not_found
from memlog.service.operations import All_co, One_co, operation
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


class ListOperation(Protocol[All_co, One_co]):
    """How type checkers see `Documents.list`: the answer depends on whether a source is named."""

    @overload
    def __call__(self, source: None = None) -> All_co: ...
    @overload
    def __call__(self, source: str) -> One_co: ...
    @overload
    def __call__(self, source: ListDocuments) -> All_co | One_co: ...


class Documents(OperationGroup):
    """The documents of a store: `store.documents`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._tools = IndexingTools(
            engine.path, engine.log.append, Core(engine).take_over, engine.readers, engine.redact
        )
        self._lock_timeout = engine.lock_timeout
        self._own_writers = engine.log.own_writers

    @property
    def readers(self) -> Readers:
        """The reader process."""
        return self._tools.readers

    def close(self) -> None:
        """End the reader process. It starts again when it is needed."""
        self._tools.readers.close()

    @operation(AddSource, effect="append", reads_paths=True)
    def add(self, asked: AddSource) -> IndexingReport:
        (report,) = self._add_all([asked.path], asked)
        return report

    @operation(AddSources, effect="append", reads_paths=True)
    def add_all(self, asked: AddSources) -> list[IndexingReport]:
        return self._add_all(asked.paths, asked)

    def _add_all(self, paths: Iterable[str | Path], asked: AddSource | AddSources) -> list[IndexingReport]:
        requests = folder_requests(paths, asked)
        for each in requests:
            if each.root.resolve().is_relative_to(self._tools.store.resolve()):
                raise BadInput(
                    f"{each.root} is part of the store itself", hint="name a folder outside the store"
                )
            if self._tools.redact:
                check_without_keys([each.source_id, str(each.root), *each.given.include, *each.given.exclude])
        # First, since locking the records makes their folder: it is memlog's error if there can be no store.
        self._decide(queries.registered, creates=True)
        is_named = asked.source is not None
        return [self._added(each, asked.progress, claims=is_named) for each in requests]

    @operation(RefreshDocuments, effect="append")
    def refresh(self, asked: RefreshDocuments) -> list[IndexingReport]:
        found = self._decide(lambda db: queries.registered(db, asked.source))
        if not found:
            self._sources(asked.source)  # raises NotFound for an unknown name
        return [self._refreshed(each, asked.progress) for each in found]

    if TYPE_CHECKING:
        list: ListOperation[_Sources, _Documents]
    else:

        @operation(ListDocuments, effect="read")
        def list(self, asked: ListDocuments) -> _Sources | _Documents:
            if asked.source is None:
                return self._read(queries.sources)
            found, documents = self._read(
                lambda db: (queries.source(db, asked.source), queries.documents(db, asked.source))
            )
            if found is None:
                raise not_found("source_not_found", asked.source)
            return documents

    @operation(GetDocument, effect="read", missing="document_not_found")
    def get(self, asked: GetDocument) -> DocumentText | Source | None:
        """Returns None if no source or document has this name."""
        if "/" in asked.name:
            return self._read(lambda db: queries.text(db, asked.name))
        return self._read(lambda db: queries.source(db, asked.name))

    @operation(ShowDocumentTree, effect="read")
    def tree(self, asked: ShowDocumentTree) -> _Folders:
        names = [each.source_id for each in self._sources(asked.source)]
        found = self._read(lambda db: [(name, queries.documents(db, name)) for name in names])
        return [tree(name, documents) for name, documents in found]

    @operation(ShowSourceStatus, effect="read")
    def status(self, asked: ShowSourceStatus) -> _Statuses:
        return [status_of(each, self._records(each.source_id).job()) for each in self._sources(asked.source)]

    @operation(ListIndexingJobs, effect="read")
    def jobs(self, _: ListIndexingJobs) -> _Jobs:
        jobs = (self._records(each.source_id).job() for each in self.list())
        return sorted(filter(None, jobs), key=lambda job: job.started, reverse=True)

    def _sources(self, source: str | None) -> _Sources:
        found = [each for each in self.list() if source in (None, each.source_id)]
        if source is not None and not found:
            raise not_found("source_not_found", source)
        return found

    @operation(RemoveDocuments, effect="append", missing="document_not_found")
    def remove(self, asked: RemoveDocuments) -> Position | Literal[False]:
        """Returns False if no source or document has this name."""
        source_id, is_document, file = asked.name.partition("/")
        # First, since locking the records makes their folder: a missing store stays missing.
        self._decide(queries.registered)
        with self._records(source_id).held(self._lock_timeout):
            found, versions = self._known(source_id)
            if (file not in versions) if is_document else (found is None and not versions):
                return False
            if is_document and found is not None and self.is_of_another_copy(found):
                raise BadInput(
                    f"another copy of the store (writer {found.writer}) refreshes the source {source_id!r}",
                    hint=f"remove the document there, or claim the source first: {claiming(source_id)}",
                )
            if is_document:
                return self._append(without_file(source_id, found, file))[-1]
            return self._append_one(SourceRemoved(source_id=source_id))

    def _added(self, request: FolderRequest, progress: Progress | None, *, claims: bool) -> IndexingReport:
        with self._records(request.source_id).held(self._lock_timeout):
            before, versions = self._known(request.source_id)
            registered = self._decide(queries.registered)
            is_of_another = before is not None and self.is_of_another_copy(before)
            if before is not None and is_of_another and not claims:
                return as_registered(before, versions).report(registered_by=before.writer)
            # On another machine the folder may have another path.
            registration = registration_for(request, before, may_move=is_of_another)
            is_new = (
                before is None
                or before.writer not in self._own_writers()
                or registration_of(before) != registration
            )
            plan = SourcePlan(registration, is_new, versions)
            report = Indexing(plan, self._tools, progress).run(is_by_name=True)
            # Only then, since it projects what was appended.
            here = Path(report.root)
            others = [Path(each.root) for each in registered if each.source_id != report.source_id]
            if any(here.is_relative_to(root) or root.is_relative_to(here) for root in others):
                report.shared = self._read(lambda db: queries.shared(db, request.source_id))
            return report

    def is_of_another_copy(self, source: Registered) -> bool:
        """Whether another copy of the store registered the source, and so alone refreshes it."""
        return source.writer not in ("", *self._own_writers())

    def _refreshed(self, source: Registered, progress: Progress | None) -> IndexingReport:
        plan = as_registered(source, {})
        try:
            with self._records(source.source_id).held(self._lock_timeout):
                # Another process may have changed the registration meanwhile.
                found, versions = self._known(source.source_id)
                if found is None:
                    return plan.report(error="it was removed")
                plan = as_registered(found, versions)
                if self.is_of_another_copy(found):
                    return plan.report(registered_by=found.writer)
                return Indexing(plan, self._tools, progress).run(is_by_name=False)
        except (OSError, Busy) as error:
            return plan.report(error=described(error))

    def _records(self, source_id: str) -> SourceRecords:
        return SourceRecords(self._tools.store, source_id)

    def _known(self, source_id: str) -> tuple[Registered | None, dict[str, str]]:
        """The source, or None if it is not registered, and the versions of its documents by file."""
        registered, versions = self._decide(
            lambda db: (queries.registered(db, source_id), queries.versions(db, source_id))
        )
        return next(iter(registered), None), versions
