"""memlog embed."""

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.progress import progress_line
from memlog.projector.lifecycle import EMBED_BATCH


@click.command()
@click.option(
    "--batch",
    type=click.IntRange(1, 4096),
    default=EMBED_BATCH,
    show_default=True,
    help="Passages that are computed between two writes.",
)
@json_option
@click.pass_context
def embed(ctx: click.Context, batch: int, as_json: bool) -> None:
    """Give passages that have no vector one, in the order of their numbers.

    Interrupted at any moment, it goes on where it stopped; where nothing is to do it does nothing.
    """
    with open_store(ctx) as store, progress_line() as progress:
        report = store.embed(batch=batch, progress=progress)
    if as_json:
        print_json(report)
        return
    click.echo(
        f"vectors      {report.computed} computed, {report.cached} from the cache, {report.pending} to do"
    )
