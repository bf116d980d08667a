"""The process that most tests run says and does what the installed program does."""

import subprocess
from pathlib import Path

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


def test_it_ends_as_the_installed_program_does(
    environment: dict[str, str], empty_store: Path, tmp_path: Path
) -> None:
    env = environment | {"COLUMNS": "71", "MEMLOG_LOCK_TIMEOUT": "12"}
    for args, input in CALLS:
        call = [MEMLOG, *args]
        installed = subprocess.run(call, input=input, env=env, cwd=tmp_path, capture_output=True, check=False)
        forked = run_memlog(*args, input=input, env=env, cwd=tmp_path)
        assert forked.returncode == installed.returncode, args
        assert (forked.stdout, forked.stderr) == (installed.stdout, installed.stderr), args


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
