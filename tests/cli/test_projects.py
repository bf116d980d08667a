"""`memlog projects`, and that a store is named once."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.files import locks
from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]

SAID = ("append", "message", "--chat", "x:1", "--role", "user", "--content")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No store is named; the platform's user data is below `tmp_path`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    return kept | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}


@pytest.fixture
def folder(memlog: Run) -> Path:
    """Of the projects' stores."""
    return Path(memlog("config", "store", "--json").json["value"]).parent


def test_list_needs_no_project_and_reads_no_settings_file(memlog: Run) -> None:
    memlog("--project", "anna", *SAID, "tea")
    store = Path(memlog("projects", "list", "--json").json["projects"][0]["folder"])
    (store / "memlog.toml").write_text("nonsense")
    assert memlog("--project", "anna", "projects", "list").code == 0


def test_show_is_the_project_and_the_status_of_its_store(memlog: Run) -> None:
    memlog("--project", "anna", *SAID, "tea")
    memlog("--project", "boris", *SAID, "coffee")
    found = memlog("--project", "boris", "projects", "show", "anna", "--json").json
    assert found["project"]["name"] == "anna"
    status = memlog("--project", "anna", "status", "--json").json
    assert found["status"] | {"silent": None} == status | {"silent": None}
    assert memlog("projects", "show", "anna").out.startswith(b"project                  anna\n")


def test_show_of_no_project_is_not_found_and_makes_none(memlog: Run, folder: Path) -> None:
    done = memlog("projects", "show", "anna", "--json")
    assert (done.code, done.error["code"]) == (1, "project_not_found")
    assert not folder.exists()


def test_show_takes_the_settings_of_that_store(memlog: Run) -> None:
    memlog("--project", "anna", "init")
    with (Path(memlog("--project", "anna", "config", "store").out.decode().strip()) / "memlog.toml").open(
        "a"
    ) as file:
        file.write("chunk_tokens = 128\nchunk_overlap = 8\n")
    memlog("--project", "anna", *SAID, "tea")
    status = memlog("--project", "anna", "status", "--json").json
    shown = memlog("--project", "boris", "projects", "show", "anna", "--json").json["status"]
    assert shown["projection_id"] == status["projection_id"]
    assert shown["generation"] == status["generation"]


def test_remove_without_a_terminal_and_without_yes_is_wrong_usage(memlog: Run) -> None:
    memlog("--project", "anna", *SAID, "tea")
    done = memlog("projects", "remove", "anna", input=b"y\n")
    assert done.code == 2
    assert b"--yes" in done.err
    assert len(memlog("projects", "list", "--jsonl").lines) == 1


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 1), (b"y\n", 0)])
def test_remove_asks_on_a_terminal(
    memlog: Run, environment: dict[str, str], answer: bytes, left: int
) -> None:
    memlog("--project", "anna", *SAID, "tea")
    ours, its = pty.openpty()
    with subprocess.Popen(
        [MEMLOG, "projects", "remove", "anna", "--json"],
        env=environment,
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(its)
        os.write(ours, answer)
        out, err = process.communicate(timeout=60)
        os.close(ours)
    assert re.search(rb"Remove the project anna permanently: \d files, \d+ bytes, last append ", err)
    assert json.loads(out)["done"] is (left == 0)
    assert len(memlog("projects", "list", "--jsonl").lines) == left


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_wrong_usage_as_in_the_option(memlog: Run, name: str) -> None:
    for args in (
        ("projects", "remove", name, "--yes"),
        ("projects", "show", name),
        ("--project", name, "status"),
    ):
        done = memlog(*args, "--json")
        assert (done.code, done.error["code"]) == (2, "usage")
    if name:
        assert memlog("status", "--json", env={"MEMLOG_PROJECT": name}).error["code"] == "bad_input"


def test_remove_is_busy_while_another_holds_a_lock(memlog: Run, folder: Path) -> None:
    memlog("--project", "anna", *SAID, "tea")
    with locks.holding_lock(folder / "anna" / "projector.lock", "it", 1.0):
        done = memlog("projects", "remove", "anna", "--yes", "--json", env={"MEMLOG_LOCK_TIMEOUT": "0.1"})
    assert (done.code, done.error["code"], done.error["retryable"]) == (75, "busy", True)
    assert memlog("--project", "anna", "window", "--chat", "x:1").code == 0


def test_what_a_killed_process_leaves_is_listed_and_finished(
    memlog: Run, folder: Path, environment: dict[str, str]
) -> None:
    memlog("--project", "anna", *SAID, "tea")
    with subprocess.Popen(
        [
            MEMLOG.parent / "python",
            "-c",
            "import sys, time; from memlog.eventlog.files import disk\n"
            "from memlog.cli.process.main import main\n"
            "disk.unlink = lambda path: (print('now', flush=True), time.sleep(60))\n"
            "sys.argv = ['memlog', 'projects', 'remove', 'anna', '--yes']; main()",
        ],
        env=environment,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGKILL)
    listed = memlog("projects", "list")
    assert b"anna: its removal is incomplete" in listed.err
    assert memlog("projects", "list", "--json").json["projects"][0]["is_being_removed"] is True
    assert memlog("projects", "show", "anna").code == 1
    done = memlog("projects", "remove", "anna", "--yes", "--json").json
    assert (done["done"], done["finished"]) == (True, ["anna"])
    assert list(folder.iterdir()) == []


# One store is named


def test_a_project_is_not_taken_for_another_store_that_is_named(memlog: Run, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    memlog("--store", other, *SAID, "coffee")
    for args, env in (
        (("--project", "anna"), {"MEMLOG_STORE": other}),
        (("--project", "anna", "--store", other), {}),
    ):
        for command in (("query", "coffee"), ("status",), (*SAID, "tea"), ("config", "store")):
            done = memlog(*args, *command, env=env)
            assert (done.code, done.out) == (2, b"")
            assert b"names another store" in done.err
    assert memlog("--store", other, "status", "--json", env={"MEMLOG_PROJECT": "anna"}).json["events"] == 1
    assert memlog("--project", "anna", "config", "search_limit", env={"MEMLOG_STORE": ""}).code == 0
