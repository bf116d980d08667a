"""memlog window."""

import click

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, one_line, print_json, printable
from memlog.cli.types import CHAT


@click.command()
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    required=True,
    help="The conversation, split at the first colon.",
)
@click.option("--last", type=click.IntRange(min=1), help="At most so many messages; 50 without --tokens.")
@click.option(
    "--tokens", type=click.IntRange(min=1), help="Only whole messages that fit into so many tokens."
)
@json_option
@click.pass_context
def window(
    ctx: click.Context, chat: tuple[str, str], last: int | None, tokens: int | None, as_json: bool
) -> None:
    """Show the newest messages of a chat since its last session break, oldest first."""
    with open_store(ctx) as store:
        found = store.window(*chat, last=last, tokens=tokens)
    if as_json:
        print_json(found)
        return
    for message in found.messages:
        head = one_line(f"[{message.ts[:16].replace('T', ' ')}] {message.name or message.role}:")
        # Further lines are set in, so that no content can pass for another turn.
        click.echo(f"{head} {printable(message.content)}".replace("\n", "\n    "))
    if not found.messages:
        note("nothing said yet in this session")
