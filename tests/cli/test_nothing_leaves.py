"""No command, killed or not, leaves anything outside the store or opens a socket."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.command_tree import COMMANDS, MEMLOG, does_something
from tests.support.surroundings import Surroundings
from tests.support.system_calls import why_no_strace

_TIMEOUT = 60
_CALLS = "trace=%file,socket,connect,sendto,fsync,fdatasync"
_MADE = re.compile(r"\bO_CREAT\b|^\d+ +(?:mkdir|rename|symlink|link|mknod)")
_NAMED = re.compile(r'"([^"]*)"')

CALLS = {
    "init": [],
    "append": [],
    "append message": ["--chat", "c:1", "--role", "user", "--content", "My harbour is green", "--id", "m1"],
    "append session_break": ["--chat", "c:1"],
    "append summary_written": ["--chat", "c:1", "--content", "Of harbours"],
    "append extraction_completed": ["--chat", "c:1", "--through-message-id", "m1"],
    "append memories_extracted": ["--chat", "c:1", "--message-id", "m1", "--model", "m", "--prompt", "p"],
    "append memories_merged": ["--event-id", "m1"],
    "append model_failed": [
        *("--task", "merge", "--event-id", "m1"),
        *("--provider", "p", "--model", "m", "--kind", "late"),
    ],
    "append job_completed": ["--job", "daily", "--period", "2026-11-26"],
    "append profile_refreshed": ["--event-id", "m1", "--model", "m", "--prompt", "p"],
    "append memory_saved": ["--memory-id", "k1", "--content", "Green tea"],
    "append memory_updated": ["--memory-id", "k1", "--title", "Tea"],
    "append memory_archived": ["--memory-id", "k1"],
    "append change_undone": ["--event-id", "k1"],
    "append memory_deleted": ["--memory-id", "k9"],
    "append memory_accessed": ["--memory-id", "k1"],
    "append context_given": ["--message-id", "m1"],
    "append salience_decayed": ["--rates", '{"context": 0.9}'],
    "append daily_event_recorded": ["--summary", "A ship came", "--id", "d1"],
    "append daily_events_compressed": ["--daily-event", "d1"],
    "append core_memory_updated": ["--section", "user", "--key", "name", "--value", "Ann"],
    "append core_memory_deleted": ["--section", "user", "--key", "age"],
    "append fact_stored": ["--topic-key", "tea", "--value", "green"],
    "append fact_removed": ["--topic-key", "coffee"],
    "append source_registered": ["--source-id", "s", "--root", "/nowhere"],
    "append source_removed": ["--source-id", "s"],
    "append document_indexed": ["--source-id", "s", "--file", "a.md", "--content", "text"],
    "append document_removed": ["--source-id", "s", "--file", "a.md"],
    "append redacted": ["--target-id", "m9", "--stream", "memory"],
    "project": ["--from-scratch"],
    "embed": [],
    "buffer": [],
    "extract": [],
    "daily distil": [],
    "import": ["memory-folder", "FILES/USER.md"],
    "export sqlite": ["FILES/out.db"],
    "jobs list": [],
    "jobs run": [],
    "jobs log": [],
    "jobs schedule": ["--cron"],
    "memory conflicts": [],
    "prompts show": ["extract-1"],
    "query": ["harbour"],
    "context": ["harbour"],
    "ask": ["what is my favourite tea"],
    "gate": ["what is my favourite tea"],
    "completion": ["bash"],
    "config": [],
    "help": [],
    "core set": ["user", "town", "Turku"],
    "core get": [],
    "core import": ["FILES/USER.md"],
    "core delete": ["user", "town"],
    "daily record": ["--summary", "Rain"],
    "daily list": [],
    "daily compress": ["d1", "--memory-id", "k1"],
    "decay": [],
    "prune": [],
    "docs add": ["FILES", "--source", "notes"],
    "docs refresh": [],
    "docs list": [],
    "docs jobs": [],
    "docs status": [],
    "docs tree": [],
    "docs show": ["notes"],
    "docs remove": ["notes"],
    "workspace add": ["FILES"],
    "workspace list": [],
    "workspace remove": ["files"],
    "fact set": ["favourite_colours", "blue"],
    "fact get": ["favourite_colours"],
    "fact list": [],
    "fact extract": ["My favourite teas are 1) Green, 2) Black"],
    "fact remove": ["favourite_colours"],
    "memory save": ["--content", "The harbour master is Ann", "--memory-id", "k2"],
    "memory list": [],
    "memory show": ["k2"],
    "memory history": ["k2"],
    "memory touch": ["k2"],
    "memory unmerge": ["k2"],
    "memory update": ["k2", "--title", "Master"],
    "memory archive": ["k2"],
    "memory delete": ["k2"],
    "projects list": [],
    "projects show": ["default"],
    "projects remove": ["no-such-project", "--yes"],
    "log cat": [],
    "log tail": [],
    "session content": ["c:1"],
    "sessions": [],
    "summaries": [],
    "show": ["m1"],
    "window": ["--chat", "c:1"],
    "quarantine": [],
    "secrets": [],
    "seal": [],
    "stats": [],
    "status": [],
    "digest": [],
    "doctor": [],
    "forget": ["m1", "--yes"],
    "scrub": ["--yes"],
    "mcp": ["--print-config", "codex"],
    "serve": ["--host", "0.0.0.0"],
    "watch": ["--once"],
    "verify": [],
}
"""Every command, in an order in which each has something to do."""

REFUSED = {"projects show", "projects remove", "serve", "extract", "daily distil", "memory unmerge"}
"""The first two name a project that does not exist; the server refuses an address that others reach; no
language model is configured; nothing was merged."""

_ALL_OF_THEM = """
import json, sys
from memlog.cli.process.main import memlog_command
for name, call in json.loads(sys.argv[1]).items():
    try:
        memlog_command.main(call, prog_name="memlog", standalone_mode=False)
    except Exception as error:
        print(json.dumps([name, repr(error)]), file=sys.stderr)
