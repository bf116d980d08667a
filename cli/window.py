"""memlog window."""

from typing import Any

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import minute
from memlog.cli.param_types import CHAT
from memlog.cli.turns import turn, who, window_options


@click.command()
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    required=True,
    help="The conversation, split at the first colon.",
)
@window_options
@format_options
@click.pass_context
def window(ctx: click.Context, /, chat: tuple[str, str], **asked: Any) -> None:  # noqa: ANN401
    """Show the newest messages of a chat since its last session break, oldest first.

    At most 50 where neither --last nor --tokens says how many.
    """
    with open_store(ctx) as store:
        found = store.window(*chat, **asked)
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
