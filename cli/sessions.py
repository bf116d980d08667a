"""memlog sessions."""

import click

from memlog import Session
from memlog.cli.answer import format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import minute
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.conversations import ListSessions

_COLUMNS = ("chat", "began", "messages", "model", "first message")


@request_command(ListSessions)
@format_options
def sessions(ctx: click.Context, asked: ListSessions) -> None:
    with open_store(ctx) as store:
        found = store.conversations.sessions(asked)
    print_answer(ctx, list_answer("sessions", found, _COLUMNS, _row, if_empty="no session yet"))


def _row(session: Session) -> tuple[object, ...]:
    began = minute(session.created_at)
    return session.chat, began, session.messages, session.model, session.session_start
