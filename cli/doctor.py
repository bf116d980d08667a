"""memlog doctor."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.service.maintenance.doctor import is_well
from memlog.service.requests.maintenance import Examine


@request_command(Examine, adds="Exit 1 where there is a problem. `verify` reads every byte of the log.")
@format_options
def doctor(ctx: click.Context, asked: Examine) -> int:
    with open_store(ctx) as store:
        findings = store.maintenance.examine(asked)
    rows = [(each.check, each.state, each.finding, each.remedy) for each in findings]
    answer = Answer(
        document={"ok": is_well(findings), "findings": findings},
        table=Table(("check", "state", "finding", "remedy"), rows),
        records=findings,
    )
    with reader_may_go():
        print_answer(ctx, answer)
    return 0 if is_well(findings) else 1
