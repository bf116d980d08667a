"""memlog memory, decay, prune."""

from collections.abc import Iterator, Sequence
from itertools import chain

import click
from msgspec.structs import asdict, replace

import memlog
from memlog.cli.options.open_store import open_log, open_store
from memlog.cli.options.param_types import STDIN
from memlog.cli.options.request_options import Given, OperationCommands, Store, request_command
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import (
    Answer,
    Columns,
    Done,
    fold_text_into_lines,
    list_answer,
    records_answer,
    table_of_named_values,
)
from memlog.cli.output.output import bold, count_noun, dim, escape_controls, put_on_one_line
from memlog.eventlog.events import MemorySaved
from memlog.service.engine.requests import build_event
from memlog.service.memory.memories import looks_for_duplicates
from memlog.service.memory.save import append_saved_memory as save_memory

_DIGITS = 6
_LISTED = 160
"""The maximum number of characters shown of a memory in a list: two lines on most terminals."""
_TYPES = {"content": STDIN}

COLUMNS: Columns = {
    "salience": lambda memory: f"{memory.salience:.3f}",
    "freshness": lambda memory: f"{memory.freshness:.3f}",
    "importance": lambda memory: f"{memory.importance:.2f}",
    "relevance": lambda memory: f"{memory.relevance:.3f}",
    "category": "category",
    "chat": "chat",
    "accessed": "access_count",
    "last accessed": lambda memory: format_in_local_time(memory.last_accessed),
    "updated": lambda memory: format_in_local_time(memory.updated_at),
    "id": "memory_id",
    "title": "title",
}
"""The columns of a memory list in a Markdown table."""


def memories_answer(found: "Sequence[memlog.Memory]") -> Answer:
    """Return the answer for a list of memories: each with its text and the details people look for."""
    return list_answer("memories", found, COLUMNS, text=chain.from_iterable(map(_memory_lines, found)))


def _memory_lines(memory: "memlog.Memory") -> Iterator[str]:
    content, title = put_on_one_line(memory.content), put_on_one_line(memory.title or "")
    shown = content if content.startswith(title) else title
    yield from fold_text_into_lines(shown if len(shown) <= _LISTED else f"{shown[: _LISTED - 1]}…")
    day = format_in_local_time(memory.updated_at).partition(" ")[0]
    about = (memory.category, memory.chat, f"salience {memory.salience:.3f}", day, memory.memory_id)
    yield from map(
        dim, fold_text_into_lines("  ".join(escape_controls(each) for each in about if each), indent="    ")
    )


_CONFLICTS: Columns = {
    "state": lambda conflict: f"{conflict.state} {conflict.decided_by or ''}".rstrip(),
    "relation": "relation",
    "found": lambda conflict: format_in_local_time(conflict.ts),
    "id": "id",
    "holds": "memory_id",
    "memories": lambda conflict: " | ".join(
        f"{each.memory_id}: {put_on_one_line(each.content or '(forgotten)')}" for each in conflict.memories
    ),
    "proposed": lambda conflict: (
        conflict.proposed and f"{conflict.proposed.memory_id}: {put_on_one_line(conflict.proposed.content)}"
    ),
}


