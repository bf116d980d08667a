"""memlog quarantine."""

import click

from memlog import QuarantinedLine
from memlog.cli.answer import format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.maintenance import ListQuarantine


@request_command(ListQuarantine)
@format_options
def quarantine(ctx: click.Context, asked: ListQuarantine) -> None:
    with open_store(ctx) as store:
        lines = store.maintenance.quarantine(asked)

        def row(line: QuarantinedLine) -> tuple[object, ...]:
            segment, why = f"{line.stream}/{line.segment}", store.maintenance.explain(line)
            return segment, line.offset, line.bytes, line.reason, why

        columns = ("segment", "offset", "bytes", "reason", "explanation")
        answer = list_answer("lines", lines, columns, row, if_empty="no line is quarantined")
    print_answer(ctx, answer)
