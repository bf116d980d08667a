"""memlog session."""

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, note, print_json, print_raw
from memlog.cli.request_options import request_command
from memlog.service.requests.conversations import ReadSession


@click.group()
def session() -> None:
    """Read a conversation as it was said."""


@request_command(
    ReadSession, group=session, arguments=["chat"], adds="On a terminal control characters are escaped."
)
@json_option
def content(ctx: click.Context, asked: ReadSession, *, as_json: bool) -> None:
    with open_store(ctx) as store:
        found = store.conversations.session_content(asked)
    if as_json:
        print_json(found)
    elif found.messages:
        print_raw(found.content)
    else:
        note("nothing said yet in this session")
