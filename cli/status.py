"""memlog status."""

import click
import msgspec

from memlog.cli.formats import Answer, format_options, named_values, print_answer, silence
from memlog.cli.opening import open_store


@click.command()
@format_options
@click.pass_context
def status(ctx: click.Context) -> None:
    """Say what stands in the store, how far the read model is, and what works here."""
    with open_store(ctx) as store:
        found = store.status()
    values = {
        name.replace("_", " "): "none" if value is None else value
        for name, value in msgspec.structs.asdict(found).items()
        if name != "silent"
    }
    print_answer(ctx, Answer(document=found, table=named_values(values), notes=silence(found.silent)))
