"""memlog memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
import msgspec

from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer
from memlog.cli.event_options import members_of_options, options_of
from memlog.cli.open_store import open_log, open_store
from memlog.cli.output import bold, dim, json_option, minute, one_line, print_json, printable
from memlog.cli.param_types import CATEGORY, CHAT, TEXT, UNIT, count
from memlog.cli.stdin import stdin_text
from memlog.eventlog.errors import NotFound
from memlog.eventlog.events import MemoryKind, MemorySaved, MemoryUpdated
from memlog.service.memories.save import save as save_memory

if TYPE_CHECKING:
    # Not for `save`, which starts fast.
    from memlog.eventlog.writer import Position
    from memlog.query.memories import Memory
    from memlog.query.provenance import Stored

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

_TYPES = {"category": CATEGORY}
"""What is saved by hand is of a category that memlog knows; other logs may hold any."""

_memory_id = click.argument("memory_id", metavar="ID", type=TEXT)


@click.group()
def memory() -> None:
    """Save, list and change memories: what is worth keeping beyond a conversation."""


@memory.command(params=options_of(MemorySaved, types=_TYPES))
@click.option("--no-dedup", is_flag=True, help="Save it in any case, without a look at what is known.")
@click.option("--any-chat", is_flag=True, help="Look at the memories of every chat, not of --chat alone.")
@json_option
@click.pass_context
def save(
    ctx: click.Context,
    /,
    no_dedup: bool,
    any_chat: bool,
    as_json: bool,  # noqa: ARG001
    **given: Any,  # noqa: ANN401
) -> None:
    """Save a memory, unless one of its chat says it.

    A text that is known is counted, and not stored again. Where an older memory says almost the same, and no
    more, it takes this text; its history keeps both. With --memory-id that memory says this from now on, and
    no other is looked for. An archived or deleted memory stands again.
    """
    if any_chat and (no_dedup or given["memory_id"] is not None):
        raise click.UsageError("--any-chat: with --no-dedup or --memory-id no duplicate is looked for", ctx)
    members = _members(MemorySaved, given)
    if no_dedup or given["memory_id"] is not None:
        print_json(save_memory(open_log(ctx).append, MemorySaved(**members)))
        return
    renamed = {_PARAMETERS.get(name, name): value for name, value in members.items()}
    with open_store(ctx) as store:
        print_json(store.memories.save(**renamed, any_chat=any_chat))


@memory.command("list")
@click.option("--category", type=CATEGORY, help="Only of this category; of an unknown one as other.")
@click.option("--kind", type=click.Choice(get_args(MemoryKind)), help="Only of this kind.")
@click.option("--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only of this conversation.")
@click.option("--topic", type=TEXT, help="Only of this topic.")
@click.option("--tag", type=TEXT, help="Only with this tag.")
@click.option("--min-salience", type=UNIT, default=0.0, help="Leave out what has faded below this.")
@click.option("--archived", is_flag=True, help="Those that are archived, in the place of those that are not.")
@click.option("--limit", type=count(1), help="At most so many; all where not given.")
@format_options
@click.pass_context
def list_(ctx: click.Context, /, chat: tuple[str, str] | None, **asked: Any) -> None:  # noqa: ANN401
    """List memories: by falling salience, the last changed first.

    Salience is what events left of each, freshness what age leaves today; relevance is both, times
    importance.
    """
    with open_store(ctx) as store:
        found = store.memories.list(chat=":".join(chat) if chat else None, **asked)
    answer = Answer(
        document={"memories": found},
        table=Table(_COLUMNS, [_row(each) for each in found]),
        records=found,
        notes=[] if found else ["no memories"],
    )
    print_answer(ctx, answer)


@memory.command()
@_memory_id
@format_options
@click.pass_context
def show(ctx: click.Context, memory_id: str) -> None:
    """Show all that is known of a memory."""
    with open_store(ctx) as store:
        found = store.memories.get(memory_id)
    if found is None:
        raise _unknown(memory_id)
    members = _shown(found)
    answer = Answer(
        document=found,
        table=named_values(members | {"content": found.content}),
        text=[*_heads(members), "", *_indented(found.content)],
    )
    print_answer(ctx, answer)


@memory.command()
@_memory_id
@format_options
@click.pass_context
def history(ctx: click.Context, memory_id: str) -> None:
    """Show the events that made a memory what it is.

    The oldest first, each with its line of the log; also of a memory that was deleted.
    """
    with open_store(ctx) as store:
        events = store.memories.history(memory_id)
    if not events:
        raise _unknown(memory_id)
    rows = [(minute(event.ts), event.type, event.id, str(event.position), event.raw) for event in events]
    answer = Answer(
        document={"memory_id": memory_id, "events": events},
        table=Table(("time", "type", "id", "position", "raw"), rows),
        records=events,
        text=[line for event in events for line in _told(event)],
    )
    print_answer(ctx, answer)


@memory.command(params=options_of(MemoryUpdated, without=("memory_id",), types=_TYPES))
@_memory_id
@click.option("--no-tags", is_flag=True, help="Take all tags away.")
@json_option
@click.pass_context
def update(
    ctx: click.Context,
    /,
    memory_id: str,
    no_tags: bool,
    as_json: bool,  # noqa: ARG001
    **given: Any,  # noqa: ANN401
) -> None:
    """Change what is given of a memory, and leave the rest. An empty TITLE or TOPIC takes it away."""
    if no_tags and given["tags"]:
        raise click.UsageError("--tag and --no-tags: a memory has tags, or none", ctx)
    changes = _members(MemoryUpdated, given) | ({"tags": []} if no_tags else {})
    if not changes.keys() - {"id", "ts"}:
        raise click.UsageError("nothing is to be changed", ctx)
    renamed = {_PARAMETERS.get(name, name): value for name, value in changes.items()}
    with open_store(ctx) as store:
        print_json(store.memories.update(memory_id, **renamed))


@memory.command()
@_memory_id
@json_option
@click.pass_context
def archive(ctx: click.Context, memory_id: str, as_json: bool) -> None:  # noqa: ARG001
    """Keep a memory, and no longer search it."""
    with open_store(ctx) as store:
        print_json(store.memories.archive(memory_id))


@memory.command()
@_memory_id
@json_option
@click.pass_context
def delete(ctx: click.Context, memory_id: str, as_json: bool) -> None:  # noqa: ARG001
    """Take a memory away, until it is saved again. Its events stay in the log."""
    with open_store(ctx) as store:
        position: Position | Literal[False] = store.memories.delete(memory_id)
    if position is False:
        raise _unknown(memory_id)
    print_json(position)


@memory.command()
@click.argument("memory_ids", metavar="ID...", type=TEXT, nargs=-1, required=True)
@json_option
@click.pass_context
def touch(ctx: click.Context, memory_ids: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Count that memories were given to an agent."""
    with open_store(ctx) as store:
        print_json(store.memories.touch(*memory_ids))


