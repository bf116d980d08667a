"""The operations of `store.documents` and `store.workspaces`: index folders and files of text for search."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, overload

import msgspec

from memlog.eventlog.errors import BadInput, Busy, NotFound
from memlog.eventlog.events import Position, SourceRegistered, SourceRemoved
from memlog.eventlog.fields import SourceId, SourceKind
from memlog.eventlog.log.streams import shown
from memlog.projector.catchup import Progress
from memlog.query import documents as queries
from memlog.query.documents import Document, DocumentFolder, DocumentText, Registered, Source, tree
from memlog.service.documents.indexing import (
    Indexing,
    IndexingJob,
    IndexingTools,
    SourceRecords,
    SourceStatus,
    described,
    status_of,
)
from memlog.service.documents.requests import (
    AddSource,
    AddSources,
    AddWorkspace,
    GetDocument,
    ListDocuments,
    ListIndexingJobs,
    ListWorkspaces,
    RefreshDocuments,
    RemoveDocuments,
    RemoveWorkspace,
    ShowDocumentTree,
    ShowSourceStatus,
)
from memlog.service.documents.scan import Patterns
from memlog.service.documents.sources import (
    USER_FILE,
    IndexingReport,
    SourcePlan,
    as_registered,
    claiming,
    registration_of,
    without_file,
)
from memlog.service.documents.text_files import filetype
from memlog.service.engine.engine import Engine, OperationGroup
from memlog.service.engine.operation import All_co, One_co, not_found, operation
from memlog.service.engine.sandbox import Readers
from memlog.service.memory.core import Core

_SET = re.compile(r"\[!?+\]?+[^]]*+(\])?+")
"""A character set in a glob, as `fnmatch` reads it: a leading ] belongs to it. An unclosed set extends to the
end, so that the search takes linear time."""


class FolderRequest(NamedTuple):
    """A folder to register as a source.

    names: the files that the user named; None for the whole folder. given: the user's patterns.
    """

    root: Path
    names: tuple[str, ...] | None
    source_id: str
    kind: SourceKind
    given: Patterns


def folder_requests(paths: Iterable[str | Path], request: AddSource | AddSources) -> list[FolderRequest]:
    """Return the folders to register: those among `paths`, and the parents of the files among them.

    Raises:
        BadInput: a path, the name or a pattern is invalid.
    """
    given = valid_patterns(request.include, request.exclude)
    names: dict[tuple[Path, bool], list[str]] = {}
    for path in map(valid_path, paths):
        is_folder = path.is_dir()
        named = names.setdefault((path if is_folder else path.parent, is_folder), [])
        if not is_folder:
            named.append(path.name)
    return [
        FolderRequest(
            root,
            None if is_folder else tuple(named),
            valid_name(root.name if request.source is None else request.source),
            request.kind,
            given,
        )
        for (root, is_folder), named in names.items()
    ]


def valid_path(path: str | Path) -> Path:
    """Return an absolute path.

    Raises:
        BadInput: it is neither a file nor a folder, or is not UTF-8.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - keeps the user's name of a link
    if shown(absolute) != str(absolute):
        raise BadInput(f"{shown(path)}: the name is not UTF-8", hint="rename it")
    try:
        absolute.stat()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="name a file or folder that can be read") from error
    if not absolute.is_dir() and not absolute.is_file():
        raise BadInput(f"{path} is neither a file nor a folder", hint="name a file or folder")
    return absolute


def valid_name(name: str) -> str:
    """Return the valid name of a source.

    Raises:
        BadInput: it is invalid.
    """
    try:
        return msgspec.convert(name, SourceId)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{name!r} cannot name a source: {error}",
            hint="source=NAME: up to 255 characters, without / and control characters",
        ) from error


def valid_patterns(include: Iterable[str], exclude: Iterable[str]) -> Patterns:
    """Return valid patterns.

    Raises:
        BadInput: a pattern is malformed, or can match nothing.
    """
    patterns = Patterns(tuple(include), tuple(exclude))
    for pattern in (*patterns.include, *patterns.exclude):
        # A [ begins a set of characters within one name.
        if any(found[1] is None for part in pattern.split("/") for found in _SET.finditer(part)):
            raise BadInput(
                f"the pattern {pattern!r} has a [ that is not closed",
                hint="close it within one name, as in '[a-z]*.md'; [[] stands for the character itself",
            )
    return patterns


