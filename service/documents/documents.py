"""The operations of `store.documents` and `store.workspaces`: index folders and text files for search."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, overload

import msgspec
from msgspec import Meta

from memlog.eventlog.errors import BadInput, Busy, NotFound
from memlog.eventlog.events import SourceRegistered, SourceRemoved
from memlog.eventlog.fields import SourceId, SourceKind
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.positions import Position
from memlog.projector.catchup import Progress
from memlog.query import documents as queries
from memlog.query.documents import (
    Document,
    DocumentFolder,
    DocumentText,
    Registered,
    Source,
    make_tree_of_folders,
)
from memlog.query.request import PathField
from memlog.service.documents.indexing import (
    Indexing,
    IndexingJob,
    IndexingTools,
    SourceRecords,
    SourceStatus,
    describe_indexing_error,
    to_source_status,
)
from memlog.service.documents.scan import Patterns
from memlog.service.documents.sources import (
    USER_FILE,
    IndexingReport,
    SourcePlan,
    format_call_to_claim_source,
    make_plan_without_changes,
    make_registration_event,
    make_removal_events,
)
from memlog.service.documents.text_files import filetype_of_suffix
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import OperationGroup, make_not_found_error, operation
from memlog.service.engine.requests import Globs, Paths, ProgressField
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


def make_requests_for_folders(
    paths: Iterable[str | Path],
    source: str | None,
    kind: SourceKind,
    include: Iterable[str],
    exclude: Iterable[str],
) -> list[FolderRequest]:
    """Return the folders to register: each folder in `paths`, and the parent folder of each file.

    Raises:
        BadInput: a path, the name or a pattern is invalid.
    """
    given = check_patterns(include, exclude)
    names: dict[tuple[Path, bool], list[str]] = {}
    for path in map(resolve_readable_path, paths):
        is_folder = path.is_dir()
        named = names.setdefault((path if is_folder else path.parent, is_folder), [])
        if not is_folder:
            named.append(path.name)
    return [
        FolderRequest(
            root,
            None if is_folder else tuple(named),
            check_source_name(root.name if source is None else source),
            kind,
            given,
        )
        for (root, is_folder), named in names.items()
    ]


def resolve_readable_path(path: str | Path) -> Path:
    """Return the absolute path of a readable file or folder.

    Raises:
        BadInput: the path is not a readable file or folder, or its name is not UTF-8.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - keeps the user's name of a link
    if escape_invalid_utf8(absolute) != str(absolute):
        raise BadInput(
            f"{escape_invalid_utf8(path)}: the name is not UTF-8", hint="rename the file or folder"
        )
    try:
        absolute.stat()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="check the path and its permissions") from error
    if not absolute.is_dir() and not absolute.is_file():
        raise BadInput(f"{path} is neither a file nor a folder", hint="use the path of a file or folder")
    return absolute


def check_source_name(name: str) -> str:
    """Return `name` if it is a valid source name.

    Raises:
        BadInput: the name is invalid.
    """
    try:
        return msgspec.convert(name, SourceId)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"invalid source name: {name!r}: {error}",
            hint="use source=NAME with up to 255 characters, without / or control characters",
        ) from error


def check_patterns(include: Iterable[str], exclude: Iterable[str]) -> Patterns:
    """Return the given patterns if they are valid.

    Raises:
        BadInput: a pattern is malformed, or can match nothing.
    """
    patterns = Patterns(tuple(include), tuple(exclude))
    for pattern in (*patterns.include, *patterns.exclude):
        # A [ begins a set of characters within one name.
        if any(found[1] is None for part in pattern.split("/") for found in _SET.finditer(part)):
            raise BadInput(
                f"the pattern {pattern!r} has an unclosed [",
                hint="close it within one name, as in '[a-z]*.md'; [[] stands for the character itself",
            )
    return patterns


def check_no_keys(texts: Iterable[str]) -> None:
    """Raise BadInput if a registration text seems to contain a key: masking would change its meaning."""
    # Imported here: it compiles the patterns of all keys, which most runs do not need.
    from memlog.eventlog.secrets.detection import list_key_kinds

    if any(list_key_kinds(text) for text in texts):
        raise BadInput(
            "the name, the folder or a pattern of the source looks like a key",
            hint="use another one: memlog stores it unmasked",
        )


def build_registration(
    request: FolderRequest, before: Registered | None, *, may_move: bool
) -> SourceRegistered:
    """Return a source's registration after a request.

    before: the current registration, if any. may_move: whether the source may get another folder.

    Raises:
        BadInput: another folder has the source's name, or the patterns do not fit the request.
    """
    patterns = _choose_patterns(request, before)
    return SourceRegistered(
        source_id=request.source_id,
        kind=request.kind,
        root=str(request.root) if before is None or may_move else _check_same_root(request.root, before),
        include=[*patterns.include],
        exclude=[*patterns.exclude],
    )