"""


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path / "around")


@pytest.fixture
def env(around: Surroundings, store: Path) -> dict[str, str]:
    """What the processes of a test see; the store is elsewhere."""
    return around.environment | {"MEMLOG_STORE": str(store)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 200 messages, every other one of them forgotten."""
    folder = tmp_path_factory.mktemp("template") / "store"
    said = {"type": "message", "channel": "c", "chat_id": "1", "role": "user"}
    texts = ["secret %d of the harbour ", "kept %d "]
    with memlog.open(folder, durability="os") as opened:
        opened.append([said | {"content": (texts[n % 2] % n) * 20} for n in range(200)])
        opened.erasure.forget(match="^secret")
    return folder


@pytest.fixture
def filled(template: Path, store: Path) -> None:
    """A copy of it."""
    shutil.copytree(template, store)


def traced(env: dict[str, str], output: Path, *command: str | Path) -> Any:
    """Run a command under strace; where that cannot be, without."""
    strace = ["strace", "-f", "--seccomp-bpf", "-e", _CALLS, "-o", output]
    return subprocess.run(
        [*([] if why_no_strace() else strace), *command],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
        text=True,
    )


def outside(output: Path, around: Surroundings) -> Iterator[str]:
    """The lines of strace that make something near the store's surroundings, or open a socket."""
    for line in output.read_text().splitlines() if output.exists() else ():
        is_socket = re.search(r"\b(?:socket|connect|sendto)\(", line) is not None
        if is_socket or (_MADE.search(line) and any(map(around.holds, _NAMED.findall(line)))):
            yield line


def test_every_command_is_called() -> None:
    doing = {" ".join(path) for path, command in COMMANDS.items() if does_something(command)}
    assert set(CALLS) == doing


def test_no_command_leaves_anything_outside_the_store_or_opens_a_socket(
    around: Surroundings, env: dict[str, str], tmp_path: Path
) -> None:
    """One process runs all of them, so that the suite need not start it ninety times."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "USER.md").write_text("# User\n\nname: Ann\n")
    (files / "MEMORY.md").write_text("# Memory\n\nThe harbour is green.\n")
    calls = {
        name: [*name.split(), *(arg.replace("FILES", str(files)) for arg in args)]
        for name, args in CALLS.items()
    }
    done = traced(env, tmp_path / "trace", sys.executable, "-c", _ALL_OF_THEM, json.dumps(calls))
    assert done.returncode == 0, done.stderr
    failed = [json.loads(line)[0] for line in done.stderr.splitlines() if line.startswith("[")]
    assert set(failed) == REFUSED, done.stderr
    assert around.left() == []
    assert list(outside(tmp_path / "trace", around)) == []


@pytest.mark.usefixtures("filled")
def test_a_command_that_is_ended_at_a_random_moment_leaves_nothing_outside_the_store(
    around: Surroundings, env: dict[str, str]
) -> None:
    calls = [("verify",), ("project", "--from-scratch"), ("scrub", "--yes"), ("query", "harbour")]
    numbers = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]
    for call, number in zip(calls, numbers, strict=True):
        with subprocess.Popen(
            [MEMLOG, *call], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(random.uniform(0.1, 0.6))
            process.send_signal(number)
        assert around.left() == [], (call, number)


@pytest.mark.usefixtures("filled")
def test_a_verify_that_is_killed_leaves_no_copy_of_the_memory(env: dict[str, str], store: Path) -> None:
    before = sorted((store / "model").glob("2*.db"))
    process = subprocess.Popen([MEMLOG, "verify"], env=env, stdout=subprocess.DEVNULL)
    while not (open_replays := nameless_files(process.pid)):
        assert process.poll() is None, "it ended before it was killed"
    assert [path.parent for path in open_replays] == [store / "model"]
    process.kill()
    process.wait(_TIMEOUT)
    assert sorted((store / "model").glob("2*.db")) == before


def nameless_files(pid: int) -> list[Path]:
    """The files with bytes that a process has open and that have no name any more, by the name they had."""
    gone = " (deleted)"
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            name = os.readlink(each)
            if name.endswith(gone) and os.stat(each).st_size > 0:
                found.append(Path(name.removesuffix(gone)))
    return found


def test_a_query_syncs_nothing_where_nothing_is_new(env: dict[str, str], tmp_path: Path) -> None:
    if why_no_strace():
        pytest.skip(why_no_strace())
    with memlog.open(Path(env["MEMLOG_STORE"])) as opened:
        opened.append([memlog.MemorySaved(content="The harbour is green.")])
        opened.search("harbour")
    assert traced(env, tmp_path / "trace", MEMLOG, "query", "harbour").returncode == 0
    calls = (tmp_path / "trace").read_text()
    assert "model.onnx" in calls
    assert "sync(" not in calls


_TOLD = """
import memlog, os, sys
with memlog.open(sys.argv[1]) as store:
    store.search("harbour")
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""


@pytest.mark.usefixtures("filled")
def test_a_program_that_uses_memlog_sends_no_telemetry_unless_its_user_says_so(
    around: Surroundings, env: dict[str, str], store: Path
) -> None:
    for chosen, then in (({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0")):
        done = subprocess.run(
            [sys.executable, "-c", _TOLD, store], env=env | chosen, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == then
        assert chosen or around.left() == []
