"""memlog forget."""

from collections.abc import Iterator

import click
import msgspec
from msgspec.structs import replace

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.confirm import agrees, check_can_ask, counted
from memlog.cli.open_store import open_store
from memlog.cli.output import one_line
from memlog.cli.request_options import request_command
from memlog.service.erasure.reports import DoomedLine, ForgetReport
from memlog.service.requests.erasure import Forget

_COLUMNS = ("position", "id", "type", "words")


@request_command(Forget, arguments=["event_id"])
@click.option("--dry-run", is_flag=True, help="Only list what would be forgotten.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@format_options
def forget(ctx: click.Context, asked: Forget, *, dry_run: bool, yes: bool) -> None:
    if not dry_run:
        check_can_ask(ctx, is_yes=yes)

    def confirm(found: ForgetReport) -> bool:
        if dry_run or yes or not found.lines:
            return not dry_run
        for line in found.lines:
            click.echo(one_line(f"{_position(line)}  {line.id}  {line.words}"), err=True)
        return agrees(f"Forget {counted(len(found.lines), 'line')}?")

    with open_store(ctx) as store:
        done = store.erasure.forget(replace(asked, confirm=confirm))
    print_answer(ctx, _answer(done, dry_run=dry_run))


def _answer(done: ForgetReport, *, dry_run: bool) -> Answer:
    document = msgspec.structs.asdict(done) | {"dry_run": dry_run}
    return Answer(
        document=document,
        table=Table(_COLUMNS, [(_position(each), each.id, each.type, each.words) for each in done.lines]),
        records=done.lines,
        notes=list(_notes(done, dry_run=dry_run)),
    )


def _notes(done: ForgetReport, *, dry_run: bool) -> Iterator[str]:
    if not done.lines:
        yield "nothing to forget" + (": it was forgotten before" if done.already else "")
    elif dry_run:
        yield f"{counted(len(done.lines), 'line')} would be forgotten"
    elif done.redacted:
        yield f"{counted(done.redacted, 'event')} forgotten; memlog scrub overwrites their bytes in the log"
    else:
        yield "nothing was forgotten"
    for position in done.unreachable:
        yield f"{position} is in no stream: remove its file by hand"


def _position(line: DoomedLine) -> str:
    return f"{line.stream}/{line.segment}:{line.line}"
