"""memlog verify."""

import click
import msgspec
from msgspec.structs import replace

from memlog import Verification
from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.error_handler import LOSS
from memlog.cli.open_store import open_store
from memlog.cli.progress import progress_line
from memlog.cli.request_options import request_command
from memlog.cli.standard_streams import reader_may_go
from memlog.service.requests.maintenance import Verify


@request_command(
    Verify,
    adds="Exit 1 where the read model differs, where a line was changed after it was written, or where the"
    " cache is damaged; exit 3 where a seal is broken or missing, or a sealed segment is unlike its seal.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit 1 also where lines are quarantined, doubled, in conflict or among NUL bytes.",
)
@format_options
def verify(ctx: click.Context, asked: Verify, *, strict: bool) -> int:
    with open_store(ctx) as store, progress_line() as progress:
        found = store.maintenance.verify(replace(asked, progress=progress))
    with reader_may_go():
        print_answer(ctx, _answer(found))
    if found.tampered:
        return LOSS
    return 0 if found.ok and (found.is_spotless or not strict) else 1


def _answer(found: Verification) -> Answer:
    reasons = {f"- {reason}": count for reason, count in found.quarantined.items()}
    values = {
        "digest": found.digest or "none",
        "replayed": found.replayed or "none",
        "events": found.events,
        "duplicates": found.duplicates,
        "conflicts": found.conflicts,
        "quarantined": sum(found.quarantined.values()),
        **reasons,
        "NUL runs": len(found.nul_runs),
        "vectors": f"{found.vectors}, {found.missing_vectors} to do, {_cached(found)} in the cache",
        "seals": found.seals,
        "result": _result(found),
    }
    document = {"ok": found.ok} | msgspec.structs.asdict(found)
    notes = [*found.notes, *found.problems, *found.tampered, *_nuls(found)]
    return Answer(document=document, table=named_values(values), notes=notes)


def _cached(found: Verification) -> str:
    unused = f" ({found.unused_vectors} of texts that no passage has)" if found.unused_vectors else ""
    return f"{found.cached_vectors}{unused}"


def _result(found: Verification) -> str:
    if found.ok:
        return "well, not compared" if found.digest is None else "equal"
    return "loss or tampering" if found.tampered else "not well"


def _nuls(found: Verification) -> list[str]:
    """Notes on runs of NUL bytes, which reading skips."""
    return [
        f"{run.stream}/{run.segment} (byte {run.offset}): {run.bytes} NUL bytes, left by a power cut"
        for run in found.nul_runs
    ]
