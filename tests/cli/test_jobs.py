"""memlog jobs schedule, and memlog memory conflicts: what the commands add to the operations."""

import plistlib
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as package

Run = Callable[..., Any]
STORE = "an 100% odd $HOME store"


def test_a_unit_runs_what_is_due_in_this_store(memlog: Run, tmp_path: Path) -> None:
    store = str(tmp_path / STORE)

    def unit(host: str) -> str:
        return str(memlog("--store", store, "jobs", "schedule", f"--{host}", "--json").json["unit"])

    asked = ["-q", "--store", store, "jobs", "run"]
    assert plistlib.loads(unit("launchd").encode())["ProgramArguments"][1:] == asked
    *times, command = unit("cron").split(" ", 5)
    assert times == ["*/15", "*", "*", "*", "*"]
    assert shlex.split(command.replace("\\%", "%"))[1:] == asked
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd here")
    service, timer = unit("systemd").split("# memlog-jobs.timer\n")
    for name, text in (("service", service), ("timer", timer)):
        (tmp_path / f"memlog-jobs.{name}").write_text(text)
        path = str(tmp_path / f"memlog-jobs.{name}")
        done = subprocess.run(
            [analyze, "--user", "verify", path], capture_output=True, text=True, check=False
        )
        assert "memlog-jobs" not in done.stderr, done.stderr


def test_a_person_decides_a_conflict(memlog: Run, tmp_path: Path) -> None:
    decision = package.MergeDecision("contradiction", ["old", "new"], ["s1", "s2"])
    events = [
        package.MemorySaved(id="s1", memory_id="old", content="Anna lives in Turku"),
        package.MemorySaved(id="s2", memory_id="new", content="Anna lives in Tampere"),
        package.MemoriesMerged(
            id="m1", event_ids=["s1", "s2"], decisions=[decision], model="small", prompt="merge-1"
        ),
    ]
    with package.open(tmp_path / "store") as store:
        store.append(events)

    def conflicts(*args: str) -> list[tuple[str, str | None]]:
        found = memlog("--store", str(tmp_path / "store"), "memory", "conflicts", *args, "--json").json
        return [(each["id"], each["state"], each["memory_id"]) for each in found["conflicts"]]

    assert conflicts() == [("m1.0", "waiting", None)]
    assert memlog("--store", str(tmp_path / "store"), "memory", "conflicts", "--resolve", "m1.0").code == 2
    assert conflicts("--resolve", "m1.0", "--keep", "new") == [("m1.0", "decided", "new")]
    ((_, state, holds),) = conflicts()
    assert (state, holds) == ("decided", "new")
