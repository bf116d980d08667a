"""What was said and written around a place, for people."""

from collections.abc import Callable
from typing import Any

import click

from memlog.cli.output import dim, minute, one_line, printable
from memlog.cli.param_types import count
from memlog.query.search.expansion import MAX_NEIGHBOURS, Around
from memlog.query.speakers import speaker
from memlog.query.window import WindowMessage


def window_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--last`, `--tokens` and `--across-sessions`: how much of a conversation is read."""
    for option in (
        click.option(
            "--across-sessions", is_flag=True, help="Also what was said before the last session break."
        ),
        click.option("--tokens", type=count(1), help="Only whole messages that fit into so many tokens."),
        click.option("--last", type=count(1), help="At most so many messages, the newest."),
    ):
        command = option(command)
    return command


NEIGHBOURS = click.IntRange(0, MAX_NEIGHBOURS)
"""How many neighbours there are to be on either side."""


def who(message: WindowMessage) -> str:
    """Who says it: the role, and the speaker's name."""
    return speaker(message.role, message.name)


def turn(message: WindowMessage) -> str:
    """A message, on lines of its own."""
    head = one_line(f"[{minute(message.ts)}] {who(message)}:")
    return set_in(f"{head} {printable(message.content)}", 4)


def lines_around(found: Around, own_id: str) -> list[str]:
    """The messages around the one with the id `own_id`, which has a `>`; or the text around a passage."""
    if found.content is not None:
        head = dim(f"  lines {found.start_line} to {found.end_line}:")
        return [head, set_in(f"    {printable(found.content.rstrip())}", 4)]
    return [
        set_in(f"{'>' if message.id == own_id else ' '} {turn(message)}", 2) for message in found.messages
    ]


def set_in(text: str, width: int) -> str:
    """`text` with its further lines set in, so that none can pass for what begins farther left."""
    return text.replace("\n", "\n" + " " * width)
