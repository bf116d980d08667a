"""memlog prune."""

from collections.abc import Iterator

import click
import msgspec

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.confirm import counted
from memlog.cli.open_store import open_store
from memlog.cli.param_types import CATEGORY
from memlog.cli.settings import Settings, setting_option
from memlog.query.memories import Memory
from memlog.service.memories.fading import PRUNED, Pruned

_COLUMNS = ("relevance", "salience", "freshness", "importance", "age", "category", "id", "title")


@click.command()
@click.option(
    "--category",
    "categories",
    type=CATEGORY,
    multiple=True,
    default=PRUNED,
    show_default=True,
    help="Only of this category; may be given several times.",
)
@setting_option("archive_threshold", "--threshold")
@click.option("--dry-run", is_flag=True, help="Only list what would be archived.")
@format_options
@click.pass_context
def prune(ctx: click.Context, categories: tuple[str, ...], dry_run: bool) -> None:
    """Archive memories that have faded: whose relevance today is at most a threshold.

    They are kept, and no longer searched: memlog memory list --archived shows them, and a save brings one
    back. So it does not ask. memlog decay and age make relevance fall.
    """
    threshold = ctx.ensure_object(Settings).value("archive_threshold")
    with open_store(ctx) as store:
        done = store.memories.prune(categories=categories, threshold=threshold, confirm=lambda _: not dry_run)
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


def _notes(done: Pruned, *, dry_run: bool) -> Iterator[str]:
    if not done.memories:
        yield "nothing has faded so far"
    elif dry_run:
        yield f"{_memories(len(done.memories))} would be archived"
    else:
        yield f"{_memories(done.archived)} archived"


def _memories(count: int) -> str:
    return f"{count} {'memory' if count == 1 else 'memories'}"