def _check_same_root(root: Path, source: Registered) -> str:
    """Return the registered root of a source. Raise BadInput if `root` is another folder."""
    known_root = Path(source.root)
    if root != known_root and not (known_root.exists() and root.samefile(known_root)):
        raise BadInput(
            f"the source {source.source_id!r} belongs to the folder {known_root}, not {root}",
            hint="use another name for the new source: source=NAME",
        )
    return str(known_root)


def _choose_patterns(request: FolderRequest, source: Registered | None) -> Patterns:
    """Return a source's patterns after a request. source: its current registration, if any."""
    before = Patterns() if source is None else Patterns.make_patterns_of_source(source)
    is_given = bool(request.given.include or request.given.exclude)
    if request.names is not None:
        if is_given:
            raise BadInput("patterns cannot be used with files", hint="use the folder of the files")
        return _include_named_files(
            before, [escape(name) for name in request.names], is_known=source is not None
        )
    if is_given:
        return request.given
    # Naming the folder of files that were added one by one selects the whole folder.
    return Patterns((), before.exclude) if before.are_only_file_names else before


def _include_named_files(before: Patterns, names: Sequence[str], *, is_known: bool) -> Patterns:
    """Return `before` with the escaped file `names` included, even if they were removed by name."""
    known, wanted = set(before.include), set(names)
    exclude = tuple(pattern for pattern in before.exclude if pattern not in wanted)
    if is_known and not before.include:
        patterns = Patterns((), exclude)
    else:
        new = dict.fromkeys(name for name in names if name not in known)
        patterns = Patterns((*before.include, *new), exclude)
    for name in names:
        if patterns.excludes(name) or not (patterns.include or filetype_of_suffix(name)):
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


SourceName = Annotated[str | None, Meta(title="NAME"), "The source's name; by default the folder's."]
Include = Annotated[Globs, "Read only matching files, of any type, such as 'guide/*.md' or '**/*.py'."]
Exclude = Annotated[Globs, "Skip matching files."]
Kind = Annotated[Literal["docs", "memory"], "memory: files are searched as memories. docs: other documents."]
OnlySource = Annotated[str | None, "The source; by default all sources."]
DocumentName = Annotated[str, Meta(title="SOURCE[/FILE]"), "The source, or a document of it."]


