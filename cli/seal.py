"""memlog seal."""

import click

from memlog.cli.opening import open_log
from memlog.cli.output import json_option, one_line, print_json


@click.command()
@json_option
@click.pass_context
def seal(ctx: click.Context, as_json: bool) -> None:
    """Close and seal every segment of the log, the newest of each stream too.

    A seal says how long a segment is and what its bytes hash to, so that `verify` finds any change of it.
    What has a successor is sealed by itself; this seals the rest, before a backup for example. The next
    append begins a new segment.
    """
    made = open_log(ctx).seal()
    if as_json:
        print_json({"sealed": made})
        return
    for each in made:
        click.echo(one_line(f"{each.stream}/{each.segment}  {each.bytes} bytes, {each.lines} lines"))
    click.echo(f"sealed       {len(made)}")
