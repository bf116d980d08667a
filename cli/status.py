"""memlog status."""

import click
import msgspec

from memlog.cli.answer import Answer, format_options, named_values, print_answer, silence
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.maintenance.status import Status
from memlog.service.requests.maintenance import ShowStatus


@request_command(ShowStatus)
@format_options
def status(ctx: click.Context, asked: ShowStatus) -> None:
    with open_store(ctx) as store:
        found = store.maintenance.status(asked)
    print_answer(ctx, Answer(document=found, table=named_values(values(found)), notes=silence(found.silent)))


def values(found: Status) -> dict[str, object]:
    """The members of a status by name, for people."""
    return {
        name.replace("_", " "): "none" if value is None else value
        for name, value in msgspec.structs.asdict(found).items()
        if name != "silent"
    }
