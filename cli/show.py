"""memlog show."""

import click

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import dim, printable
from memlog.cli.param_types import TEXT
from memlog.cli.turns import NEIGHBOURS, lines_around
from memlog.eventlog.errors import NotFound


@click.command()
@click.argument("name", metavar="ID", type=TEXT)
@click.option("--stream", type=TEXT, help="Where the id stands, if in several streams.")
@click.option(
    "--around",
    "neighbours",
    type=NEIGHBOURS,
    default=0,
    metavar="N",
    help="Show a message with N others before and behind it in its session.",
)
@format_options
@click.pass_context
def show(ctx: click.Context, name: str, stream: str | None, neighbours: int) -> None:
    """Show the line of the log behind a hit: of an event's id, or a memory's."""
    with open_store(ctx) as store:
        found = store.get(name, stream=stream, around=neighbours)
    if found is None:
        raise NotFound(f"no event or memory {name!r}", hint="memlog query prints ids", code="event_not_found")
    place = found.position
    position = f"{place.stream}/{place.segment}:{place.line} (byte {place.offset})"
    members = {"id": found.id, "type": found.type, "ts": found.ts, "at": found.at}
    members |= {"position": position, "raw": found.raw}
    around = lines_around(found.around, found.id) if found.around else []
    answer = Answer(
        document=found,
        table=named_values(members | ({"around": "\n".join(around)} if around else {})),
        text=[dim(printable(position)), printable(found.raw), *around],
        notes=[f"{found.type}: only a message stands in a window"] if neighbours and not around else [],
    )
    print_answer(ctx, answer)
