"""memlog seal."""

import click

from memlog.cli.error_handler import LOSS
from memlog.cli.open_store import open_log
from memlog.cli.output import json_option, note, one_line, print_json
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.service.maintenance.seal import SealReport
from memlog.service.maintenance.seal import seal as seal_log
from memlog.service.requests.maintenance import SealLog


@request_command(
    SealLog,
    adds="Exit 3 where a sealed segment is gone or shorter, or where bytes that were read of one without a"
    " seal are gone or changed, until they are put back or the loss is accepted.",
)
@json_option
def seal(ctx: click.Context, asked: SealLog, *, as_json: bool) -> int:
    done = seal_log(open_log(ctx), accept_loss=asked.accept_loss)
    with reader_may_go():
        if as_json:
            print_json(done)
        else:
            _print(done)
    for loss in done.lost:
        note(f"{loss.stream}/{loss.why}")
    return LOSS if done.lost else 0


def _print(report: SealReport) -> None:
    for each in report.sealed:
        click.echo(one_line(f"{each.stream}/{each.segment}: {each.bytes} bytes in {each.lines} lines"))
    for text in report.accepted_texts():
        click.echo(one_line(text))
    click.echo(f"sealed       {len(report.sealed)}")
    if report.accepted:
        click.echo(f"accepted     {len(report.accepted)}")
