"""memlog seal."""

import click

from memlog.cli.failures import LOSS
from memlog.cli.opening import open_log
from memlog.cli.output import json_option, note, one_line, print_json
from memlog.cli.standard_streams import reader_may_go
from memlog.eventlog.seals.lines import Seal
from memlog.eventlog.store_folder import check_store


@click.command()
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Say that what is missing or changed of sealed segments is lost: seal what stands of them.",
)
@json_option
@click.pass_context
def seal(ctx: click.Context, accept_loss: bool, as_json: bool) -> int:
    """Close and seal every segment of the log, the newest of each stream too.

    A seal says how long a segment is and what its bytes hash to, so that `verify` finds any change of it.
    What has a successor is sealed by itself; this seals the rest, before a backup for example. The next
    append begins a new segment.

    Where a sealed segment is gone or shorter, its stream stops: exit 3, until it is put back or the loss
    is accepted.
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
        note(f"{loss.stream} stops: {loss.why}")
    return LOSS if lost else 0


def _print(made: list[Seal], accepted: list[Seal]) -> None:
    for each in made:
        click.echo(one_line(f"{each.stream}/{each.segment}: {each.bytes} bytes in {each.lines} lines"))
    for each in accepted:
        click.echo(one_line(f"{each.stream}/{each.segment}: {each.lost} bytes lost, {each.bytes} left"))
    click.echo(f"sealed       {len(made)}")
    if accepted:
        click.echo(f"accepted     {len(accepted)}")
