"""memlog secrets."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.requests.erasure import FindSecrets


@request_command(FindSecrets)
@format_options
def secrets(ctx: click.Context, asked: FindSecrets) -> None:
    with open_store(ctx) as store:
        found = store.erasure.secrets(asked)
    rows = [(each.kind, f"{each.stream}/{each.segment}:{each.line}", each.id) for each in found]
    answer = Answer(
        document={"secrets": found},
        table=Table(("kind", "position", "id"), rows),
        records=found,
        notes=[] if found else ["none that memlog knows the shape of"],
    )
    print_answer(ctx, answer)
