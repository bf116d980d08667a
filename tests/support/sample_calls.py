"""One call of every operation and of every command, made from their declarations, and a store for them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

import memlog
from memlog import Store
from memlog.cli.options.request_options import RequestCommand
from memlog.service.catalogue import operations, project_operations
from memlog.service.engine.operation import Operation
from memlog.service.engine.requests import list_fields
from tests.support.command_tree import COMMANDS, does_something
from tests.support.command_tree import Path as Words
from tests.support.provider import serving

PROJECTS = project_operations()
ALL = operations() | PROJECTS

CALLED: dict[Words, click.Command] = {
    path: command for path, command in COMMANDS.items() if path and does_something(command)
}
"""Every command that can be called by itself."""

BY_OPERATION: dict[Words, Operation] = {
    path: ALL[command.operation] for path, command in CALLED.items() if isinstance(command, RequestCommand)
}
"""The operation of each command that has one."""

BY_RULE = {path for path in BY_OPERATION if CALLED[path]._function.__module__ == RequestCommand.__module__}
"""The commands made of their operations alone; their only pages are the generated ones."""

GIVEN: dict[str, Any] = {
    "setting": "embedding.query_prefix",
    **dict.fromkeys(("id", "event_id", "message_id"), "m1"),
    **{
        "chat": "x:1",
        "text": "tea",
        "query": "tea",
        "question": "what is my city?",
        "topic": "city",
        "values": ["Oulu"],
    },
    **{"memory_id": "likes", "memory_ids": ["likes"], "content": "likes black tea", "section": "user"},
    "events": [{"type": "memory_saved", "content": "likes milk"}],
    "session": "x:1",
    "period": "2026-11-26",
    "format": "memory-folder",
    "run": "1a2b3c4d",
    **{"conflict": "merge.0", "keep": ["green"]},
    "project": "store",
    **{"key": "name", "value": "Ann", "name": "notes/tea.md", "summary": "a walk", "ids": ["walk"]},
}
"""What calls give, by field."""

OF_OPERATION: dict[str, dict[str, Any]] = {
    "context": {"text": "tea"},
    "conversations.session_content": {"chat": "x:1"},
    "documents.refresh": {"source": "notes"},
    "erasure.forget": {"event_id": "m2"},
    "erasure.undo_import": {"dry_run": True},
    "exchange.export_sqlite": {"replace": True},
    "extraction.days": {"until": "2100-01-01"},
    "extraction.prompt": {"name": "extract-1"},
    "facts.extract": {"text": "My favourite colours are 1) Blue, 2) Green"},
    "maintenance.watch": {"once": True},
    "jobs.run": {"job": "daily"},
    "memories.unmerge": {"memory_id": "white"},
    "memories.update": {"content": "likes oolong tea"},
    "projects.get": {"name": "store"},
    "projects.import_from": {"format": "codex"},
    "projects.remove": {"name": "store", "dry_run": True},
    "workspaces.remove": {"name": "agent"},
}
"""What an operation needs beside the required fields."""

OF_COMMAND: dict[Words, list[str]] = {
    ("append", "memories_extracted"): ["--chat", "x:1"],
    ("append", "chat_described"): ["--title", "Tea"],
    ("append", "message_updated"): ["--content", "tea"],
    ("append", "redacted"): ["--stream", "memory"],
    ("append", "salience_decayed"): ["--rates", '{"context": 0.9}'],
    ("forget",): ["--yes"],
    ("gate",): ["what is my favourite tea"],
    ("jobs", "schedule"): ["--cron"],
    ("mcp",): ["--print-config", "codex"],
    ("scrub",): ["--yes"],
    ("serve",): ["--host", "0.0.0.0"],
}
"""What a command needs beside the request of its operation; a server refuses an address that others reach."""

TEAS = ("green", "black")
WHITES = ("white", "white-too")


def request_of(name: str, folder: Path, given: Mapping[str, Any] = GIVEN) -> dict[str, Any]:
    """The request of a call of an operation.

    folder: where `filled_store` is.
    """
    paths = {"path": str(folder / ("agent" if name == "workspaces.add" else "notes"))}
    paths |= {"paths": [paths["path"]]} if name != "core.import_file" else {"path": str(folder / "USER.md")}
    paths |= {"path": str(folder / "out.db")} if name == "exchange.export_sqlite" else {}
    paths |= {"paths": [str(folder / "threads")]} if name == "projects.import_from" else {}
    paths |= {"home": str(folder), "folder": paths["path"]}
    fields = list_fields(ALL[name].request)
    # Without these, the command shows what is there.
    also = ("format", "paths") if name == "exchange.import_from" else ()
    needed = {
        each.name: (paths | given)[each.name]
        for each in fields
        if each.default is msgspec.NODEFAULT or each.name in also
    }
    return needed | OF_OPERATION.get(name, {})


def arguments_of(path: Words, folder: Path) -> list[str]:
    """The words of a call of a command behind its name; with those of the request of its operation.

    folder: where `filled_store` is.
    """
    own = OF_COMMAND.get(path, [])
    operation = BY_OPERATION.get(path)
    given = GIVEN if operation is None else request_of(operation.name, folder)
    words = [
        word
        for parameter in CALLED[path].params
        if parameter.required or (operation is not None and parameter.name in given)
        if not {*parameter.opts} & {*own}
        for word in words_of(parameter, given)
    ]
    return [*words, *own]


def words_of(parameter: click.Parameter, given: Mapping[str, Any] = GIVEN) -> Iterator[str]:
    """Yield the words that give a parameter its value: an option with its name."""
    if isinstance(parameter.type, click.Choice):
        first = next(iter(parameter.type.choices))
        value = given.get(str(parameter.name), first)
        value = value if isinstance(value, list) or value in parameter.type.choices else first
    else:
        value = given.get(str(parameter.name), "x")
    for each in value if isinstance(value, list) else [value]:
        if isinstance(parameter, click.Option):
            yield parameter.opts[0]
        if each is not True:
            yield str(each)


@contextmanager
def filled_store(folder: Path) -> Iterator[Store]:
    """A store with one thing of each kind, and folders and files beside it."""
    (folder / "notes").mkdir()
    (folder / "notes/tea.md").write_text("# Tea\n\nGreen tea brews at 80 degrees.\n")
    (folder / "agent").mkdir()
    (folder / "agent/MEMORY.md").write_text("# Memory\n\nAnn likes rye bread.\n")
    (folder / "USER.md").write_text("city: Oulu\n")
    (folder / "threads").mkdir()
    (folder / "threads/rollout-1.jsonl").write_text(
        '{"id":"1"}\n{"type":"message","role":"user","content":"Is the tea hot?"}\n'
    )
    with (
        serving() as server,
        memlog.open(
            folder / "store", language_model=memlog.LanguageModelProvider(base_url=server.url)
        ) as store,
    ):
        # For a server of the store.
        (folder / "store").mkdir(exist_ok=True)
        (folder / "store/memlog.toml").write_text(f'[language_model]\nbase_url = "{server.url}"\n')
        for message in ("m1", "m2"):
            said = memlog.Message(channel="x", chat_id="1", id=message, role="user", content=f"tea {message}")
            store.append(said)
        store.core.set("user", "name", "Ann")
        store.memories.save("likes tea", memory_id="likes")
        faded = {"memory_id": "sails", "category": "debug", "ts": "2026-02-24T10:00:00Z"}
        store.append(memlog.MemorySaved(content="sails on Sunday", importance=0, **faded))
        tea = [memlog.MemorySaved(id=name, memory_id=name, content=f"{name} tea is best") for name in TEAS]
        whites = [memlog.MemorySaved(id=name, memory_id=name, content="White tea") for name in WHITES]
        origin = memlog.Extraction("merge", "m", "p")
        decisions = [
            memlog.MergeDecision("contradiction", [*TEAS], [*TEAS]),
            memlog.MergeDecision("same", [*WHITES], [*WHITES], WHITES[0]),
        ]
        merged = memlog.MemoriesMerged(
            id="merge", event_ids=[*TEAS, *WHITES], decisions=decisions, model="m", prompt="p"
        )
        archived = memlog.MemoryArchived(memory_id=WHITES[1], extraction=origin)
        store.append([*tea, *whites, archived, merged])
        store.daily.record("a walk", event_id="walk")
        imported = {"format": "memory-folder", "path": "/notes", "appended": {"memory": ["likes"]}}
        store.append(memlog.EventsImported(run=GIVEN["run"], **imported))
        store.facts.set("city", "Oulu", single=True)
        store.documents.add(folder / "notes")
        store.workspaces.add(folder / "agent")
        memlog.Projects(folder).link(folder / "notes", "store")
        (folder / "notes/cocoa.md").write_text("Cocoa keeps for a year.\n")
        (folder / "agent/MEMORY.md").write_text("Ann likes white bread.\n")
        yield store


def fits(given: object, kind: Any) -> bool:
    """Whether an answer is of a type that an operation declares."""
    try:
        msgspec.convert(msgspec.to_builtins(given), kind)
    except msgspec.ValidationError:
        return False
    return given is not None or kind is type(None)


def without_times(given: Any) -> Any:
    """An answer without what differs from call to call."""
    if isinstance(given, dict):
        return {k: without_times(v) for k, v in given.items() if k not in ("took_ms", "synced", "silent")}
    return [*map(without_times, given)] if isinstance(given, list) else given
