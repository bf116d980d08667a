"""`memlog core` as processes: the view, changes of it by hand, and imports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def view(store: Path) -> Path:
    return store / "model" / "core_memory.json"


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


def test_what_is_kept_and_otherwise_in_the_file_is_told(memlog: Run, tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("")
    assert memlog("core", "import", tmp_path / "USER.md").err.endswith(b"memlog: the file says nothing\n")
    (tmp_path / "USER.md").write_text("Name: Anna\n")
    memlog("core", "set", "user", "name", "Bob")
    assert b"otherwise in the file: 1; --force" in memlog("core", "import", tmp_path / "USER.md").err
    assert b"already imported" not in memlog("core", "import", tmp_path / "USER.md", "--force").err
    assert b"already imported" in memlog("core", "import", tmp_path / "USER.md").err