_PARAMETERS = {"chat_id": "chat", "id": "event_id"}
"""What Python calls members of an event, where it is another name."""


def _members(kind: type[MemorySaved | MemoryUpdated], given: dict[str, Any]) -> dict[str, Any]:
    """The members of an event that options say, without its type; a content of `-` is read from stdin."""
    members = members_of_options(kind, given)
    del members["type"]
    if members.get("content") == "-":
        members["content"] = stdin_text()
    return members


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
    """All that is known of a memory but its content, as a person reads it."""
    members = msgspec.structs.asdict(memory)
    del members["content"]
    members |= {name: round(members[name], _DIGITS) for name in ("salience", "freshness", "relevance")}
    return members | {"tags": ", ".join(memory.tags), "position": str(memory.position)}


def _heads(members: dict[str, object]) -> Iterator[str]:
    """Names and values on lines of their own, without those that have none."""
    for name, value in members.items():
        if value not in (None, ""):
            yield f"{name.replace('_', ' '):<13}  {one_line(str(value))}"


def _indented(content: str) -> list[str]:
    """A content for people: set in, so that no line of it can pass for one of memlog's."""
    return [f"{_CONTENT_INDENT}{line}".rstrip() for line in printable(content).split("\n")]


def _told(event: "Stored") -> list[str]:
    return [
        bold(f"{minute(event.ts)}  {event.type}"),
        dim(f"{_CONTENT_INDENT}{one_line(f'{event.position}  {event.id}')}"),
        f"{_CONTENT_INDENT}{printable(event.raw)}",
    ]


def _unknown(memory_id: str) -> NotFound:
    # Not for `save`, which starts fast.
    from memlog.service.memories.facade import unknown_memory

    return unknown_memory(memory_id)
