"""memlog digest."""

import click

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.requests.maintenance import Digest


@request_command(Digest)
@format_options
def digest(ctx: click.Context, asked: Digest) -> None:
    with open_store(ctx) as store:
        found = store.maintenance.digest(asked)
    record = {"digest": found, "content": asked.content}
    print_answer(ctx, Answer(document=record, table=named_values(record), text=[found]))
