"""memlog prune."""

from collections.abc import Iterator

import click
import msgspec
from msgspec.structs import replace

from memlog import Memory
from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.confirm import counted
from memlog.cli.open_store import open_store
from memlog.cli.request_options import request_command
from memlog.service.memories.fading import PruneReport
from memlog.service.requests.fading import PruneMemories

_COLUMNS = ("relevance", "salience", "freshness", "importance", "age", "category", "id", "title")


@request_command(
    PruneMemories,
    names={"categories": "--category"},
    settings={"threshold": "archive_threshold"},
    adds="\nIt does not ask: memlog memory list --archived shows them.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be archived.")
@format_options
def prune(ctx: click.Context, asked: PruneMemories, *, dry_run: bool) -> None:
    with open_store(ctx) as store:
        done = store.memories.prune(replace(asked, confirm=lambda _: not dry_run))
    answer = Answer(
        document=msgspec.structs.asdict(done) | {"dry_run": dry_run},
        table=Table(_COLUMNS, [_row(each) for each in done.memories]),
        records=done.memories,
        notes=list(_notes(done, dry_run=dry_run)),
    )
    print_answer(ctx, answer)


def _row(memory: Memory) -> tuple[object, ...]:
    return (
        f"{memory.relevance:.6f}",
        f"{memory.salience:.3f}",
        f"{memory.freshness:.3f}",
        f"{memory.importance:.2f}",
        counted(memory.age_days, "day"),
        memory.category,
        memory.memory_id,
        memory.title,
    )


def _notes(done: PruneReport, *, dry_run: bool) -> Iterator[str]:
    if not done.memories:
        yield "nothing has faded so far"
    elif dry_run:
        yield f"{_memories(len(done.memories))} would be archived"
    else:
        yield f"{_memories(done.archived)} archived"


def _memories(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"
