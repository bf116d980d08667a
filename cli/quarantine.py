"""memlog quarantine."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.requests.maintenance import ListQuarantine


@request_command(ListQuarantine)
@format_options
def quarantine(ctx: click.Context, asked: ListQuarantine) -> None:
    with open_store(ctx) as store:
        lines = store.maintenance.quarantine(asked)
        rows = [
            (
                f"{line.stream}/{line.segment}",
                line.offset,
                line.bytes,
                line.reason,
                store.maintenance.explain(line),
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
