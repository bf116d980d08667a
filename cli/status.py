"""memlog status."""

import click
import msgspec

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, print_json, printable


@click.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Say what stands in the store, how far the read model is, and what works here."""
    with open_store(ctx) as store:
        found = store.status()
    if as_json:
        print_json(found)
        return
    for name, value in msgspec.structs.asdict(found).items():
        if name != "silent":
            click.echo(printable(f"{name.replace('_', ' '):16} {'none' if value is None else value}"))
    for side, why in found.silent.items():
        note(f"{side}: {why}")
