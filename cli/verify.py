"""memlog verify."""

import click
import msgspec

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, print_json
from memlog.cli.progress import progress_line


@click.command()
@click.option(
    "--strict", is_flag=True, help="Exit 1 also where lines are quarantined, doubled or in conflict."
)
@json_option
@click.pass_context
def verify(ctx: click.Context, strict: bool, as_json: bool) -> int:
    """Replay the log and compare: rows, full text, vectors.

    Exit 1 where they differ, or where bytes of the log are not those that memlog wrote.
    """
    with open_store(ctx) as store, progress_line() as progress:
        found = store.verify(progress=progress)
    if as_json:
        print_json({"ok": found.ok} | msgspec.structs.asdict(found))
    else:
        click.echo(f"digest       {found.digest}")
        click.echo(f"replayed     {found.replayed}")
        click.echo(f"events       {found.events}")
        click.echo(f"duplicates   {found.duplicates}")
        click.echo(f"conflicts    {found.conflicts}")
        click.echo(f"quarantined  {sum(found.quarantined.values())}")
        for reason, count in found.quarantined.items():
            click.echo(f"  {reason}: {count}")
        click.echo(f"vectors      {found.vectors}, {found.missing_vectors} to do")
        for problem in found.problems:
            note(problem)
        click.echo("equal" if found.ok else "not well")
    return 0 if found.ok and (found.is_spotless or not strict) else 1
