"""memlog quarantine."""

import click

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, one_line, print_json


@click.command()
@json_option
@click.pass_context
def quarantine(ctx: click.Context, as_json: bool) -> None:
    """List the lines that could not be projected, with position and reason.

    Their bytes stay in the log as they are.
    """
    with open_store(ctx) as store:
        lines = store.quarantine()
        if as_json:
            print_json({"lines": lines})
            return
        for line in lines:
            click.echo(
                one_line(
                    f"{line.stream}/{line.segment} byte {line.offset}, {line.bytes} bytes: {line.reason}"
                )
            )
            click.echo(f"    {one_line(store.explain(line))}")
    if not lines:
        note("no line is quarantined")
