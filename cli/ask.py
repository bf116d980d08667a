"""memlog ask."""

import click

from memlog.cli.answer import format_options, print_answer
from memlog.cli.fact import answer_of
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.requests.facts import AskFacts


@request_command(AskFacts, joined="question", may_be_blank=True)
@format_options
def ask(ctx: click.Context, asked: AskFacts) -> None:
    with open_store(ctx) as store:
        found = store.facts.ask(asked)
    print_answer(ctx, answer_of(found))
