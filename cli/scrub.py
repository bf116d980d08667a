"""memlog scrub."""

from collections.abc import Iterator

import click
from msgspec.structs import replace

from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer
from memlog.cli.confirm import agrees, check_can_ask, counted
from memlog.cli.open_store import open_store
from memlog.cli.param_types import TEXT
from memlog.cli.progress import progress_line
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.cli.stdin import stdin_text
from memlog.service.erasure.byte_search import Proof
from memlog.service.erasure.reports import ScrubReport
from memlog.service.requests.erasure import Scrub


@request_command(
    Scrub,
    adds="It cannot reach backups, snapshots, git's history and other copies, nor what the disk itself keeps"
    " of blocks that were given back or written elsewhere.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--prove",
    type=TEXT,
    metavar="TEXT",
    help="Overwrite nothing: search every byte of the store for TEXT, as it is and as JSON may spell it;"
    " - reads it from stdin. Exit 1 where it is found.",
)
@format_options
def scrub(ctx: click.Context, asked: Scrub, *, yes: bool, prove: str | None) -> int:
    if prove is not None:
        if yes:
            raise click.UsageError("--prove overwrites nothing: there is nothing to say --yes to", ctx)
        return _prove(ctx, stdin_text() if prove == "-" else prove)
    check_can_ask(ctx, is_yes=yes)

    def confirm(found: ScrubReport) -> bool:
        what = f"{counted(found.lines, 'line')} in {counted(found.segments, 'segment')}"
        return yes or agrees(f"Overwrite {what} for ever, and build a new read model?")

    with open_store(ctx) as store, progress_line() as progress:
        done = store.erasure.scrub(replace(asked, confirm=confirm, progress=progress))
    values = {
        "lines": done.lines,
        "bytes": done.bytes,
        "segments": done.segments,
        "generation": done.generation,
        "vectors": done.vectors,
        "result": "done" if done.done else "nothing was done",
    }
    print_answer(ctx, Answer(document=done, table=named_values(values), notes=done.notes))
    return 0


def _prove(ctx: click.Context, text: str) -> int:
    with open_store(ctx) as store:
        proof = store.erasure.prove(text)
    answer = Answer(
        document=proof,
        table=Table(("file", "offset"), [(each.file, each.offset) for each in proof.found]),
        records=proof.found,
        notes=list(_notes(proof)),
    )
    with reader_may_go():
        print_answer(ctx, answer)
    return 1 if proof.found else 0


def _notes(proof: Proof) -> Iterator[str]:
    read = f"{counted(proof.files, 'file')}, {counted(proof.bytes, 'byte')}"
    places = counted(len(proof.found), "place")
    yield f"found in {places} of {read}" if proof.found else f"not found in {read}"
    for name in proof.git:
        yield (
            f"{name}: git's history was not searched, since its objects are compressed;"
            " docs/copies.md says how to search it and how to begin a new one"
        )
    for name in proof.left_out:
        yield f"{name} is no file, and was not read"
