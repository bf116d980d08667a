"""memlog docs."""

from collections import Counter
from collections.abc import Iterator, Sequence

import click
import msgspec
from msgspec.structs import replace

from memlog import Document, DocumentFile, DocumentFolder, DocumentText, Source
from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer
from memlog.cli.error_handler import IO_FAILED
from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, one_line, print_done, printable
from memlog.cli.param_types import TEXT
from memlog.cli.progress import progress_line
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.eventlog.errors import NotFound
from memlog.service.core.facade import CoreImportReport
from memlog.service.documents.facade import unknown_source
from memlog.service.documents.records import IndexingJob, SourceStatus
from memlog.service.documents.sources import USER_FILE, IndexingReport
from memlog.service.documents.text_files import EXTRA, Reason
from memlog.service.requests.documents import (
    AddSources,
    ListDocuments,
    ListIndexingJobs,
    RefreshDocuments,
    RemoveDocuments,
    ShowDocumentTree,
    ShowSourceStatus,
)

_ALL_TYPES = "files of known types"
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


@click.group()
def docs() -> None:
    """Read files into the log as documents, which queries find with file and line."""


@request_command(AddSources, group=docs, arguments=["paths"], without=["kind"])
@format_options
def add(ctx: click.Context, asked: AddSources) -> None:
    with open_store(ctx) as store, progress_line() as progress:
        added = store.documents.add_all(replace(asked, progress=progress))
    print_answer(ctx, answer_of_added(added))


@request_command(RefreshDocuments, group=docs, arguments=["source"])
@format_options
def refresh(ctx: click.Context, asked: RefreshDocuments) -> None:
    with open_store(ctx) as store, progress_line() as progress:
        refreshed = store.documents.refresh(replace(asked, progress=progress))
    with reader_may_go():
        print_answer(ctx, answer_of_added(refreshed))
    if any(each.error for each in refreshed):
        ctx.exit(IO_FAILED)


@request_command(ListDocuments, group=docs, arguments=["source"])
@format_options
def list_(ctx: click.Context, asked: ListDocuments) -> None:
    with open_store(ctx) as store:
        answer = (
            answer_of_sources(store.documents.list())
            if asked.source is None
            else _answer_of_documents(store.documents.list(asked.source))
        )
    print_answer(ctx, answer)


@docs.command()
@click.argument("name", type=TEXT, metavar="SOURCE[/FILE]")
@format_options
@click.pass_context
def show(ctx: click.Context, name: str) -> None:
    """Show a SOURCE, or the text of a document of it, SOURCE/FILE, as it was read."""
    source, is_document, _ = name.partition("/")
    with open_store(ctx) as store:
        if not is_document:
            found: Source | DocumentText | None = next(
                (each for each in store.documents.list() if each.source_id == source), None
            )
        else:
            found = store.documents.get(name)
    if found is None:
        raise _unknown(name)
    print_answer(ctx, _answer_of_one(found))


@request_command(ShowDocumentTree, group=docs, arguments=["source"])
@format_options
def tree(ctx: click.Context, asked: ShowDocumentTree) -> None:
    with open_store(ctx) as store:
        folders = store.documents.tree(asked)
    rows = [(path, each.passages, each.bytes) for folder in folders for path, each in _files_in(folder)]
    answer = Answer(
        document={"sources": folders},
        table=Table(("file", "passages", "bytes"), rows),
        records=folders,
        text=[line for folder in folders for line in _tree_lines(folder)],
        notes=[] if folders else ["no sources"],
    )
    print_answer(ctx, answer)


@request_command(ShowSourceStatus, group=docs, arguments=["source"])
@format_options
def status(ctx: click.Context, asked: ShowSourceStatus) -> None:
    with open_store(ctx) as store:
        found = store.documents.status(asked)
    print_answer(ctx, _answer_of("sources", ("source", *SourceStatus.__struct_fields__[1:]), found))


@request_command(ListIndexingJobs, group=docs)
@format_options
def jobs(ctx: click.Context, asked: ListIndexingJobs) -> None:
    with open_store(ctx) as store:
        found = store.documents.jobs(asked)
    print_answer(ctx, _answer_of("jobs", ("source", *IndexingJob.__struct_fields__[1:]), found))


@request_command(RemoveDocuments, group=docs, arguments=["name"])
@json_on_terminal_option
def remove(ctx: click.Context, asked: RemoveDocuments) -> None:
    with open_store(ctx) as store:
        position = store.documents.remove(asked)
    if position is False:
        raise _unknown(asked.name)
    print_done(ctx, position, f"Removed {asked.name}.")


