"""memlog docs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from memlog.cli.failures import IO_FAILED
from memlog.cli.formats import Answer, Table, format_options, print_answer
from memlog.cli.opening import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.progress import progress_line
from memlog.cli.types import PATH, TEXT
from memlog.eventlog.errors import NotFound
from memlog.query.documents import Document, Source
from memlog.service.documents import Added, unknown_source
from memlog.service.text_files import Reason

_ALL_TYPES = "files of known types"
_SKIPPED: dict[Reason, str] = {
    "hidden": "hidden",
    "link": "links",
    "special": "pipes and devices",
    "store": "the store itself",
    "type": "of other types",
    "binary": "binary",
    "not_utf8": "not UTF-8",
    "too_large": "too large",
    "unreadable": "unreadable",
}


@click.group()
def docs() -> None:
    """Read files into the log as documents, which queries find with file and line."""


@docs.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("--source", type=TEXT, metavar="NAME", help="The source's name; else the folder's.")
@click.option(
    "--include",
    type=TEXT,
    multiple=True,
    metavar="GLOB",
    help="Only files that match, of any type, such as 'guide/*.md' or '**/*.py'.",
)
@click.option("--exclude", type=TEXT, multiple=True, metavar="GLOB", help="No files that match.")
@format_options
@click.pass_context
def add(
    ctx: click.Context,
    paths: tuple[Path, ...],
    source: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> None:
    """Make each PATH, a folder or a file of one, a source, and read what is new or changed.

    A second run does the rest of what was interrupted; where nothing has changed it appends nothing. Of a
    folder the text files of known types are read, or what --include matches. The globs are relative to the
    folder and stay with the source until others are given.
    """
    with open_store(ctx) as store, progress_line() as progress:
        added = store.documents.add_all(
            paths, source=source, include=include, exclude=exclude, progress=progress
        )
    print_answer(ctx, _answer_of_added(added))


@docs.command()
@click.argument("source", type=TEXT, required=False)
@format_options
@click.pass_context
def refresh(ctx: click.Context, source: str | None) -> None:
    """Read what is new or changed in a SOURCE, or in all of them, and remove what is gone.

    Where nothing has changed it appends nothing. The documents of a source whose folder is gone, or cannot
    be listed, stay until `memlog docs remove`.
    """
    with open_store(ctx) as store, progress_line() as progress:
        refreshed = store.documents.refresh(source, progress=progress)
    print_answer(ctx, _answer_of_added(refreshed))
    if any(each.error for each in refreshed):
        ctx.exit(IO_FAILED)


@docs.command("list")
@click.argument("source", type=TEXT, required=False)
@format_options
@click.pass_context
def list_(ctx: click.Context, source: str | None) -> None:
    """Print the sources, or the documents of a SOURCE."""
    with open_store(ctx) as store:
        answer = (
            _answer_of_sources(store.documents.list())
            if source is None
            else _answer_of_documents(store.documents.list(source))
        )
    print_answer(ctx, answer)


@docs.command()
@click.argument("name", type=TEXT, metavar="SOURCE[/FILE]")
@json_option
@click.pass_context
def remove(ctx: click.Context, name: str, as_json: bool) -> None:  # noqa: ARG001
    """Remove a SOURCE with all its documents, or one document of it, SOURCE/FILE.

    The files stay. A document that was removed comes back when its file is added by name.
    """
    with open_store(ctx) as store:
        position = store.documents.remove(name)
    if position is False:
        raise _unknown(name)
    print_json(position)


def _unknown(name: str) -> NotFound:
    source, is_document, _ = name.partition("/")
    if not is_document:
        return unknown_source(source)
    return NotFound(f"no document {name!r}", hint=f"memlog docs list {source}", code="document_not_found")


def _answer_of_added(added: list[Added]) -> Answer:
    rows = [
        (each.source_id, each.indexed, each.unchanged, each.removed, len(each.skipped), each.root)
        for each in added
    ]
    return Answer(
        document={"sources": added},
        table=Table(("source", "indexed", "unchanged", "removed", "skipped", "root"), rows),
        records=added,
        notes=[note for each in added for note in _notes_of(each)] or ([] if rows else ["no sources"]),
    )


def _notes_of(added: Added) -> Iterator[str]:
    """How many were skipped for which reason; and by name what somebody may have to put right."""
    counts = Counter(each.reason for each in added.skipped)
    if counts:
        told = ", ".join(f"{counts[reason]} {words}" for reason, words in _SKIPPED.items() if counts[reason])
        yield f"{added.source_id}: skipped {told}"
    for each in added.skipped:
        if each.detail is not None:
            yield f"{added.source_id}/{each.file}: {each.detail}"
    if added.error is not None:
        yield f"{added.source_id}: {added.error}: its documents stay"


def _answer_of_sources(sources: list[Source]) -> Answer:
    rows = [
        (
            each.source_id,
            each.kind,
            each.documents,
            each.passages,
            each.bytes,
            " ".join(each.include) or _ALL_TYPES,
            " ".join(each.exclude),
            each.root,
        )
        for each in sources
    ]
    columns = ("source", "kind", "documents", "passages", "bytes", "include", "exclude", "root")
    return Answer(
        document={"sources": sources},
        table=Table(columns, rows),
        records=sources,
        notes=[] if rows else ["no sources"],
    )


def _answer_of_documents(documents: list[Document]) -> Answer:
    columns = ("file", "type", "bytes", "passages", "modified", "version")
    rows = [
        (each.file, each.filetype, each.size, each.passages, each.mtime, each.version[:12])
        for each in documents
    ]
    return Answer(
        document={"documents": documents},
        table=Table(columns, rows),
        records=documents,
        notes=[] if rows else ["no documents"],
    )
