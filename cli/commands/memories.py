"""memlog memory."""

from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import asdict, replace

import memlog
from memlog.cli.options.open_store import open_log, open_store
from memlog.cli.options.param_types import STDIN
from memlog.cli.options.request_options import Store, request_command
from memlog.cli.options.settings import Group
from memlog.cli.options.zone import minute
from memlog.cli.output.answer import Answer, Columns, Done, list_answer, named_values, records_answer
from memlog.cli.output.output import bold, dim, one_line, printable
from memlog.eventlog.events import MemorySaved
from memlog.service.engine.requests import Request, event_of
from memlog.service.memory.requests import (
    ArchiveMemory,
    DeleteMemory,
    GetMemory,
    ListConflicts,
    ListMemories,
    SaveMemory,
    ShowHistory,
    TouchMemories,
    UnmergeMemory,
    UpdateMemory,
)
from memlog.service.memory.save import save as save_memory

_DIGITS = 6
_TYPES = {"content": STDIN}

COLUMNS: Columns = {
    "salience": lambda memory: f"{memory.salience:.3f}",
    "freshness": lambda memory: f"{memory.freshness:.3f}",
    "importance": lambda memory: f"{memory.importance:.2f}",
    "relevance": lambda memory: f"{memory.relevance:.3f}",
    "category": "category",
    "chat": "chat",
    "accessed": "access_count",
    "last accessed": lambda memory: minute(memory.last_accessed),
    "updated": lambda memory: minute(memory.updated_at),
    "id": "memory_id",
    "title": "title",
}
"""The columns of a list of memories."""


_CONFLICTS: Columns = {
    "state": lambda conflict: f"{conflict.state} {conflict.decided_by or ''}".rstrip(),
    "relation": "relation",
    "found": lambda conflict: minute(conflict.ts),
    "id": "id",
    "holds": "memory_id",
    "memories": lambda conflict: " | ".join(
        f"{each.memory_id}: {one_line(each.content or '(forgotten)')}" for each in conflict.memories
    ),
    "proposed": lambda conflict: (
        conflict.proposed and f"{conflict.proposed.memory_id}: {one_line(conflict.proposed.content)}"
    ),
}


class _MemoryCommands(Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Accept `get` for `show`, as in Python and for facts and core memory."""
        return super().get_command(ctx, "show" if cmd_name == "get" else cmd_name)


@click.group(cls=_MemoryCommands)
def memory() -> None:
    """Save, list and change memories: what is worth keeping beyond a conversation."""


@request_command(SaveMemory, group=memory, types=_TYPES, opens_store=False)
def save(ctx: click.Context, request: SaveMemory) -> Done:
    if request.looks_for_duplicates:
        with open_store(ctx) as store:
            done = store.memories.save(request)
    else:
        # Without opening the store, the command starts fast.
        done = save_memory(open_log(ctx).append, event_of(MemorySaved, request))
    sentence = _SAVED.get(done.decision, "The memory {id} almost had this text, and now has it.")
    return Done(done, sentence.format(id=done.memory_id))


_SAVED = {
    "saved": "Saved the memory {id}.",
    "already known": "The memory {id} says this already.",
}


@request_command(ListMemories, group=memory)
def list_(store: Store, request: ListMemories) -> Answer:
    return list_answer("memories", store.memories.list(request), COLUMNS)


@request_command(
    GetMemory, group=memory, arguments=["memory_id"], adds="\n`memlog memory get` does the same."
)
def show(store: Store, request: GetMemory) -> Answer:
    found = _required(store.memories.get, request)
    members = _members(found)
    heads = [
        f"{name.replace('_', ' '):<13}  {one_line(str(value))}"
        for name, value in members.items()
        if value not in (None, "")
    ]
    # Indented, so that no line looks like memlog's own.
    content = [f"    {line}".rstrip() for line in printable(found.content).split("\n")]
    return Answer(
        document=found,
        table=named_values(members | {"content": found.content}),
        text=[*heads, "", *content],
    )


@request_command(ShowHistory, group=memory, arguments=["memory_id"])
def history(store: Store, request: ShowHistory) -> Answer:
    events = _required(store.memories.history, request)
    columns: Columns = {
        "time": lambda event: minute(event.ts),
        "type": "type",
        "id": "id",
        "position": "position",
        "raw": "raw",
    }
    document = {"memory_id": request.memory_id, "events": events}
    text = [line for event in events for line in _event_lines(event)]
    return records_answer(document, events, columns, text=text)


@request_command(
    ListConflicts, group=memory, adds="\nWith --resolve and --keep, decide one, and show only that."
)
@click.option("--resolve", metavar="CONFLICT", help="Decide this conflict.")
@click.option(
    "--keep",
    metavar="ID",
    multiple=True,
    help="A memory to keep, or the proposed one; the others are archived.",
)
def conflicts(store: Store, request: ListConflicts, *, resolve: str | None, keep: tuple[str, ...]) -> Answer:
    if (resolve is None) != (not keep):
        raise click.UsageError("--resolve and --keep go together: give the conflict, and what to keep")
    if resolve is None:
        found = store.memories.conflicts(request)
    else:
        found = [store.memories.resolve(resolve, keep=list(keep))]
    return list_answer("conflicts", found, _CONFLICTS, if_empty="no memories are in conflict")


@request_command(UpdateMemory, group=memory, arguments=["memory_id"], types=_TYPES)
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
def update(store: Store, request: UpdateMemory, *, no_tags: bool) -> Done:
    if no_tags and request.tags:
        raise click.UsageError("give --tag or --no-tags, not both")
    if no_tags:
        request = replace(request, tags=[])
    return Done(store.memories.update(request), f"Changed the memory {request.memory_id}.")


@request_command(ArchiveMemory, group=memory, arguments=["memory_id"])
def archive(store: Store, request: ArchiveMemory) -> Done:
    return Done(store.memories.archive(request), f"Archived the memory {request.memory_id}.")


@request_command(UnmergeMemory, group=memory, arguments=["memory_id"])
def unmerge(store: Store, request: UnmergeMemory) -> Answer:
    return list_answer("memories", store.memories.unmerge(request), COLUMNS)


@request_command(DeleteMemory, group=memory, arguments=["memory_id"])
def delete(store: Store, request: DeleteMemory) -> Done:
    return Done(_required(store.memories.delete, request), f"Deleted the memory {request.memory_id}.")


@request_command(TouchMemories, group=memory, arguments=["memory_ids"])
def touch(store: Store, request: TouchMemories) -> Done:
    return Done(store.memories.touch(request), f"Counted an access to {', '.join(request.memory_ids)}.")


def _members(memory: "memlog.Memory") -> dict[str, object]:
    members = asdict(memory)
    del members["content"]
    members |= {name: round(members[name], _DIGITS) for name in ("salience", "freshness", "relevance")}
    return members | {"tags": ", ".join(memory.tags), "position": str(memory.position)}


def _event_lines(event: "memlog.StoredEvent") -> list[str]:
    return [
        bold(f"{minute(event.ts)}  {event.type}"),
        dim(f"    {one_line(f'{event.position}  {event.id}')}"),
        f"    {printable(event.raw)}",
    ]


def _required(operation: Callable[[Any], Any], request: Request) -> Any:  # noqa: ANN401 - see `required`
    # Imported here: `save` starts fast without it.
    from memlog.service.engine.operation import required

    return required(operation, request)
