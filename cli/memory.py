"""memlog memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import click
import msgspec
from msgspec.structs import replace

from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer
from memlog.cli.open_store import open_log, open_store
from memlog.cli.output import bold, dim, json_on_terminal_option, minute, one_line, print_done, printable
from memlog.cli.param_types import STDIN
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.eventlog.errors import NotFound
from memlog.eventlog.events import MemorySaved
from memlog.service.memories.save import SaveReport
from memlog.service.memories.save import save as save_memory
from memlog.service.requests.memories import (
    ArchiveMemory,
    DeleteMemory,
    GetMemory,
    ListMemories,
    SaveMemory,
    ShowHistory,
    TouchMemories,
    UpdateMemory,
)
from memlog.service.requests.scope import event_of

if TYPE_CHECKING:
    # Not for `save`, which starts fast.
    from memlog import Memory, Position, StoredEvent

_COLUMNS = (
    "salience",
    "freshness",
    "importance",
    "relevance",
    "category",
    "chat",
    "accessed",
    "last accessed",
    "updated",
    "id",
    "title",
)
_DIGITS = 6
_CONTENT_INDENT = "    "

_OPTIONS = {"event_id": "--id"}
_TYPES = {"content": STDIN}


@click.group()
def memory() -> None:
    """Save, list and change memories: what is worth keeping beyond a conversation."""


@request_command(SaveMemory, group=memory, names=_OPTIONS, types=_TYPES)
@json_on_terminal_option
def save(ctx: click.Context, asked: SaveMemory) -> None:
    # Without a search for duplicates the store stays closed, and the command starts fast.
    if not asked.looks_for_duplicates:
        _print_saved(ctx, save_memory(open_log(ctx).append, event_of(MemorySaved, asked)))
        return
    with open_store(ctx) as store:
        done = store.memories.save(asked)
    _print_saved(ctx, done)


_SAVED = {
    "saved": "Saved the memory {id}.",
    "already known": "The memory {id} says this already.",
}


def _print_saved(ctx: click.Context, done: SaveReport) -> None:
    sentence = _SAVED.get(done.decision, "The memory {id} almost said this, and now does.")
    print_done(ctx, done, sentence.format(id=done.memory_id))


@request_command(ListMemories, group=memory)
@format_options
def list_(ctx: click.Context, asked: ListMemories) -> None:
    with open_store(ctx) as store:
        found = store.memories.list(asked)
    print_answer(ctx, list_answer("memories", found, _COLUMNS, _row))


@request_command(GetMemory, group=memory, arguments=["memory_id"])
@format_options
def show(ctx: click.Context, asked: GetMemory) -> None:
    with open_store(ctx) as store:
        found = store.memories.get(asked)
    if found is None:
        raise _unknown(asked.memory_id)
    members = _shown(found)
    answer = Answer(
        document=found,
        table=named_values(members | {"content": found.content}),
        text=[*_heads(members), "", *_indented(found.content)],
    )
    print_answer(ctx, answer)


@request_command(ShowHistory, group=memory, arguments=["memory_id"])
@format_options
def history(ctx: click.Context, asked: ShowHistory) -> None:
    with open_store(ctx) as store:
        events = store.memories.history(asked)
    if not events:
        raise _unknown(asked.memory_id)
    rows = [(minute(event.ts), event.type, event.id, str(event.position), event.raw) for event in events]
    answer = Answer(
        document={"memory_id": asked.memory_id, "events": events},
        table=Table(("time", "type", "id", "position", "raw"), rows),
        records=events,
        text=[line for event in events for line in _told(event)],
    )
    print_answer(ctx, answer)


@request_command(UpdateMemory, group=memory, arguments=["memory_id"], names=_OPTIONS, types=_TYPES)
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@json_on_terminal_option
def update(ctx: click.Context, asked: UpdateMemory, *, no_tags: bool) -> None:
    if no_tags and asked.tags:
        raise click.UsageError("--tag and --no-tags: a memory has tags, or none", ctx)
    if no_tags:
        asked = replace(asked, tags=[])
    if asked.is_empty:
        raise click.UsageError("nothing is to be changed", ctx)
    with open_store(ctx) as store:
        position = store.memories.update(asked)
    print_done(ctx, position, f"Changed the memory {asked.memory_id}.")


@request_command(ArchiveMemory, group=memory, arguments=["memory_id"])
@json_on_terminal_option
def archive(ctx: click.Context, asked: ArchiveMemory) -> None:
    with open_store(ctx) as store:
        position = store.memories.archive(asked)
    print_done(ctx, position, f"Archived the memory {asked.memory_id}.")


@request_command(DeleteMemory, group=memory, arguments=["memory_id"])
@json_on_terminal_option
def delete(ctx: click.Context, asked: DeleteMemory) -> None:
    with open_store(ctx) as store:
        position: Position | Literal[False] = store.memories.delete(asked)
    if position is False:
        raise _unknown(asked.memory_id)
    print_done(ctx, position, f"Deleted the memory {asked.memory_id}.")


@request_command(TouchMemories, group=memory, arguments=["memory_ids"])
@json_on_terminal_option
def touch(ctx: click.Context, asked: TouchMemories) -> None:
    with open_store(ctx) as store:
        position = store.memories.touch(asked)
    print_done(ctx, position, f"Counted an access to {', '.join(asked.memory_ids)}.")


def _row(memory: "Memory") -> tuple[object, ...]:
    return (
        f"{memory.salience:.3f}",
        f"{memory.freshness:.3f}",
        f"{memory.importance:.2f}",
        f"{memory.relevance:.3f}",
        memory.category,
        memory.chat,
        memory.access_count,
        minute(memory.last_accessed or ""),
        minute(memory.updated_at),
        memory.memory_id,
        memory.title,
    )


def _shown(memory: "Memory") -> dict[str, object]:
    """The fields of a memory without its content, for people."""
    members = msgspec.structs.asdict(memory)
    del members["content"]
    members |= {name: round(members[name], _DIGITS) for name in ("salience", "freshness", "relevance")}
    return members | {"tags": ", ".join(memory.tags), "position": str(memory.position)}


def _heads(members: dict[str, object]) -> Iterator[str]:
    """A line for each name with a value."""
    for name, value in members.items():
        if value not in (None, ""):
            yield f"{name.replace('_', ' '):<13}  {one_line(str(value))}"


def _indented(content: str) -> list[str]:
    """The content indented, so that no line of it looks like one of memlog's."""
    return [f"{_CONTENT_INDENT}{line}".rstrip() for line in printable(content).split("\n")]


def _told(event: "StoredEvent") -> list[str]:
    return [
        bold(f"{minute(event.ts)}  {event.type}"),
        dim(f"{_CONTENT_INDENT}{one_line(f'{event.position}  {event.id}')}"),
        f"{_CONTENT_INDENT}{printable(event.raw)}",
    ]


def _unknown(memory_id: str) -> NotFound:
    # Not for `save`, which starts fast.
    from memlog.service.memories.facade import unknown_memory

    return unknown_memory(memory_id)
