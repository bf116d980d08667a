"""memlog show."""

import click

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, print_json, printable
from memlog.cli.types import TEXT
from memlog.eventlog.errors import NotFound


@click.command()
@click.argument("name", metavar="ID", type=TEXT)
@click.option("--stream", type=TEXT, help="Where the id stands, if in several streams.")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, stream: str | None, as_json: bool) -> None:
    """Show the line of the log behind a hit: of an event's id, or a memory's."""
    with open_store(ctx) as store:
        found = store.get(name, stream=stream)
    if found is None:
        raise NotFound(f"no event or memory {name!r}", hint="memlog query prints ids", code="event_not_found")
    if as_json:
        print_json(found)
        return
    place = found.position
    click.echo(printable(f"{place.stream}/{place.segment}:{place.line} (byte {place.offset})"))
    click.echo(printable(found.raw))
