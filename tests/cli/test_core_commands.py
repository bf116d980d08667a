"""`memlog core` as processes: the view, changes of it by hand, and imports."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def view(store: Path) -> Path:
    return store / "model" / "core_memory.json"


@pytest.mark.usefixtures("empty_store")
def test_an_unknown_key_cannot_be_deleted(memlog: Run) -> None:
    done = memlog("core", "delete", "user", "name", "--json")
    assert (done.code, done.error["code"]) == (1, "core_key_not_found")


@pytest.mark.parametrize("command", [["core", "get"], ["query", "tea", "--mode", "text"], ["project"]])
def test_a_command_that_reads_on_writes_the_view(memlog: Run, view: Path, command: list[str]) -> None:
    memlog("core", "set", "user", "name", "Anna")
    assert memlog(*command).code == 0
    assert json.loads(view.read_bytes()) == {"user": {"name": "Anna"}, "agent": {}}


def test_a_change_by_hand_is_told_by_each_command_until_it_is_imported(memlog: Run, view: Path) -> None:
    memlog("core", "set", "user", "name", "Anna")
    memlog("core", "get")
    view.write_text('{"user":{"name":"Bob"},"agent":{}}')
    for command in (["core", "get"], ["project"], ["window", "--chat", "x:1"]):
        assert b"core_memory.json was changed by hand: memlog core import" in memlog(*command).err
    done = memlog("core", "import", view, "--json")
    assert done.err == b""
    assert [each["value"] for each in done.json["set"]] == ["Bob"]
    after = memlog("core", "get", "user", "name")
    assert (after.out, after.err) == (b"Bob\n", b"")


def test_a_read_only_store_shows_and_takes_nothing_new(
    memlog: Run, store: Path, view: Path, bound_by_modes: dict[str, Any]
) -> None:
    memlog("core", "set", "user", "name", "Anna")
    memlog("core", "get")
    view.write_text('{"user":{"name":"Bob"},"agent":{}}')
    folders = [store, *(path for path in store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert memlog("core", "get", "user", "name", **bound_by_modes).out == b"Anna\n"
        refused = memlog("core", "import", view, **bound_by_modes)
        assert refused.code in (73, 74)
        assert len(refused.err.splitlines()) <= 3
        assert b"Traceback" not in refused.err
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert view.read_text() == '{"user":{"name":"Bob"},"agent":{}}'


def test_a_file_of_another_shape_is_refused_with_a_hint(memlog: Run, tmp_path: Path) -> None:
    path = tmp_path / "core.json"
    path.write_text('{"user":{"name":5}}')
    done = memlog("core", "import", path)
    assert (done.code, done.out) == (65, b"")
    assert done.err.splitlines() == [
        f"memlog: {path}: user: the value of 'name' is not a string".encode(),
        b'hint: the shape is {"user":{"key":"value"},"agent":{}}',
    ]


def test_an_empty_file_says_nothing(memlog: Run, tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("")
    done = memlog("core", "import", tmp_path / "USER.md")
    assert (done.code, done.out) == (0, b"")
    assert done.err.endswith(b"memlog: the file says nothing\n")


def test_what_is_kept_and_otherwise_in_the_file_is_told(memlog: Run, tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("Name: Anna\n")
    memlog("core", "set", "user", "name", "Bob")
    assert b"otherwise in the file: 1; --force" in memlog("core", "import", tmp_path / "USER.md").err
    assert b"already imported" not in memlog("core", "import", tmp_path / "USER.md", "--force").err
    assert b"already imported" in memlog("core", "import", tmp_path / "USER.md").err
