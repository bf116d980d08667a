"""memlog quarantine."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store


@click.command()
@format_options
@click.pass_context
def quarantine(ctx: click.Context) -> None:
    """List the lines that could not be projected, with position and reason.

    Their bytes stay in the log as they are.
    """
    with open_store(ctx) as store:
        lines = store.quarantine()
        rows = [
            (
                f"{line.stream}/{line.segment}",
                line.offset,
                line.bytes,
                line.reason,
                store.explain(line),
            )
            for line in lines
        ]
    answer = Answer(
        document={"lines": lines},
        table=Table(("segment", "offset", "bytes", "reason", "explanation"), rows),
        records=lines,
        notes=[] if lines else ["no line is quarantined"],
    )
    print_answer(ctx, answer)
