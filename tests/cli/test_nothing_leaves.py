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
from tests.support.command_tree import MEMLOG
from tests.support.sample_calls import CALLED, arguments_of, filled_store
from tests.support.surroundings import Surroundings
from tests.support.system_calls import why_no_strace

_TIMEOUT = 60
_CALLS = "trace=%file,socket,connect,sendto,fsync,fdatasync"
_MADE = re.compile(r"\bO_CREAT\b|^\d+ +(?:mkdir|rename|symlink|link|mknod)")
_NAMED = re.compile(r'"([^"]*)"')

IN_ORDER = sorted(
    (path for path in CALLED if path != ("projects", "link")),
    key=lambda path: (path[0] == "append", path[-1] in ("archive", "delete", "remove")),
)
"""Every command, in an order in which each has something to do; but the one that writes beside all stores."""

REFUSED = {"serve", "extract", "daily distil", "projects show", "projects remove", "projects unlink"}
"""The server refuses an address that others reach; no language model is configured; there is no project, and
no link."""

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


def test_no_command_leaves_anything_outside_the_store_or_opens_a_socket(
    around: Surroundings, env: dict[str, str], tmp_path: Path
) -> None:
    """One process runs all of them, so that the suite need not start it ninety times."""
    with filled_store(tmp_path) as opened:
        (opened.path / "memlog.toml").write_text("")  # a language model is a server
    # A hook that no agent calls is a line in the log of hooks, outside any store.
    own = [path for path in IN_ORDER if path != ("hook",)]
    calls = {" ".join(path): [*path, *arguments_of(path, tmp_path)] for path in own}
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
