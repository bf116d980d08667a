"""memlog sessions."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import minute
from memlog.cli.request_options import request_command
from memlog.service.requests.conversations import ListSessions


@request_command(ListSessions)
@format_options
def sessions(ctx: click.Context, asked: ListSessions) -> None:
    with open_store(ctx) as store:
        found = store.conversations.sessions(asked)
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
