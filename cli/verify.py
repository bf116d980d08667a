"""memlog verify."""

import click
import msgspec

from memlog.cli.formats import Answer, format_options, named_values, print_answer
from memlog.cli.opening import open_store
from memlog.cli.progress import progress_line
from memlog.projector.verify import Verification


@click.command()
@click.option(
    "--strict",
    is_flag=True,
    help="Exit 1 also where lines are quarantined, doubled, in conflict or among NUL bytes.",
)
@format_options
@click.pass_context
def verify(ctx: click.Context, strict: bool) -> int:
    """Replay the log and compare: rows, full text, vectors.

    Exit 1 where they differ, or where bytes of the log are not those that memlog wrote.
    """
    with open_store(ctx) as store, progress_line() as progress:
        found = store.verify(progress=progress)
    print_answer(ctx, _answer(found))
    return 0 if found.ok and (found.is_spotless or not strict) else 1


def _answer(found: Verification) -> Answer:
    reasons = {f"- {reason}": count for reason, count in found.quarantined.items()}
    values = {
        "digest": found.digest,
        "replayed": found.replayed,
        "events": found.events,
        "duplicates": found.duplicates,
        "conflicts": found.conflicts,
        "quarantined": sum(found.quarantined.values()),
        **reasons,
        "NUL runs": len(found.nul_runs),
        "vectors": f"{found.vectors}, {found.missing_vectors} to do",
        "result": "equal" if found.ok else "not well",
    }
    document = {"ok": found.ok} | msgspec.structs.asdict(found)
    return Answer(document=document, table=named_values(values), notes=[*found.problems, *_nuls(found)])


def _nuls(found: Verification) -> list[str]:
    """Where NUL bytes stand that were read as if they did not."""
    return [
        f"{run.stream}/{run.segment} (byte {run.offset}): {run.bytes} NUL bytes, left by a power cut"
        for run in found.nul_runs
    ]
