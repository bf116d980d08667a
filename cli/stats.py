"""memlog stats."""

from collections.abc import Iterator

import click
import msgspec

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.maintenance.stats import Stats
from memlog.service.requests.maintenance import CountStats


@request_command(CountStats)
@format_options
def stats(ctx: click.Context, asked: CountStats) -> None:
    with open_store(ctx) as store:
        found = store.maintenance.stats(asked)
    print_answer(ctx, Answer(document=found, table=named_values(dict(_values(found)))))


def _values(found: Stats) -> Iterator[tuple[str, object]]:
    for member, value in msgspec.structs.asdict(found).items():
        if member == "counters":
            yield from value.items()
        elif isinstance(value, dict):
            yield from ((f"{member.replace('_', ' ')}: {name}", count) for name, count in value.items())
        else:
            yield member.replace("_", " "), value
