"""memlog secrets."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store


@click.command()
@format_options
@click.pass_context
def secrets(ctx: click.Context) -> None:
    """List where the log holds what looks like a key: its kind, and where. The key is not shown.

    Also where it was forgotten and not yet overwritten. memlog forget ID, then memlog scrub take it away;
    memlog append --redact, or the setting redact, masks keys before they are written.
    """
    with open_store(ctx) as store:
        found = store.secrets()
    rows = [(each.kind, f"{each.stream}/{each.segment}:{each.line}", each.id) for each in found]
    answer = Answer(
        document={"secrets": found},
        table=Table(("kind", "position", "id"), rows),
        records=found,
        notes=[] if found else ["none that memlog knows the shape of"],
    )
    print_answer(ctx, answer)
