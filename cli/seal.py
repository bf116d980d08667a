"""memlog seal."""

import click

from memlog.cli.error_handler import LOSS
from memlog.cli.open_store import open_log
from memlog.cli.output import json_option, note, one_line, print_json
from memlog.cli.standard_streams import reader_may_go
from memlog.eventlog.seals.format import Seal
from memlog.eventlog.store_folder import check_store
from memlog.eventlog.watermarks import OpenLoss


@click.command()
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Accept that what is missing or changed is lost: take what is there now for the whole.",
)
@json_option
@click.pass_context
def seal(ctx: click.Context, accept_loss: bool, as_json: bool) -> int:
    """Close and seal every segment of the log, the newest of each stream too.

    A seal says how long a segment is and what its bytes hash to, so that `verify` finds any change of it.
    What has a successor is sealed by itself; this seals the rest, before a backup for example. The next
    append begins a new segment.

    Exit 3 where a sealed segment is gone or shorter, or where bytes that were read of one without a seal are
    gone or changed, until they are put back or the loss is accepted.
    """
    log = open_log(ctx)
    check_store(log.store)
    made = log.seal()
    accepted = log.accept_loss() if accept_loss else []
    lost = log.losses()
    with reader_may_go():
        if as_json:
            print_json({"sealed": made, "accepted": accepted, "lost": lost})
        else:
            _print(made, accepted)
    for loss in lost:
        note(f"{loss.stream}/{loss.why}")
    return LOSS if lost else 0


def _print(made: list[Seal], accepted: list[Seal | OpenLoss]) -> None:
    for each in made:
        click.echo(one_line(f"{each.stream}/{each.segment}: {each.bytes} bytes in {each.lines} lines"))
    for loss in accepted:
        click.echo(one_line(_accepted(loss)))
    click.echo(f"sealed       {len(made)}")
    if accepted:
        click.echo(f"accepted     {len(accepted)}")


def _accepted(each: Seal | OpenLoss) -> str:
    if isinstance(each, OpenLoss):
        return f"{each.stream}/{each.why}"
    return f"{each.stream}/{each.segment}: {each.lost} bytes lost, {each.bytes} left"
