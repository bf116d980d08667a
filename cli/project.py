"""memlog project."""

import click

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, print_json
from memlog.cli.progress import progress_line


@click.command()
@click.option(
    "--from-scratch", is_flag=True, help="Rebuild everything from the log, beside the live read model."
)
@click.option("--no-embed", is_flag=True, help="Leave new vectors for later; text is searchable at once.")
@json_option
@click.pass_context
def project(ctx: click.Context, from_scratch: bool, no_embed: bool, as_json: bool) -> None:
    """Bring the read model up to the log, then give new passages vectors.

    Interrupted at any moment, the next run goes on where it stopped. Queries catch up by themselves; this
    is for long logs, for rebuilding, and for computing all vectors.
    """
    with open_store(ctx) as store, progress_line() as progress:
        report = store.project(from_scratch=from_scratch, embed=not no_embed, progress=progress)
    if as_json:
        print_json(report)
        return
    for text in report.notes:
        note(text)
    if report.rebuilt:
        click.echo(f"rebuilt      {report.rebuilt}")
    click.echo(f"events       {report.events} read, {report.rows} in the read model")
    click.echo(f"duplicates   {report.duplicates}")
    click.echo(f"conflicts    {report.conflicts}")
    click.echo(f"quarantined  {report.quarantined}")
    click.echo(
        f"vectors      {report.vectors_computed} computed, {report.vectors_cached} from the cache,"
        f" {report.vectors_pending} to do"
    )
    click.echo(f"seconds      {report.seconds:.2f}")
    for side, why in report.silent.items():
        note(f"{side}: {why}")
