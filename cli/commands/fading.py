"""memlog decay, prune."""

import memlog
from memlog.cli.commands.memories import COLUMNS
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.output.answer import Answer, Columns, Done, records_answer
from memlog.cli.output.output import count_noun

_COLUMNS: Columns = {
    "relevance": lambda memory: f"{memory.relevance:.6f}",
    **{name: COLUMNS[name] for name in ("salience", "freshness", "importance")},
    "age": lambda memory: count_noun(memory.age_days, "day"),
    **{name: COLUMNS[name] for name in ("category", "id", "title")},
}


@request_command("memories.decay", arguments=[])
def decay(done: "memlog.DecayReport", _: Given) -> Done:
    is_repeated = done.position is None
    return Done(
        done, "Memories have already been faded today." if is_repeated else "Faded memories by one day."
    )


@request_command(
    "memories.prune",
    names={"categories": "--category"},
    settings={"threshold": "archive_threshold"},
    adds="\nIt does not ask for confirmation: memlog memory list --archived shows the archived memories.",
)
def prune(done: "memlog.PruneReport", _: Given) -> Answer:
    return records_answer(done, done.memories, _COLUMNS, notes=[_prune_note(done)])


def _prune_note(done: "memlog.PruneReport") -> str:
    if not done.memories:
        return "no memory has faded that far"
    count = len(done.memories) if done.dry_run else done.archived
    memories = f"{count} {'memory' if count == 1 else 'memories'}"
    return f"{memories} {'would be archived' if done.dry_run else 'archived'}"
