"""A disk that fills up: what was acknowledged stays, nothing else is claimed, and room makes all good again.

Two kinds: a limit on the size of a file, which anyone can set, and a small file system, which root can mount.
"""

import json
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.cli.refusals import not_stored

Run = Callable[..., Any]

LINES = [
    json.dumps({"type": "memory_saved", "id": f"m-{number}", "content": f"memory {number}"}).encode() + b"\n"
    for number in range(1000)
]
NOT_STORED = "may not have been stored"


def limited(size: int) -> dict[str, Any]:
    """Options for `memlog` under which a file has at most `size` bytes; a write that goes on fails."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return {"preexec_fn": limit}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here; the limit of a file's size tells the same")
    yield folder
    subprocess.run(["umount", folder], check=True)


def lines_of(store: Path) -> list[bytes]:
    """The memory stream's lines, the last without its newline where it has none."""
    return _bytes_of(store).split(b"\n")


def _bytes_of(store: Path) -> bytes:
    """Those of the memory stream's one segment; none where there was no room to make one."""
    return b"".join(path.read_bytes() for path in (store / "log/memory").glob("*.jsonl"))


def check_answers(done: Any, store: Path) -> list[str]:
    """Each line was answered: stored whole where it is said, or not claimed. The ids of the stored ones."""
    assert done.code == 74
    assert len(done.lines) == len(LINES)
    assert done.err == not_stored(sum("error" in answer for answer in done.lines))
    data = _bytes_of(store)
    stored = [answer for answer in done.lines if "error" not in answer]
    for answer in stored:
        assert json.loads(data[answer["offset"] :].partition(b"\n")[0])["id"] == answer["id"]
    for answer in done.lines:
        if "error" in answer:
            assert answer["error"]["code"] == "log_io"
            assert NOT_STORED in answer["error"]["message"]
            assert answer["error"]["hint"].startswith("try again with the same id m-")
            assert answer["error"]["retryable"]
    return [answer["id"] for answer in stored]


def check_goes_on(memlog: Run, store: Path, acknowledged: list[str]) -> None:
    """With room again the same lines are appended, and each event stands once in the read model."""
    before = lines_of(store)
    again = memlog("append", input=b"".join(LINES))
    assert (again.code, len(again.lines)) == (0, len(LINES))
    after = lines_of(store)
    assert after[: len(before) - 1] == before[:-1]
    # The torn tail is ended by one newline, and the next line begins behind it.
    assert after[len(before) - 1] == before[-1]
    assert json.loads(after[len(before) - (before[-1] == b"")])["id"] == "m-0"
    report = memlog("project", "--no-embed", "--json").json
    assert report["rows"] == len(LINES)
    assert report["quarantined"] == (before[-1] != b"")
    assert report["duplicates"] >= len(acknowledged)
    assert memlog("verify", "--json").code == 0


@pytest.mark.parametrize("size", [600, 20_000, 75_001])
def test_a_limit_stops_append_and_loses_nothing(memlog: Run, store: Path, size: int) -> None:
    done = memlog("append", input=b"".join(LINES), **limited(size))
    acknowledged = check_answers(done, store)
    assert bool(acknowledged) == (size > 70_000)
    assert len(acknowledged) < len(LINES)
    check_goes_on(memlog, store, acknowledged)


def test_a_full_disk_stops_append_and_loses_nothing(memlog: Run, small_disk: Path) -> None:
    store = small_disk / "store"
    env = {"MEMLOG_STORE": str(store)}
    done = memlog("append", input=b"".join(LINES), env=env)
    acknowledged = check_answers(done, store)
    assert 0 < len(acknowledged) < len(LINES)
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)

    def with_room(*args: Any, **options: Any) -> Any:
        return memlog(*args, env=env, **options)

    check_goes_on(with_room, store, acknowledged)


def test_one_event_on_a_full_disk_is_one_line_and_a_hint(memlog: Run, store: Path) -> None:
    args = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "tea", "--id", "my-id")
    done = memlog(*args, **limited(100))
    assert (done.code, done.out) == (74, b"")
    said, hint = done.err.decode().splitlines()
    assert said.startswith("memlog: conversations/x_1: File too large: event my-id may not have been stored")
    assert hint == "hint: try again with the same id my-id"
    assert memlog(*args).code == 0
    (hit,) = memlog("query", "tea", "--mode", "text", "--json").json["hits"]
    assert hit["id"] == "my-id"


def log_sha256(store: Path) -> dict[str, str]:
    return {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in store.rglob("*.jsonl")
        if "log" in path.parts
    }


def check_failed_for_room(done: Any) -> None:
    """One line and a hint."""
    assert (done.code, done.out) == (74, b"")
    said, hint = done.err.decode().splitlines()
    assert said.startswith("memlog: ")
    assert hint == "hint: free some disk space, then run memlog project; the log is intact"


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "a later one"])
def test_a_limit_stops_project_and_the_next_one_is_fine(
    memlog: Run, store: Path, size: int, is_first: bool
) -> None:
    if not is_first:
        assert memlog("append", input=LINES[0]).code == 0
        assert memlog("project", "--no-embed").code == 0
    assert memlog("append", input=b"".join(LINES)).code == 0
    before = log_sha256(store)
    check_failed_for_room(memlog("project", "--no-embed", **limited(size)))
    assert log_sha256(store) == before
    report = memlog("project", "--no-embed", "--json").json
    assert report["rows"] == len(LINES)
    assert memlog("verify", "--json").code == 0
    assert len(list((store / "model").glob("*.db"))) == 1


def test_a_full_disk_stops_project_and_the_next_one_is_fine(memlog: Run, small_disk: Path) -> None:
    env = {"MEMLOG_STORE": str(small_disk / "store")}
    assert memlog("append", input=b"".join(LINES[:300]), env=env).code == 0
    before = log_sha256(small_disk)
    check_failed_for_room(memlog("project", "--no-embed", env=env))
    assert log_sha256(small_disk) == before
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    assert memlog("project", "--no-embed", "--json", env=env).json["rows"] == 300
    assert memlog("verify", "--json", env=env).code == 0
