"""memlog show."""

import click

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import dim, printable
from memlog.cli.request_options import request_command
from memlog.cli.turns import lines_around
from memlog.eventlog.errors import NotFound
from memlog.service.requests.conversations import GetEvent


@request_command(GetEvent, arguments=["id"])
@format_options
def show(ctx: click.Context, asked: GetEvent) -> None:
    with open_store(ctx) as store:
        found = store.get(asked)
    if found is None:
        raise NotFound(
            f"no event or memory {asked.id!r}", hint="memlog query prints ids", code="event_not_found"
        )
    place = found.position
    position = f"{place.stream}/{place.segment}:{place.line} (byte {place.offset})"
    members = {"id": found.id, "type": found.type, "ts": found.ts, "at": found.at}
    members |= {"position": position, "raw": found.raw}
    around = lines_around(found.around, found.id) if found.around else []
    answer = Answer(
        document=found,
        table=named_values(members | ({"around": "\n".join(around)} if around else {})),
        text=[dim(printable(position)), printable(found.raw), *around],
        notes=[f"{found.type}: only a message has neighbours"] if asked.around and not around else [],
    )
    print_answer(ctx, answer)