class Documents(OperationGroup):
    """The documents of a store: `store.documents`."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._tools = IndexingTools(
            engine.path, engine.log.append, Core(engine).take_over, engine.readers, engine.redact
        )
        self._lock_timeout = engine.lock_timeout
        self._own_writers = engine.log.read_own_writer_names

    @property
    def readers(self) -> Readers:
        """The reader process."""
        return self._tools.readers

    def close(self) -> None:
        """End the reader process. The next read starts a new one."""
        self._tools.readers.close()

    @operation("append", reads_paths=True)
    def add(
        self,
        path: Annotated[PathField, Meta(title="PATH"), "The folder or file."],
        *,
        source: SourceName = None,
        include: Include = (),
        exclude: Exclude = (),
        kind: Kind = "docs",
        progress: ProgressField = None,
    ) -> IndexingReport:
        """Register a folder, or one file in it, as a source of documents, and index new and changed files.

        See `add_all`.

        Raises:
            BadInput: there is no such file or folder, another folder has the source's name, or a pattern or
                name is invalid.
            LogError: the folder cannot be listed; or as `Store.append`.
            Busy, DatabaseError: as `Store.append` and `Store.search`.
        """
        (report,) = self.add_all(
            [path], source=source, include=include, exclude=exclude, kind=kind, progress=progress
        )
        return report

    @operation("append", reads_paths=True)
    def add_all(
        self,
        paths: Annotated[
            Paths,
            Meta(title="PATH"),
            "Folders and files; files of one folder become one source.",
        ],
        *,
        source: SourceName = None,
        include: Include = (),
        exclude: Exclude = (),
        kind: Kind = "docs",
        progress: ProgressField = None,
    ) -> list[IndexingReport]:
        """Register folders, or single files, as sources of documents, and index new and changed files.

        An interrupted run can be repeated, since only new and changed files are appended. Reads all text
        files of known types or, if `include` is given, all files that it matches. A source keeps its patterns
        until others are given.

        A source that another copy of the store registered is left unchanged, unless `source` names it: then
        this copy of the store registers and refreshes it from now on.

        Raises:
            BadInput, Busy, LogError, DatabaseError: as `add`.
        """
        requests = make_requests_for_folders(paths, source, kind, include, exclude)
        for each in requests:
            if each.root.resolve().is_relative_to(self._tools.store.resolve()):
                raise BadInput(
                    f"{each.root} is part of the store itself", hint="use a folder outside the store"
                )
            if self._tools.redact:
                check_no_keys([each.source_id, str(each.root), *each.given.include, *each.given.exclude])
        # This comes first, as locking the records creates their folder: that a store cannot be created must
        # be a memlog error.
        self._decide(queries.list_registered_sources, creates=True)
        return [
            self._register_and_index_folder(each, progress, claims=source is not None) for each in requests
        ]

    @operation("append")
    def refresh(
        self,
        source: OnlySource = None,
        *,
        progress: ProgressField = None,
    ) -> list[IndexingReport]:
        """Index new and changed files of `source`, or of all sources, and remove documents of missing files.

        Files whose inode, size and times are unchanged are not read again. If the folder of a source is gone,
        cannot be listed, or is being read by another process for too long, its documents stay, the answer
        says why, and the other sources are still read. Only the copy of the store that registered a source
        refreshes it.

        Raises:
            NotFound: there is no source with this name.
            LogError, DatabaseError: as `add`.
        """
        found = self._decide(lambda db: queries.list_registered_sources(db, source))
        if not found:
            self._find_sources(source)  # raises NotFound for an unknown name
        return [self._refresh_source(each, progress) for each in found]

    @overload
    def list(self, source: None = None) -> _Sources: ...
    @overload
    def list(self, source: str) -> _Documents: ...
    @operation("read")
    def list(self, source: OnlySource = None) -> _Sources | _Documents:
        """List all sources by name, or the documents of one source by file.

        Raises:
            NotFound: there is no source with this name.
        """
        if source is None:
            return self._read(queries.list_sources)
        found, documents = self._read(
            lambda db: (queries.find_source(db, source), queries.documents_of_source(db, source))
        )
        if found is None:
            raise make_not_found_error("source_not_found", source)
        return documents

    @operation("read", missing="document_not_found")
    def get(self, name: DocumentName) -> DocumentText | Source | None:
        """Show a source, or one of its documents with the text that was read."""
        if "/" in name:
            return self._read(lambda db: queries.document_with_text(db, name))
        return self._read(lambda db: queries.find_source(db, name))

    @operation("read")
    def tree(self, source: OnlySource = None) -> _Folders:
        """Show the documents of `source`, or of all sources, as a tree of folders and files.

        Raises:
            NotFound: there is no source with this name.
        """
        names = [each.source_id for each in self._find_sources(source)]
        found = self._read(lambda db: [(name, queries.documents_of_source(db, name)) for name in names])
        return [make_tree_of_folders(name, documents) for name, documents in found]

    @operation("read")
    def status(self, source: OnlySource = None) -> _Statuses:
        """Show the state of `source`, or of all sources: progress, counts, and errors.

        Raises:
            NotFound: there is no source with this name.
        """
        return [
            to_source_status(each, self._open_records_of_source(each.source_id).read_job())
            for each in self._find_sources(source)
        ]

    @operation("read")
    def jobs(self) -> _Jobs:
        """List the last indexing of each source, newest first, with its progress or result.

        The list is stored in cache/, and is lost if cache/ is deleted.
        """
        jobs = (self._open_records_of_source(each.source_id).read_job() for each in self.list())
        return sorted(filter(None, jobs), key=lambda job: job.started, reverse=True)

    def _find_sources(self, source: str | None) -> _Sources:
        found = [each for each in self.list() if source in (None, each.source_id)]
        if source is not None and not found:
            raise make_not_found_error("source_not_found", source)
        return found

    @operation("append", missing="document_not_found")
    def remove(self, name: DocumentName) -> Position | Literal[False]:
        """Remove a source with all its documents, or one document of a source.

        The files themselves stay. To restore a removed document, add its file by name.

        Raises:
            BadInput: another copy of the store refreshes the source of the document.
        """
        source_id, is_document, file = name.partition("/")
        # This comes first, as locking the records creates their folder: a missing store must stay missing.
        self._decide(queries.list_registered_sources)
        with self._open_records_of_source(source_id).holding_source_lock(self._lock_timeout):
            found, versions = self._source_and_versions(source_id)
            if (file not in versions) if is_document else (found is None and not versions):
                return False
            if is_document and found is not None and self.is_of_another_copy(found):
                claim = format_call_to_claim_source(source_id)
                raise BadInput(
                    f"the source {source_id!r} is refreshed by another copy (writer {found.writer})",
                    hint=f"remove the document there or claim the source first: {claim}",
                )
            if is_document:
                return self._append(make_removal_events(source_id, found, file))[-1]
            return self._append_one(SourceRemoved(source_id=source_id))

    def _register_and_index_folder(
        self, request: FolderRequest, progress: Progress | None, *, claims: bool
    ) -> IndexingReport:
        with self._open_records_of_source(request.source_id).holding_source_lock(self._lock_timeout):
            before, versions = self._source_and_versions(request.source_id)
            registered = self._decide(queries.list_registered_sources)
            is_of_another = before is not None and self.is_of_another_copy(before)
            if before is not None and is_of_another and not claims:
                return make_plan_without_changes(before, versions).create_empty_report(
                    registered_by=before.writer
                )
            # On another machine the folder may have another path.
            registration = build_registration(request, before, may_move=is_of_another)
            is_new = (
                before is None
                or before.writer not in self._own_writers()
                or make_registration_event(before) != registration
            )
            plan = SourcePlan(registration, is_new, versions)
            report = Indexing(plan, self._tools, progress).run(is_by_name=True)
            # This comes after the reading, as it projects the new events.
            here = Path(report.root)
            others = [Path(each.root) for each in registered if each.source_id != report.source_id]
            if any(here.is_relative_to(root) or root.is_relative_to(here) for root in others):
                report.shared = self._read(lambda db: queries.count_shared_files(db, request.source_id))
            return report

    def is_of_another_copy(self, source: Registered) -> bool:
        """Whether another copy of the store registered the source and thus refreshes it."""
        return source.writer not in ("", *self._own_writers())

    def _refresh_source(self, source: Registered, progress: Progress | None) -> IndexingReport:
        plan = make_plan_without_changes(source, {})
        try:
            with self._open_records_of_source(source.source_id).holding_source_lock(self._lock_timeout):
                # Another process may have changed the registration meanwhile.
                found, versions = self._source_and_versions(source.source_id)
                if found is None:
                    return plan.create_empty_report(error="the source was removed")
                plan = make_plan_without_changes(found, versions)
                if self.is_of_another_copy(found):
                    return plan.create_empty_report(registered_by=found.writer)
                return Indexing(plan, self._tools, progress).run(is_by_name=False)
        except (OSError, Busy) as error:
            return plan.create_empty_report(error=describe_indexing_error(error))

    def _open_records_of_source(self, source_id: str) -> SourceRecords:
        return SourceRecords(self._tools.store, source_id)

    def _source_and_versions(self, source_id: str) -> tuple[Registered | None, dict[str, str]]:
        """Return the source, if it is registered, and its documents' versions, keyed by file."""
        registered, versions = self._decide(
            lambda db: (queries.list_registered_sources(db, source_id), queries.hashes_by_file(db, source_id))
        )
        return next(iter(registered), None), versions


