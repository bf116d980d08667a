"""A process that is stopped (SIGSTOP, Ctrl-Z, a debugger) while it holds a lock: a deadline, and its name."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HOLD = """
import sys
from pathlib import Path
from memlog.eventlog.files.locks import holding_lock
with holding_lock(Path(sys.argv[1]), "it", 5):
    print("locked", flush=True)
    sys.stdin.read()
"""
SHORT = {"MEMLOG_LOCK_TIMEOUT": "0.3"}


@pytest.fixture
def stopped() -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Starts a process that takes a lock as memlog does, and stops it."""
    started: list[subprocess.Popen[bytes]] = []

    def stop(path: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        process.send_signal(signal.SIGSTOP)
        while "State:\tT" not in Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.001)
        return process

    yield stop
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def message(run):
    def append(text: str, **options):
        return run("append", "message", "--chat", "x:1", "--role", "user", "--content", text, **options)

    assert append("tea").code == 0
    return append


def newest(store: Path) -> Path:
    (segment,) = (store / "log" / "conversations" / "x_1").iterdir()
    return segment


def test_an_append_behind_a_stopped_writer_ends_busy_with_its_pid(store, run, message, stopped):
    holder = stopped(newest(store))
    before = newest(store).read_bytes()
    done = message("more tea", env=SHORT)
    assert done.code == 75
    assert f"process {holder.pid}, which is stopped" in done.err
    assert newest(store).read_bytes() == before, "nothing was written"
    holder.kill()
    holder.wait()
    assert message("more tea", env=SHORT).code == 0, "the kernel frees the lock of who is killed"


def test_an_append_goes_on_once_the_stopped_writer_is_continued_and_ends(store, run, message, stopped):
    holder = stopped(newest(store))
    waiting = subprocess.Popen(
        [sys.executable, "-c", "import sys, memlog\nmemlog.open(sys.argv[1]).append([sys.argv[2].encode()])"]
        + [str(store), '{"type":"message","channel":"x","chat_id":"1","role":"user","content":"late"}']
    )
    time.sleep(0.3)
    assert waiting.poll() is None
    holder.send_signal(signal.SIGCONT)
    holder.communicate()
    assert waiting.wait(30) == 0


def test_a_projection_behind_a_stopped_projector_ends_busy_and_a_query_answers(store, run, message, stopped):
    """The query says that it may be behind; what stands is found."""
    assert run("project", "--no-embed").code == 0
    holder = stopped(store / "projector.lock")
    assert message("more tea").code == 0, "appending waits for no projector"
    done = run("project", "--no-embed", env=SHORT)
    assert done.code == 75
    assert f"process {holder.pid}, which is stopped" in done.err
    found = run("query", "tea", "--mode", "text", "--json", env=SHORT)
    assert found.code == 0
    assert [hit["content"] for hit in found.json["hits"]] == ["tea"]
    assert found.json["synced"] is False


@pytest.mark.parametrize("arguments", [("project", "--from-scratch", "--no-embed"), ("query", "tea")])
def test_a_rebuild_behind_a_stopped_one_ends_busy_long_before_one_behind_a_living_one(
    store, run, message, stopped, arguments
):
    """A living rebuild of a long log takes minutes, and is waited for."""
    (store / "model").mkdir(mode=0o700)
    holder = stopped(store / "model" / "build.lock")
    started = time.monotonic()
    done = run(*arguments, env=SHORT)
    assert done.code == 75
    assert f"process {holder.pid}, which is stopped" in done.err
    assert time.monotonic() - started < 20


def test_a_rebuild_that_cannot_be_shown_leaves_the_read_model_that_stands(store, run, message, stopped):
    """The projector lock is needed at its end alone."""
    assert run("project", "--no-embed").code == 0
    before = sorted(path.name for path in (store / "model").glob("*.db"))
    holder = stopped(store / "projector.lock")
    done = run("project", "--from-scratch", "--no-embed", env=SHORT)
    assert done.code == 75
    assert f"process {holder.pid}" in done.err
    assert sorted(path.name for path in (store / "model").glob("*.db")) == before


def test_eight_projectors_at_once_build_one_read_model(store, environment, message):
    """Two generations at most stand behind them, and nobody fails."""
    command = [str(Path(sys.executable).with_name("memlog")), "project", "--no-embed", "--json"]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    said = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 8, said
    reports = [json.loads(out) for out, _ in said]
    assert sum(report["rebuilt"] is not None for report in reports) == 1
    assert {report["rows"] for report in reports} == {1}
    assert len(list((store / "model").glob("*.db"))) == 1


def test_a_forked_child_does_not_keep_the_lock(store, message):
    """A lock goes with the open file, which is closed on exec, and is freed before an append ends."""
    script = """
import os, sys, memlog
store = memlog.open(sys.argv[1])
store.append([memlog.Message(channel="x", chat_id="1", role="user", content="a")])
if os.fork() == 0:
    os.execvp("sleep", ["sleep", "60"])
print(os.getpid(), flush=True)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(store)], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert parent.wait(30) == 0
        assert message("b", env=SHORT).code == 0
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()