class _MemoryCommands(OperationCommands):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; `get` is an alias of `show`, as with facts and core memory."""
        return super().get_command(ctx, "show" if cmd_name == "get" else cmd_name)


@click.group(cls=_MemoryCommands, operations="memories", without=("archive_all", "resolve", "decay", "prune"))
def memory() -> None:
    """Save, list and change memories: what is worth keeping beyond a conversation."""


@request_command("memories.save", group=memory, arguments=[], types=_TYPES, gets="context")
def save(ctx: click.Context, given: Given) -> Done:
    if looks_for_duplicates(given.dedup, given.memory_id):
        with open_store(ctx) as store:
            done = store.memories.save(given)
    else:
        # Without opening the store, the command starts fast.
        done = save_memory(open_log(ctx).append, build_event(MemorySaved, **asdict(given)))
    sentence = _SAVED.get(done.decision, "The memory {id} almost had this text, and now has it.")
    return Done(done, sentence.format(id=done.memory_id))


_SAVED = {
    "saved": "Saved the memory {id}.",
    "already known": "The memory {id} says this already.",
}


@request_command("memories.list", group=memory)
def list_(found: "list[memlog.Memory]", _: Given) -> Answer:
    return memories_answer(found)


@request_command("memories.get", group=memory, adds="\n`memlog memory get` does the same.")
def show(found: "memlog.Memory", _: Given) -> Answer:
    members = _memory_values(found)
    heads = [
        f"{name.replace('_', ' '):<13}  {put_on_one_line(str(value))}"
        for name, value in members.items()
        if value not in (None, "")
    ]
    # Indented, so that no line looks like memlog's own.
    content = [f"    {line}".rstrip() for line in escape_controls(found.content).split("\n")]
    return Answer(
        document=found,
        table=table_of_named_values(members | {"content": found.content}),
        text=[*heads, "", *content],
    )


@request_command("memories.history", group=memory)
def history(events: "list[memlog.StoredEvent]", given: Given) -> Answer:
    columns: Columns = {
        "time": lambda event: format_in_local_time(event.ts),
        "type": "type",
        "id": "id",
        "position": "position",
        "raw": "raw",
    }
    document = {"memory_id": given.memory_id, "events": events}
    text = [line for event in events for line in _event_lines(event)]
    return records_answer(document, events, columns, text=text)


@request_command(
    "memories.conflicts",
    group=memory,
    gets="store",
    adds="\nWith --resolve and --keep, decide one conflict, and show only that conflict.",
)
@click.option("--resolve", metavar="CONFLICT", help="Decide this conflict.")
@click.option(
    "--keep",
    metavar="ID",
    multiple=True,
    help="A memory to keep, or the proposed one; the others are archived.",
)
def conflicts(store: Store, _: Given, *, resolve: str | None, keep: tuple[str, ...]) -> Answer:
    if (resolve is None) != (not keep):
        raise click.UsageError("--resolve and --keep must be used together: which conflict, and what to keep")
    if resolve is None:
        found = store.memories.conflicts()
    else:
        found = [store.memories.resolve(resolve, keep=list(keep))]
    return list_answer("conflicts", found, _CONFLICTS, if_empty="no memories are in conflict")


@request_command("memories.update", group=memory, gets="store", types=_TYPES)
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
def update(store: Store, given: Given, *, no_tags: bool) -> Done:
    if no_tags and given.tags:
        raise click.UsageError("--tag cannot be combined with --no-tags")
    if no_tags:
        given = replace(given, tags=[])
    return Done(store.memories.update(given), f"Changed the memory {given.memory_id}.")


@request_command("memories.archive", group=memory)
def archive(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Archived the memory {given.memory_id}.")


@request_command("memories.unmerge", group=memory)
def unmerge(found: "list[memlog.Memory]", _: Given) -> Answer:
    return memories_answer(found)


@request_command("memories.delete", group=memory)
def delete(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Deleted the memory {given.memory_id}.")


@request_command("memories.touch", group=memory)
def touch(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Counted an access to {', '.join(given.memory_ids)}.")


def _memory_values(memory: "memlog.Memory") -> dict[str, object]:
    members = asdict(memory)
    del members["content"]
    members |= {name: round(members[name], _DIGITS) for name in ("salience", "freshness", "relevance")}
    return members | {"tags": ", ".join(memory.tags), "position": str(memory.position)}


def _event_lines(event: "memlog.StoredEvent") -> list[str]:
    return [
        bold(f"{format_in_local_time(event.ts)}  {event.type}"),
        dim(f"    {put_on_one_line(f'{event.position}  {event.id}')}"),
        f"    {escape_controls(event.raw)}",
    ]


_PRUNED: Columns = {
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
    return records_answer(done, done.memories, _PRUNED, notes=[_prune_note(done)])


def _prune_note(done: "memlog.PruneReport") -> str:
    if not done.memories:
        return "no memory has faded that far"
    count = len(done.memories) if done.dry_run else done.archived
    memories = f"{count} {'memory' if count == 1 else 'memories'}"
    return f"{memories} {'would be archived' if done.dry_run else 'archived'}"