def _unknown(name: str) -> NotFound:
    source, is_document, _ = name.partition("/")
    if not is_document:
        return unknown_source(source)
    return NotFound(f"no document {name!r}", hint=f"memlog docs list {source}", code="document_not_found")


def _answer_of_one(found: Source | DocumentText) -> Answer:
    table = named_values(msgspec.structs.asdict(found))
    text = printable(found.content).splitlines() if isinstance(found, DocumentText) else None
    return Answer(document=found, table=table, text=text)


def _answer_of(name: str, columns: tuple[str, ...], found: Sequence[msgspec.Struct]) -> Answer:
    return list_answer(name, found, columns, lambda each: list(msgspec.structs.asdict(each).values()))


def _files_in(folder: DocumentFolder) -> Iterator[tuple[str, DocumentFile]]:
    """The files below a folder, with their paths from it on."""
    for below in folder.folders:
        for path, file in _files_in(below):
            yield f"{folder.name}/{path}", file
    for file in folder.files:
        yield f"{folder.name}/{file.name}", file


def _tree_lines(folder: DocumentFolder) -> Iterator[str]:
    """A folder and its contents, a line each, indented."""
    counted = f"{_many(folder.documents, 'document')}, {_many(folder.passages, 'passage')}"
    yield f"{one_line(folder.name)}/  {counted}"
    entries: list[DocumentFolder | DocumentFile] = [*folder.folders, *folder.files]
    for number, entry in enumerate(entries, start=1):
        branch, below = ("└── ", "    ") if number == len(entries) else ("├── ", "│   ")
        if isinstance(entry, DocumentFolder):
            first, *others = _tree_lines(entry)
            yield f"{branch}{first}"
            yield from (f"{below}{line}" for line in others)
        else:
            yield f"{branch}{one_line(entry.name)}  {_many(entry.passages, 'passage')}"


def _many(count: int, of_what: str) -> str:
    return f"{count} {of_what}{'' if count == 1 else 's'}"


def answer_of_added(added: list[IndexingReport]) -> Answer:
    """A row for each source; notes on skipped files and on values from USER.md."""
    rows = [
        (each.source_id, each.found, each.indexed, each.unchanged, len(each.skipped), each.removed, each.root)
        for each in added
    ]
    return Answer(
        document={"sources": added},
        table=Table(("source", "found", "indexed", "unchanged", "skipped", "removed", "root"), rows),
        records=added,
        notes=[note for each in added for note in _notes_of(each)] or ([] if rows else ["no sources"]),
    )


def _notes_of(added: IndexingReport) -> Iterator[str]:
    """The number of skipped files by reason, and the names of those that a person can fix."""
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
    if added.problem is not None:
        yield added.problem


def _named(reason: Reason, added: IndexingReport) -> str:
    """In brackets the first files that were skipped for a reason that their owner can fix."""
    if reason not in _TO_PUT_RIGHT:
        return ""
    files = [each.file for each in added.skipped if each.reason == reason]
    more = ", …" if len(files) > _MOST_NAMED else ""
    return f" ({', '.join(files[:_MOST_NAMED])}{more})"


def _told_of_user(user: CoreImportReport) -> str:
    if user.set:
        return f"set {', '.join(each.key for each in user.set)} in the core memory"
    return "already imported" if user.kept else "says nothing new"


def answer_of_sources(sources: list[Source], name: str = "sources") -> Answer:
    """A row for each source. name: of the list, `sources` or `workspaces`."""
    columns = ("source", "kind", "documents", "passages", "bytes", "include", "exclude", "root")
    return list_answer(name, sources, columns, _source_row)


def _source_row(source: Source) -> tuple[object, ...]:
    counts = (source.documents, source.passages, source.bytes)
    patterns = (" ".join(source.include) or _ALL_TYPES, " ".join(source.exclude))
    return source.source_id, source.kind, *counts, *patterns, source.root


def _answer_of_documents(documents: list[Document]) -> Answer:
    columns = ("file", "type", "bytes", "passages", "modified", "version")
    return list_answer("documents", documents, columns, _document_row)


def _document_row(document: Document) -> tuple[object, ...]:
    version = document.version[:12]
    return document.file, document.filetype, document.size, document.passages, document.mtime, version
