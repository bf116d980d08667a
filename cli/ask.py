"""memlog ask."""

import click

from memlog.cli.answer import format_options, print_answer
from memlog.cli.fact import answer_of, any_chat_option, name_of
from memlog.cli.open_store import open_store
from memlog.cli.param_types import CHAT, TEXT


@click.command()
@click.argument("question", metavar="TEXT", type=TEXT)
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    help="Asked in this conversation; of the store without it.",
)
@any_chat_option
@format_options
@click.pass_context
def ask(ctx: click.Context, question: str, chat: tuple[str, str] | None, any_chat: bool) -> None:
    """Answer a question from what facts say, by fixed rules and no model.

    In English, Finnish, German, Russian, Spanish or Swedish, such as `second favourite colour`, `list my
    favourite colours`, `what is my city`. What is not stored, or not understood for certain, is not answered:
    I don't have that stored yet.
    """
    with open_store(ctx) as store:
        found = store.facts.ask(question, chat=name_of(chat), any_chat=any_chat)
    print_answer(ctx, answer_of(found))
