"""memlog window."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import minute
from memlog.cli.request_options import request_command
from memlog.cli.turns import turn, who
from memlog.service.requests.conversations import ReadWindow


@request_command(ReadWindow)
@format_options
def window(ctx: click.Context, asked: ReadWindow) -> None:
    with open_store(ctx) as store:
        found = store.conversations.window(asked)
    answer = Answer(
        document=found,
        table=Table(
            ("time", "who", "id", "content"),
            [(minute(message.ts), who(message), message.id, message.content) for message in found.messages],
        ),
        records=found.messages,
        text=[turn(message) for message in found.messages],
        notes=[] if found.messages else ["nothing said yet in this session"],
    )
    print_answer(ctx, answer)
