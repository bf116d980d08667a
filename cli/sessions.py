"""memlog sessions."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import minute
from memlog.cli.param_types import CHAT


@click.command()
@click.option("--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only of this conversation.")
@click.option("--all", "is_all", is_flag=True, help="Earlier sessions, too.")
@format_options
@click.pass_context
def sessions(ctx: click.Context, chat: tuple[str, str] | None, is_all: bool) -> None:
    """List the current session of each chat, the one that began last first.

    A session is the part of a conversation between two session breaks.
    """
    with open_store(ctx) as store:
        found = store.sessions(chat, all=is_all)
    rows = [
        (each.chat, minute(each.created_at), each.messages, each.model, each.session_start) for each in found
    ]
    answer = Answer(
        document={"sessions": found},
        table=Table(("chat", "began", "messages", "model", "first message"), rows),
        records=found,
        notes=[] if found else ["no session yet"],
    )
    print_answer(ctx, answer)