FILES = ("MEMORY.md", "memory/*.md", USER_FILE)
"""The workspace files that are read."""


class Workspaces(OperationGroup):
    """The workspaces of a store: `store.workspaces`.

    Each workspace is a source of kind `memory`; `store.documents.refresh` also refreshes workspaces.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._documents = Documents(engine)

    @operation("append", reads_paths=True)
    def add(
        self,
        path: Annotated[PathField, Meta(title="DIR"), "The folder."],
        *,
        source: Annotated[str | None, Meta(title="NAME"), "Its name; by default the folder's."] = None,
        progress: ProgressField = None,
    ) -> IndexingReport:
        """Register an agent's folder as a workspace, and index its new and changed notes.

        MEMORY.md and memory/*.md are searched as memories. Values in USER.md that the core memory lacks are
        added to it, except values that were deleted there. `store.documents.refresh()` reads later changes.

        Raises:
            BadInput: a source of documents has this name.
            BadInput, Busy, LogError, DatabaseError: as `Documents.add`.
        """
        name = Path(path).absolute().name if source is None else source
        if name in self._sources_of_documents():
            raise BadInput(
                f"{name!r} is already a source of documents",
                hint=f"use another name for the workspace, or remove the source first:"
                f" store.documents.remove({name!r})",
            )
        return self._documents.add(path, source=source, include=FILES, kind="memory", progress=progress)

    def _sources_of_documents(self) -> set[str]:
        try:
            return {each.source_id for each in self._documents.list() if each.kind == "docs"}
        except NotFound:  # there is no store yet
            return set()

    @operation("read")
    def list(self) -> list[Source]:
        """List the workspaces by name."""
        return [each for each in self._documents.list() if each.kind == "memory"]

    @operation("append", missing="source_not_found")
    def remove(self, name: Annotated[str, "The workspace."]) -> Position | Literal[False]:
        """Remove a workspace and the memories from its files.

        The files themselves and the core memory stay.
        """
        if not any(each.source_id == name for each in self.list()):
            return False
        return self._documents.remove(name)
