"""memlog session."""

from typing import Any

import click

from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, note, print_json, print_raw
from memlog.cli.param_types import CHAT
from memlog.cli.turns import window_options


@click.group()
def session() -> None:
    """Read a conversation as it was said."""


@session.command()
@click.argument("chat", metavar="CHANNEL:CHAT_ID", type=CHAT)
@window_options
@json_option
@click.pass_context
def content(ctx: click.Context, /, chat: tuple[str, str], as_json: bool, **asked: Any) -> None:  # noqa: ANN401
    """Print what was said in a chat since its last session break: all of it, oldest first.

    Each message is its speaker, `: `, and its text, unchanged; on a terminal control characters are escaped.
    `memlog window` tells messages apart, whatever they say.
    """
    with open_store(ctx) as store:
        found = store.session_content(*chat, **asked)
    if as_json:
        print_json(found)
    elif found.messages:
        print_raw(found.content)
    else:
        note("nothing said yet in this session")