def refuse_keys(texts: Iterable[str]) -> None:
    """Refuse texts with a key before they are written anywhere.

    Raises:
        BadInput: a text has a probable key, and would change its meaning when masked.
    """
    # Imported here: it compiles the patterns of all keys, which most runs do not need.
    from memlog.eventlog.secrets.detection import kinds_in

    if any(kinds_in(text) for text in texts):
        raise BadInput(
            "the name, the folder or a pattern of the source looks like a key",
            hint="use another name: names are stored",
        )


def registration_for(
    request: FolderRequest, before: Registered | None, *, may_move: bool
) -> SourceRegistered:
    """Return the registration of a source after this request.

    before: its current registration. may_move: whether its folder may change.

    Raises:
        BadInput: another folder has the source's name, or the patterns do not fit the request.
    """
    patterns = _new_patterns(request, before)
    return SourceRegistered(
        source_id=request.source_id,
        kind=request.kind,
        root=str(request.root) if before is None or may_move else _same_root(request.root, before),
        include=[*patterns.include],
        exclude=[*patterns.exclude],
    )


def _same_root(root: Path, source: Registered) -> str:
    """Return the root of a registered source, which must be the same folder as `root`."""
    known_root = Path(source.root)
    if root != known_root and not (known_root.exists() and root.samefile(known_root)):
        raise BadInput(
            f"the source {source.source_id!r} is {known_root}, not {root}",
            hint="give the new one another name: source=NAME",
        )
    return str(known_root)


def _new_patterns(request: FolderRequest, source: Registered | None) -> Patterns:
    """Return the patterns of a source after this request; `source` has the current ones."""
    before = Patterns() if source is None else Patterns.of(source)
    is_given = bool(request.given.include or request.given.exclude)
    if request.names is not None:
        if is_given:
            raise BadInput("patterns are for folders, not for files", hint="name the folder")
        return _add_names(before, [escape(name) for name in request.names], is_known=source is not None)
    if is_given:
        return request.given
    # Naming the folder of files that were added one by one selects the whole folder.
    return Patterns((), before.exclude) if before.are_names else before


