"""A path where no store is: what reads says so and makes nothing, what stores something new makes it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import memlog as library
from tests.support.command_tree import COMMANDS, called, does_something

Run = Callable[..., Any]
Words = tuple[str, ...]

CREATES: dict[Words, tuple[str, ...]] = {
    ("init",): (),
    ("append", "message"): ("--chat", "c:1", "--role", "user", "--content", "x"),
    ("core", "import"): ("core.json",),
    ("core", "set"): ("user", "name", "Anna"),
    ("daily", "record"): ("--summary", "x"),
    ("docs", "add"): ("folder",),
    ("fact", "extract"): ("My favourite colours are 1) Blue, 2) Green",),
    ("fact", "set"): ("city", "Helsinki"),
    ("import",): ("klaw", "core.json"),
    ("memory", "save"): ("--content", "x"),
    ("workspace", "add"): ("folder",),
}
"""What stores something new."""

NEEDS_NONE: set[Words] = {
    ("completion",),
    ("config",),
    ("gate",),
    ("help",),
    ("mcp",),
    ("prompts", "show"),
    ("extract",),
    ("jobs", "schedule"),
    ("daily", "distil"),
    ("serve",),
}
"""Commands that look at no store."""

OF_PROJECTS: set[Words] = {("projects", "list"), ("projects", "remove"), ("projects", "show")}

REFUSED: list[Words] = [
    path
    for path, command in COMMANDS.items()
    if path
    and does_something(command)
    and path[0] != "append"
    and path not in NEEDS_NONE | OF_PROJECTS | {("doctor",)}
    and path not in CREATES
]

_VALUES = {
    "chat": "c:1",
    "channel:chat_id": "c:1",
    "section": "user",
    "key": "name",
}
_OPTIONS: dict[Words, tuple[str, ...]] = {
    ("context",): ("x",),
    ("scrub",): ("--yes",),
    ("watch",): ("--once",),
    ("forget",): ("m1", "--yes"),
    ("memory", "update"): ("--content", "x"),
    ("session", "content"): ("c:1",),
    ("core", "delete"): ("user", "name"),
}


def arguments(path: Words) -> tuple[str, ...]:
    """What a command needs, at least."""
    needed = [
        value
        for option in COMMANDS[path].params
        if option.required and path not in {("session", "content"), ("core", "delete")}
        for value in _of(option)
    ]
    return (*needed, *_OPTIONS.get(path, ()))


def _of(option: click.Parameter) -> list[str]:
    if isinstance(option, click.Argument):
        return ["x"]
    return [option.opts[0], "c:1"]


def test_what_reads_or_changes_a_store_makes_none(memlog_here: Run, store: Path, tmp_path: Path) -> None:
    for path in REFUSED:
        done = memlog_here(*path, *arguments(path), "--json", cwd=tmp_path)
        assert (done.code, done.out) == (1, b""), (path, done.err)
        assert done.error["code"] == "store_not_found", path
        assert str(store) in done.error["message"], path
        assert "memlog init" in done.error["hint"], path
        assert not store.exists(), path


def test_what_stores_something_new_makes_the_store(
    memlog: Run, store: Path, tmp_path: Path, without_model: dict[str, str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "MEMORY.md").write_text("tea\n")
    (tmp_path / "core.json").write_text('{"user":{"pet":"cat"},"agent":{}}')
    for path, rest in CREATES.items():
        done = memlog(*path, *rest, cwd=tmp_path, env=without_model)
        assert done.code == 0, (path, done.err)
        assert (store / "log").is_dir(), path
        shutil.rmtree(store)


def test_every_command_is_tried() -> None:
    assert len(REFUSED) > 30
    assert {called(path) for path in CREATES} <= {called(path) for path in COMMANDS}


def test_doctor_looks_at_the_machine_and_names_the_missing_store(memlog: Run, store: Path) -> None:
    done = memlog("doctor", "--json")
    (finding,) = [each for each in done.json["findings"] if each["check"] == "store"]
    assert (done.code, finding["state"]) == (1, "problem")
    assert str(store) in finding["finding"]
    assert not store.exists()


@pytest.mark.parametrize("name", ["log", "memlog.toml"])
def test_a_log_or_a_settings_file_makes_a_folder_a_store(memlog: Run, store: Path, name: str) -> None:
    store.mkdir()
    assert memlog("window", "--chat", "c:1").code == 1
    if name == "log":
        (store / name).mkdir()
    else:
        (store / name).touch()
    assert memlog("window", "--chat", "c:1").code == 0


def test_a_read_of_the_default_store_says_that_nothing_was_stored_yet(
    memlog: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    del environment["MEMLOG_STORE"]
    done = memlog("query", "tea")
    assert (done.code, done.out) == (1, b"")
    assert b"memlog: there is no store at " in done.err
    assert b"the first append makes a store" in done.err
    assert list(tmp_path.rglob("memlog*")) == []


def test_a_store_in_python_is_made_by_the_first_append_alone(tmp_path: Path) -> None:
    with library.open(tmp_path / "store") as store:
        with pytest.raises(library.NotFound) as error:
            store.search("tea", mode="text")
        assert error.value.code == "store_not_found"
        assert not (tmp_path / "store").exists()
        store.append([library.MemorySaved(content="green tea")])
        assert len(store.search("tea", mode="text").hits) == 1
        shutil.rmtree(tmp_path / "store")
