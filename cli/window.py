"""memlog window."""

import click

from memlog.cli.formats import Answer, Table, format_options, print_answer
from memlog.cli.opening import open_store
from memlog.cli.output import minute
from memlog.cli.turns import turn, who
from memlog.cli.types import CHAT, count


@click.command()
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    required=True,
    help="The conversation, split at the first colon.",
)
@click.option("--last", type=count(1), help="At most so many messages; 50 without --tokens.")
@click.option("--tokens", type=count(1), help="Only whole messages that fit into so many tokens.")
@format_options
@click.pass_context
def window(ctx: click.Context, chat: tuple[str, str], last: int | None, tokens: int | None) -> None:
    """Show the newest messages of a chat since its last session break, oldest first."""
    with open_store(ctx) as store:
        found = store.window(*chat, last=last, tokens=tokens)
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
