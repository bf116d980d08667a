"""memlog seal."""

import click

from memlog.cli.error_handler import LOSS
from memlog.cli.open_store import open_log
from memlog.cli.output import json_option, note, one_line, print_json
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.eventlog.seals.format import Seal as SegmentSeal
from memlog.eventlog.watermarks import OpenLoss
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
            _print(done.sealed, done.accepted)
    for loss in done.lost:
        note(f"{loss.stream}/{loss.why}")
    return LOSS if done.lost else 0


def _print(made: list[SegmentSeal], accepted: list[SegmentSeal | OpenLoss]) -> None:
    for each in made:
        click.echo(one_line(f"{each.stream}/{each.segment}: {each.bytes} bytes in {each.lines} lines"))
    for loss in accepted:
        click.echo(one_line(_accepted(loss)))
    click.echo(f"sealed       {len(made)}")
    if accepted:
        click.echo(f"accepted     {len(accepted)}")


def _accepted(each: SegmentSeal | OpenLoss) -> str:
    if isinstance(each, OpenLoss):
        return f"{each.stream}/{each.why}"
    return f"{each.stream}/{each.segment}: {each.lost} bytes lost, {each.bytes} left"
