"""memlog docs, workspace."""

from collections import Counter
from collections.abc import Iterator

import click
import msgspec
from msgspec.structs import asdict, replace

from memlog import DocumentFile, DocumentFolder, DocumentText
from memlog.cli.options.request_options import Store, request_command
from memlog.cli.options.settings import Group
from memlog.cli.output.answer import Answer, Columns, Done, Table, list_answer, named_values
from memlog.cli.output.output import counted, one_line, printable
from memlog.cli.process.error_handler import IO_FAILED
from memlog.service.documents.indexing import IndexingJob, SourceStatus
from memlog.service.documents.requests import (
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
from memlog.service.documents.sources import USER_FILE, IndexingReport
from memlog.service.documents.text_files import EXTRA, Reason
from memlog.service.engine.operation import required
from memlog.service.memory.core import CoreImportReport

_SOURCES: Columns = {
    "source": "source_id",
    "kind": "kind",
    "documents": "documents",
    "passages": "passages",
    "bytes": "bytes",
    "include": lambda source: " ".join(source.include) or "files of known types",
    "exclude": lambda source: " ".join(source.exclude),
    "root": "root",
}
_DOCUMENTS: Columns = {
    "file": "file",
    "type": "filetype",
    "bytes": "size",
    "passages": "passages",
    "modified": "mtime",
    "version": lambda document: document.version[:12],
}
_REPORTS: Columns = {
    "source": "source_id",
    "found": "found",
    "indexed": "indexed",
    "unchanged": "unchanged",
    "skipped": lambda report: len(report.skipped),
    "removed": "removed",
    "root": "root",
}
_SKIPPED: dict[Reason, str] = {
    "hidden": "hidden",
    "ignored": "left out by .gitignore",
    "link": "links",
    "special": "pipes and devices",
    "store": "the store itself",
    "type": "of other types",
    "binary": "binary",
    "not_utf8": "not UTF-8",
    "too_large": "too large",
    "no_reader": "that need memlog-store[documents]",
    "damaged": "damaged",
    "limit": "past a limit",
    "secret": "named like a key",
    "changing": "changing while they were read",
    "unreadable": "unreadable",
}
_TO_PUT_RIGHT: tuple[Reason, ...] = ("not_utf8", "too_large", "damaged", "changing")
_MOST_NAMED = 3


@click.group(cls=Group)
def docs() -> None:
    """Read files into the log as documents, which queries find with file and line."""


@request_command(AddSources, group=docs, arguments=["paths"], without=["kind"])
def add(store: Store, request: AddSources) -> Answer:
    return _answer_of_reports(store.documents.add_all(request))


@request_command(RefreshDocuments, group=docs, arguments=["source"])
def refresh(store: Store, request: RefreshDocuments) -> Answer:
    refreshed = store.documents.refresh(request)
    code = IO_FAILED if any(each.error for each in refreshed) else 0
    return replace(_answer_of_reports(refreshed), exit_code=code)


@request_command(ListDocuments, group=docs, arguments=["source"])
def list_(store: Store, request: ListDocuments) -> Answer:
    if request.source is None:
        return list_answer("sources", store.documents.list(), _SOURCES)
    return list_answer("documents", store.documents.list(request.source), _DOCUMENTS)


@request_command(GetDocument, group=docs, arguments=["name"])
def show(store: Store, request: GetDocument) -> Answer:
    found = required(store.documents.get, request)
    text = printable(found.content).splitlines() if isinstance(found, DocumentText) else None
    return Answer(found, named_values(asdict(found)), text=text)


@request_command(ShowDocumentTree, group=docs, arguments=["source"])
def tree(store: Store, request: ShowDocumentTree) -> Answer:
    folders = store.documents.tree(request)
    rows = [(path, each.passages, each.bytes) for folder in folders for path, each in _files_in(folder)]
    return Answer(
        document={"sources": folders},
        table=Table(("file", "passages", "bytes"), rows),
        records=folders,
        text=[line for folder in folders for line in _tree_lines(folder)],
        notes=[] if folders else ["no sources"],
    )


@request_command(ShowSourceStatus, group=docs, arguments=["source"])
def status(store: Store, request: ShowSourceStatus) -> Answer:
    return list_answer("sources", store.documents.status(request), _columns_of(SourceStatus))


@request_command(ListIndexingJobs, group=docs)
def jobs(store: Store, request: ListIndexingJobs) -> Answer:
    return list_answer("jobs", store.documents.jobs(request), _columns_of(IndexingJob))


@request_command(RemoveDocuments, group=docs, arguments=["name"])
def remove(store: Store, request: RemoveDocuments) -> Done:
    return Done(required(store.documents.remove, request), f"Removed {request.name}.")


@click.group(cls=Group)
def workspace() -> None:
    """Index the notes in an agent's folder as memories."""


@request_command(AddWorkspace, group=workspace, name="add", arguments=["path"])
def add_workspace(store: Store, request: AddWorkspace) -> Answer:
    return _answer_of_reports([store.workspaces.add(request)])


@request_command(ListWorkspaces, group=workspace, name="list")
def list_workspaces(store: Store, request: ListWorkspaces) -> Answer:
    return list_answer("workspaces", store.workspaces.list(request), _SOURCES)


@request_command(RemoveWorkspace, group=workspace, name="remove", arguments=["name"])
def remove_workspace(store: Store, request: RemoveWorkspace) -> Done:
    return Done(required(store.workspaces.remove, request), f"Removed {request.name}.")


def _columns_of(record: type[msgspec.Struct]) -> Columns:
    """Return a column for each member of records that begin with the id of their source."""
    return {name.removesuffix("_id"): name for name in record.__struct_fields__}


def _files_in(folder: DocumentFolder) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the files below a folder, with their paths relative to its parent."""
    for below in folder.folders:
        for path, file in _files_in(below):
            yield f"{folder.name}/{path}", file
    for file in folder.files:
        yield f"{folder.name}/{file.name}", file


def _tree_lines(folder: DocumentFolder) -> Iterator[str]:
    documents, passages = counted(folder.documents, "document"), counted(folder.passages, "passage")
    yield f"{one_line(folder.name)}/  {documents}, {passages}"
    entries: list[DocumentFolder | DocumentFile] = [*folder.folders, *folder.files]
    for number, entry in enumerate(entries, start=1):
        branch, below = ("└── ", "    ") if number == len(entries) else ("├── ", "│   ")
        if isinstance(entry, DocumentFolder):
            first, *others = _tree_lines(entry)
            yield f"{branch}{first}"
            yield from (f"{below}{line}" for line in others)
        else:
            yield f"{branch}{one_line(entry.name)}  {counted(entry.passages, 'passage')}"


def _answer_of_reports(reports: list[IndexingReport]) -> Answer:
    """Return a row for each source; notes on skipped files and on values from USER.md."""
    return list_answer(
        "sources", reports, _REPORTS, notes=[text for each in reports for text in _notes_of(each)]
    )


def _notes_of(added: IndexingReport) -> Iterator[str]:
    """Yield the number of skipped files by reason, and the names of those that a person can fix."""
    counts = Counter(each.reason for each in added.skipped)
    if counts:
        told = ", ".join(
            f"{counts[reason]} {words}{_named(reason, added)}"
            for reason, words in _SKIPPED.items()
            if counts[reason]
        )
        yield f"{added.source_id}: skipped {told}"
    for each in added.skipped:
        if each.detail is not None:
            yield f"{added.source_id}/{each.file}: {each.detail}"
    if added.warnings:
        first = added.warnings[0]
        count = "1 file was" if len(added.warnings) == 1 else f"{len(added.warnings):,} files were"
        yield f"{added.source_id}: {count} read with warnings, such as {first.file}: {first.text}"
    if any(each.reason == "no_reader" for each in added.skipped):
        yield f"HTML and PDF are read by libraries that are not installed: pip install '{EXTRA}'"
    if added.user is not None:
        yield f"{added.source_id}/{USER_FILE}: {_told_of_user(added.user)}"
    for source, shared in added.shared.items():
        files = counted(shared, "file")
        yield f"{added.source_id}: {files} also in {source}: queries return the one of the innermost folder"
    if added.problem is not None:
        yield added.problem


def _named(reason: Reason, added: IndexingReport) -> str:
    """Return in brackets the first files that were skipped for a reason that their owner can fix."""
    if reason not in _TO_PUT_RIGHT:
        return ""
    files = [each.file for each in added.skipped if each.reason == reason]
    more = ", …" if len(files) > _MOST_NAMED else ""
    return f" ({', '.join(files[:_MOST_NAMED])}{more})"


def _told_of_user(user: CoreImportReport) -> str:
    if user.set:
        return f"set {', '.join(each.key for each in user.set)} in the core memory"
    return "already imported" if user.kept else "says nothing new"
