"""memlog docs, workspace."""

from collections import Counter
from collections.abc import Iterator

import click
import msgspec
from msgspec.structs import asdict, replace

import memlog
from memlog import DocumentFile, DocumentFolder, DocumentText
from memlog.cli.options.request_options import Given, OperationCommands, Store, request_command
from memlog.cli.output.answer import Answer, Columns, Done, Table, list_answer, table_of_named_values
from memlog.cli.output.output import count_noun, escape_controls, put_on_one_line
from memlog.cli.process.error_handler import IO_FAILED
from memlog.service.documents.indexing import IndexingJob, SourceStatus
from memlog.service.documents.sources import USER_FILE, IndexingReport
from memlog.service.documents.text_files import INSTALL, Reason
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
    "no_reader": "that need the extra documents",
    "damaged": "damaged",
    "limit": "past a limit",
    "secret": "named like a key",
    "changing": "changing while they were read",
    "unreadable": "unreadable",
}
_TO_PUT_RIGHT: tuple[Reason, ...] = ("not_utf8", "too_large", "damaged", "changing")
_MOST_NAMED = 3


@click.group(cls=OperationCommands, operations="documents", without=("add",))
def docs() -> None:
    """Read files into the log as documents, so that queries find them by file and line."""


@request_command("documents.add_all", group=docs, without=["kind"])
def add(found: "list[memlog.IndexingReport]", _: Given) -> Answer:
    return _reports_answer(found)


@request_command("documents.refresh", group=docs)
def refresh(refreshed: "list[memlog.IndexingReport]", _: Given) -> Answer:
    code = IO_FAILED if any(each.error for each in refreshed) else 0
    return replace(_reports_answer(refreshed), exit_code=code)


@request_command("documents.list", group=docs, gets="store")
def list_(store: Store, given: Given) -> Answer:
    if given.source is None:
        return list_answer("sources", store.documents.list(), _SOURCES)
    return list_answer("documents", store.documents.list(given.source), _DOCUMENTS)


@request_command("documents.get", group=docs)
def show(found: "memlog.DocumentText | memlog.Source", _: Given) -> Answer:
    text = escape_controls(found.content).splitlines() if isinstance(found, DocumentText) else None
    return Answer(found, table_of_named_values(asdict(found)), text=text)


@request_command("documents.tree", group=docs)
def tree(folders: "list[memlog.DocumentFolder]", _: Given) -> Answer:
    rows = [(path, each.passages, each.bytes) for folder in folders for path, each in _files_below(folder)]
    return Answer(
        document={"sources": folders},
        table=Table(("file", "passages", "bytes"), rows),
        records=folders,
        text=[line for folder in folders for line in _tree_lines(folder)],
        notes=[] if folders else ["no sources"],
    )


@request_command("documents.status", group=docs)
def status(found: "list[memlog.SourceStatus]", _: Given) -> Answer:
    return list_answer("sources", found, _columns_of(SourceStatus))


@request_command("documents.jobs", group=docs)
def jobs(found: "list[memlog.IndexingJob]", _: Given) -> Answer:
    return list_answer("jobs", found, _columns_of(IndexingJob))


@request_command("documents.remove", group=docs)
def remove(found: "memlog.Position", given: Given) -> Done:
    return Done(found, f"Removed {given.name}.")


@click.group(cls=OperationCommands, operations="workspaces")
def workspace() -> None:
    """Index the notes in an agent's folder as memories."""


@request_command("workspaces.add", group=workspace, name="add")
def add_workspace(found: "memlog.IndexingReport", _: Given) -> Answer:
    return _reports_answer([found])


@request_command("workspaces.list", group=workspace, name="list")
def list_workspaces(found: "list[memlog.Source]", _: Given) -> Answer:
    return list_answer("workspaces", found, _SOURCES)


@request_command("workspaces.remove", group=workspace, name="remove")
def remove_workspace(found: "memlog.Position", given: Given) -> Done:
    return Done(found, f"Removed {given.name}.")


def _columns_of(record: type[msgspec.Struct]) -> Columns:
    """Return a column for each field of a struct, named after the field but without `_id`."""
    return {name.removesuffix("_id"): name for name in record.__struct_fields__}


def _files_below(folder: DocumentFolder) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the files below a folder, with paths that start with the folder's name."""
    for below in folder.folders:
        for path, file in _files_below(below):
            yield f"{folder.name}/{path}", file
    for file in folder.files:
        yield f"{folder.name}/{file.name}", file


def _tree_lines(folder: DocumentFolder) -> Iterator[str]:
    documents, passages = count_noun(folder.documents, "document"), count_noun(folder.passages, "passage")
    yield f"{put_on_one_line(folder.name)}/  {documents}, {passages}"
    entries: list[DocumentFolder | DocumentFile] = [*folder.folders, *folder.files]
    for number, entry in enumerate(entries, start=1):
        branch, below = ("└── ", "    ") if number == len(entries) else ("├── ", "│   ")
        if isinstance(entry, DocumentFolder):
            first, *others = _tree_lines(entry)
            yield f"{branch}{first}"
            yield from (f"{below}{line}" for line in others)
        else:
            yield f"{branch}{put_on_one_line(entry.name)}  {count_noun(entry.passages, 'passage')}"


def _reports_answer(reports: list[IndexingReport]) -> Answer:
    """Return an answer with one row per source, and notes on what was skipped or went wrong."""
    return list_answer(
        "sources", reports, _REPORTS, notes=[text for each in reports for text in _report_notes(each)]
    )


def _report_notes(added: IndexingReport) -> Iterator[str]:
    """Yield notes on skipped files, warnings, missing libraries, USER.md, shared files and problems."""
    counts = Counter(each.reason for each in added.skipped)
    if counts:
        told = ", ".join(
            f"{counts[reason]} {words}{_name_skipped_files(reason, added)}"
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
        yield f"HTML and PDF need missing libraries: {INSTALL}"
    if added.user is not None:
        yield f"{added.source_id}/{USER_FILE}: {_describe_user_import(added.user)}"
    for source, shared in added.shared.items():
        files = count_noun(shared, "file")
        yield f"{added.source_id}: {files} also in {source}: queries return the innermost folder's copy"
    if added.problem is not None:
        yield added.problem


def _name_skipped_files(reason: Reason, added: IndexingReport) -> str:
    """Return the first files skipped for `reason`, in brackets; "" if the user cannot change it."""
    if reason not in _TO_PUT_RIGHT:
        return ""
    files = [each.file for each in added.skipped if each.reason == reason]
    more = ", …" if len(files) > _MOST_NAMED else ""
    return f" ({', '.join(files[:_MOST_NAMED])}{more})"


def _describe_user_import(user: CoreImportReport) -> str:
    if user.set:
        return f"set {', '.join(each.key for each in user.set)} in the core memory"
    return "already imported" if user.kept else "says nothing new"
