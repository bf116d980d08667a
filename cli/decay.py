"""memlog decay."""

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.param_types import JSON_OBJECT


@click.command()
@click.option(
    "--rates",
    type=JSON_OBJECT,
    help="Factors from 0 to 1 by category, as a JSON object, in the place of memlog's own;"
    " what it does not name stays as it is.",
)
@json_option
@click.pass_context
def decay(ctx: click.Context, rates: dict[str, float] | None, as_json: bool) -> None:  # noqa: ARG001
    """Let a day pass: multiply the salience of every memory by the rate of its category.

    Once a UTC day, however often it is called, so a timer may call it at any time. The answer says whether
    it was done today already.
    """
    with open_store(ctx) as store:
        print_json(store.memories.decay(rates))
