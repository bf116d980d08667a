"""The process that most tests run says and does what the installed program does."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_tree import MEMLOG
from tests.support.forked_memlog import run_memlog

CALLS: list[tuple[tuple[str, ...], bytes]] = [
    (("--version",), b""),
    ((), b""),
    (("quary", "tea"), b""),
    (("append", "--json"), b'{"type":"message"}\n'),
    (("append",), b""),
    (("window", "--chat", "x:1"), b""),
    (("query", "--mode", "text", "täa \N{TEACUP WITHOUT HANDLE}"), b""),
    (("status", "--json"), b""),
    (("config",), b""),
    (("docs", "show", "nothing"), b""),
]


@pytest.mark.parametrize(("args", "input"), CALLS)
def test_it_ends_as_the_installed_program_does(
    environment: dict[str, str], empty_store: Path, tmp_path: Path, args: tuple[str, ...], input: bytes
) -> None:
    env = environment | {"COLUMNS": "71", "MEMLOG_LOCK_TIMEOUT": "12"}
    call = [MEMLOG, *args]
    installed = subprocess.run(call, input=input, env=env, cwd=tmp_path, capture_output=True, check=False)
    forked = run_memlog(*args, input=input, env=env, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        installed.returncode,
        installed.stdout,
        installed.stderr,
    )


def test_each_call_has_its_own_folder_and_environment(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"a": b"11\n", "b": b"12\n"}
    for name, limit in limits.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "memlog.toml").write_bytes(b"search_limit = " + limit)
    run_memlog("--version")
    monkeypatch.setattr(subprocess, "run", None)  # nothing but a fork will do
    for name, limit in limits.items():
        asked = ("config", "search_limit")
        assert run_memlog("--store", ".", *asked, env=environment, cwd=tmp_path / name).stdout == limit
        named = environment | {"MEMLOG_STORE": str(tmp_path / name)}
        assert run_memlog(*asked, env=named).stdout == limit


def test_modes_bind_a_call_for_which_root_gives_up_its_rights_and_no_other(
    environment: dict[str, str], store: Path, bound_by_modes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.mkdir(mode=0o500)
    event = b'{"type":"session_break","channel":"x","chat_id":"1"}'
    call = [MEMLOG, "append"]
    installed = subprocess.run(
        call, input=event, env=environment, stdout=subprocess.DEVNULL, check=False, **bound_by_modes
    )
    run_memlog("--version")
    monkeypatch.setattr(subprocess, "run", None)  # nothing but a fork will do
    forked = run_memlog("append", input=event, env=environment, **bound_by_modes)
    assert (forked.returncode, installed.returncode) == (73, 73)
    if bound_by_modes:
        assert run_memlog("append", input=event, env=environment).returncode == 0


def test_a_call_writes_to_a_file_that_it_is_given(environment: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        done = run_memlog("--version", env=environment, stdout=file)
    assert (done.returncode, done.stdout, done.stderr) == (0, None, b"")
    assert (tmp_path / "out").read_bytes().startswith(b"memlog, version ")


def test_a_call_that_does_not_end_is_killed_and_the_next_one_runs(environment: dict[str, str]) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_memlog("watch", "--json", env=environment, timeout=0.5)
    assert run_memlog("append", input=b"", env=environment).returncode == 0
