"""memlog digest."""

import click

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store


@click.command()
@click.option(
    "--content",
    is_flag=True,
    help="Only of what events say, not where they stand and when they were appended: to compare stores.",
)
@format_options
@click.pass_context
def digest(ctx: click.Context, content: bool) -> None:
    """Print a digest of the read model, once it has caught up: one number for all that it holds.

    Two read models of one log have the same digest, on any machine, however they were made.
    """
    with open_store(ctx) as store:
        found = store.digest(content=content)
    record = {"digest": found, "content": content}
    print_answer(ctx, Answer(document=record, table=named_values(record), text=[found]))
