"""memlog doctor."""

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.standard_streams import reader_may_go
from memlog.service.maintenance.doctor import is_well


@click.command()
@click.option(
    "--fix",
    is_flag=True,
    help="Make anew what is disposable (read model, cache), and take permissions from others.",
)
@format_options
@click.pass_context
def doctor(ctx: click.Context, fix: bool) -> int:
    """Look at the store and this machine, and say what to do where something is not as it should be.

    SQLite, the vector extension, the model, the file system, room, permissions, the read model, the cache,
    and the log's ends, seals, days and unread files. Exit 1 where there is a problem. The log is never
    changed; `verify` reads every byte of it.
    """
    with open_store(ctx) as store:
        findings = store.examine(fix=fix)
    rows = [(each.check, each.state, each.finding, each.remedy) for each in findings]
    answer = Answer(
        document={"ok": is_well(findings), "findings": findings},
        table=Table(("check", "state", "finding", "remedy"), rows),
        records=findings,
    )
    with reader_may_go():
        print_answer(ctx, answer)
    return 0 if is_well(findings) else 1
