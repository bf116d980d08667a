"""Too little memory and no inodes: an error that says so, and a sound read model is read all the same."""

import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SAID = ("append", "message", "--chat", "c:1", "--role", "user")
MIB = 1024 * 1024


def with_memory(size: int) -> dict[str, Any]:
    """Options for `memlog` under which it has `size` bytes of memory."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))}


def test_too_little_memory_is_no_fault_of_memlog(memlog: Run, store: Path) -> None:
    done = memlog(*SAID, "--content", "-", "--json", input=b"x" * 15 * MIB, **with_memory(100 * MIB))
    assert (done.code, done.error["code"]) == (71, "resources")
    assert "memory" in done.error["message"]
    assert not store.exists()


def test_too_few_descriptors_are_no_fault_of_memlog(memlog: Run) -> None:
    memlog(*SAID, "--content", "tea")
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))}
    done = memlog("log", "cat", "--json", **few)
    assert done.code == 71, done.err
    assert b"too many open files" in done.err


@pytest.fixture
def without_inodes(memlog: Run, store: Path) -> Iterator[None]:
    """A store with a message, on a file system that has room for bytes and for no further file."""
    store.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=40m,nr_inodes=60", "tmpfs", store]
    if subprocess.run(options, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a file system with few inodes")
    try:
        assert memlog(*SAID, "--content", "green tea").code == 0
        assert memlog("project").code == 0
        count = 0
        while True:
            try:
                (store / f"filler-{count}").touch()
            except OSError:
                break
            count += 1
        yield
    finally:
        subprocess.run(["umount", store], check=True)


@pytest.mark.usefixtures("without_inodes")
def test_without_free_inodes_a_sound_read_model_is_read(memlog: Run, store: Path) -> None:
    for command in (("query", "tea"), ("window", "--chat", "c:1"), ("context", "tea", "--no-record")):
        done = memlog(*command)
        assert (done.code, b"green tea" in done.out) == (0, True), done.err
        assert b"No space left on device: the read model stays as it is" in done.err
    assert memlog("verify", "--json").json["ok"] is True
    findings = {each["check"]: each for each in memlog("doctor", "--json").json["findings"]}
    assert {findings[check]["state"] for check in ("read model", "disk")} == {"warning"}
    assert findings["cache"]["state"] == "ok"


@pytest.mark.usefixtures("without_inodes")
def test_a_store_that_has_room_again_catches_up(memlog: Run, store: Path) -> None:
    memlog(*SAID, "--content", "black coffee")
    assert b"coffee" not in memlog("query", "coffee", "--mode", "text").out
    for filler in store.glob("filler-*"):
        filler.unlink()
    assert b"coffee" in memlog("query", "coffee", "--mode", "text").out
