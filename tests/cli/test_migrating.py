"""Notes beside an empty store: the tiered engine's "legacy migration is automatic when the DB is empty"."""

import os
import pty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def notes(store: Path) -> Path:
    path = store.parent / "MEMORY.md"
    path.write_text("# Tea\n\n- We order sencha from Uji.\n")
    return path


def memories(memlog: Run) -> list[str]:
    return [each["content"] for each in memlog("memory", "list", "--json").json["memories"]]


@pytest.mark.parametrize("answer", ["y", "n"])
@pytest.mark.usefixtures("notes")
def test_init_on_a_terminal_asks_to_migrate_a_workspaces_memory(
    memlog: Run, on_a_terminal: Callable[..., bytes], answer: str
) -> None:
    ours, its = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    on_a_terminal("init", stdin=its)
    os.close(its)
    os.close(ours)
    assert memories(memlog) == ["We order sencha from Uji."] * (answer == "y")


@pytest.mark.usefixtures("notes")
def test_context_and_watch_name_the_command_or_import_where_the_setting_says_so(
    memlog: Run, store: Path
) -> None:
    memlog("init")
    for words in (["context", "tea"], ["watch", "--once"]):
        assert f"import memory-folder {store.parent}".encode() in memlog(*words).err
    assert memories(memlog) == []
    memlog("context", "tea", env={"MEMLOG_MIGRATE_AUTO": "true"})
    assert memories(memlog) == ["We order sencha from Uji."]
    assert b"has notes" not in memlog("context", "tea").err
