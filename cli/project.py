"""memlog project."""

import click
from msgspec.structs import replace

from memlog.cli.answer import Answer, format_options, named_values, print_answer, silence
from memlog.cli.open_store import open_store
from memlog.cli.progress import progress_line
from memlog.cli.request_options import request_command
from memlog.service.maintenance.project import ProjectReport
from memlog.service.requests.maintenance import Replay


@request_command(Replay)
@format_options
def project(ctx: click.Context, asked: Replay) -> None:
    with open_store(ctx) as store, progress_line() as progress:
        report = store.maintenance.project(replace(asked, progress=progress))
    print_answer(ctx, _answer(report))


def _answer(report: ProjectReport) -> Answer:
    values = {
        "events": f"{report.events} read, {report.rows} in the read model",
        "duplicates": report.duplicates,
        "conflicts": report.conflicts,
        "quarantined": report.quarantined,
        "NUL runs": report.nul_runs,
        "vectors": f"{report.vectors_computed} computed, {report.vectors_cached} from the cache,"
        f" {report.vectors_pending} to do",
        "seconds": f"{report.seconds:.2f}",
    }
    if report.rebuilt:
        values = {"rebuilt": report.rebuilt} | values
    return Answer(document=report, table=named_values(values), notes=[*report.notes, *silence(report.silent)])