def _add_names(before: Patterns, names: Sequence[str], *, is_known: bool) -> Patterns:
    """Add files of the root by their escaped names, even if they were removed by name."""
    known, wanted = set(before.include), set(names)
    exclude = tuple(pattern for pattern in before.exclude if pattern not in wanted)
    if is_known and not before.include:
        patterns = Patterns((), exclude)
    else:
        new = dict.fromkeys(name for name in names if name not in known)
        patterns = Patterns((*before.include, *new), exclude)
    for name in names:
        if patterns.excludes(name) or not (patterns.include or filetype(name)):
            raise BadInput(
                f"{name} does not match the patterns of its source",
                hint="store.documents.list() shows the patterns; source=NAME creates a separate source",
            )
    return patterns


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
        """Kill the reader process. The next request starts a new one."""
        self._tools.readers.close()

    @operation(AddSource, effect="append", reads_paths=True)
    def add(self, request: AddSource) -> IndexingReport:
        (report,) = self._add_all([request.path], request)
        return report

    @operation(AddSources, effect="append", reads_paths=True)
    def add_all(self, request: AddSources) -> list[IndexingReport]:
        return self._add_all(request.paths, request)

    def _add_all(self, paths: Iterable[str | Path], request: AddSource | AddSources) -> list[IndexingReport]:
        requests = folder_requests(paths, request)
        for each in requests:
            if each.root.resolve().is_relative_to(self._tools.store.resolve()):
                raise BadInput(
                    f"{each.root} is part of the store itself", hint="name a folder outside the store"
                )
            if self._tools.redact:
                refuse_keys([each.source_id, str(each.root), *each.given.include, *each.given.exclude])
        # First, as locking the records creates their folder: a store that cannot be made is a memlog error.
        self._decide(queries.registered, creates=True)
        is_named = request.source is not None
        return [self._add_folder(each, request.progress, claims=is_named) for each in requests]

    @operation(RefreshDocuments, effect="append")
    def refresh(self, request: RefreshDocuments) -> list[IndexingReport]:
        found = self._decide(lambda db: queries.registered(db, request.source))
        if not found:
            self._sources(request.source)  # raises NotFound for an unknown name
        return [self._refresh_source(each, request.progress) for each in found]

    if TYPE_CHECKING:
        list: ListOperation[_Sources, _Documents]
    else:

        @operation(ListDocuments, effect="read")
        def list(self, request: ListDocuments) -> _Sources | _Documents:
            if request.source is None:
                return self._read(queries.sources)
            found, documents = self._read(
                lambda db: (queries.source(db, request.source), queries.documents(db, request.source))
            )
            if found is None:
                raise not_found("source_not_found", request.source)
            return documents

    @operation(GetDocument, effect="read", missing="document_not_found")
    def get(self, request: GetDocument) -> DocumentText | Source | None:
        """Return a source or document; None if none has this name."""
        if "/" in request.name:
            return self._read(lambda db: queries.text(db, request.name))
        return self._read(lambda db: queries.source(db, request.name))

    @operation(ShowDocumentTree, effect="read")
    def tree(self, request: ShowDocumentTree) -> _Folders:
        names = [each.source_id for each in self._sources(request.source)]
        found = self._read(lambda db: [(name, queries.documents(db, name)) for name in names])
        return [tree(name, documents) for name, documents in found]

    @operation(ShowSourceStatus, effect="read")
    def status(self, request: ShowSourceStatus) -> _Statuses:
        return [
            status_of(each, self._records(each.source_id).job()) for each in self._sources(request.source)
        ]

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
    def remove(self, request: RemoveDocuments) -> Position | Literal[False]:
        """Remove a source or document; return False if none has this name."""
        source_id, is_document, file = request.name.partition("/")
        # First, as locking the records creates their folder: a missing store must stay missing.
        self._decide(queries.registered)
        with self._records(source_id).held(self._lock_timeout):
            found, versions = self._source_and_versions(source_id)
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

    def _add_folder(
        self, request: FolderRequest, progress: Progress | None, *, claims: bool
    ) -> IndexingReport:
        with self._records(request.source_id).held(self._lock_timeout):
            before, versions = self._source_and_versions(request.source_id)
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
            # Afterwards, as this read projects the new events.
            here = Path(report.root)
            others = [Path(each.root) for each in registered if each.source_id != report.source_id]
            if any(here.is_relative_to(root) or root.is_relative_to(here) for root in others):
                report.shared = self._read(lambda db: queries.shared(db, request.source_id))
            return report

    def is_of_another_copy(self, source: Registered) -> bool:
        """Whether another copy of the store registered the source, so that only that copy refreshes it."""
        return source.writer not in ("", *self._own_writers())

    def _refresh_source(self, source: Registered, progress: Progress | None) -> IndexingReport:
        plan = as_registered(source, {})
        try:
            with self._records(source.source_id).held(self._lock_timeout):
                # Another process may have changed the registration meanwhile.
                found, versions = self._source_and_versions(source.source_id)
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

    def _source_and_versions(self, source_id: str) -> tuple[Registered | None, dict[str, str]]:
        """Return the source, if registered, and the versions of its documents by file."""
        registered, versions = self._decide(
            lambda db: (queries.registered(db, source_id), queries.versions(db, source_id))
        )
        return next(iter(registered), None), versions


FILES = ("MEMORY.md", "memory/*.md", USER_FILE)
"""The files of a workspace that are read."""


class Workspaces(OperationGroup):
    """The workspaces of a store: `store.workspaces`.

    Each is a source of kind `memory`; `store.documents.refresh` updates it with the others.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._documents = Documents(engine)

    @operation(AddWorkspace, effect="append", reads_paths=True)
    def add(self, request: AddWorkspace) -> IndexingReport:
        name = Path(request.path).absolute().name if request.source is None else request.source
        if name in self._sources_of_documents():
            raise BadInput(
                f"not a workspace, but a source of documents: {name!r}",
                hint=f"remove it first (store.documents.remove({name!r})), or give the workspace another"
                " name",
            )
        return self._documents.add(
            request.path, source=request.source, include=FILES, kind="memory", progress=request.progress
        )

    def _sources_of_documents(self) -> set[str]:
        try:
            return {each.source_id for each in self._documents.list() if each.kind == "docs"}
        except NotFound:  # there is no store yet
            return set()

    @operation(ListWorkspaces, effect="read")
    def list(self, _: ListWorkspaces) -> list[Source]:
        return [each for each in self._documents.list() if each.kind == "memory"]

    @operation(RemoveWorkspace, effect="append", missing="source_not_found")
    def remove(self, request: RemoveWorkspace) -> Position | Literal[False]:
        """Remove a workspace; return False if none has this name."""
        if not any(each.source_id == request.name for each in self.list()):
            return False
        return self._documents.remove(request.name)
