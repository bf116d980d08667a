"""memlog project."""

import click

from memlog.cli.answer import Answer, format_options, named_values, print_answer, silence
from memlog.cli.open_store import open_store
from memlog.cli.progress import progress_line
from memlog.service.maintenance.project import ProjectReport


@click.command()
@click.option(
    "--from-scratch", is_flag=True, help="Rebuild everything from the log, beside the live read model."
)
@click.option("--no-embed", is_flag=True, help="Leave new vectors for later; text is searchable at once.")
@format_options
@click.pass_context
def project(ctx: click.Context, from_scratch: bool, no_embed: bool) -> None:
    """Bring the read model up to the log, then give new passages vectors.

    Interrupted at any moment, the next run goes on where it stopped. Queries catch up by themselves; this
    is for long logs, for rebuilding, and for computing all vectors.
    """
    with open_store(ctx) as store, progress_line() as progress:
        report = store.project(from_scratch=from_scratch, embed=not no_embed, progress=progress)
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
