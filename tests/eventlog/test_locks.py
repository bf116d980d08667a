"""Locks wait for their holder, and for one in the same process as long as it takes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memlog.eventlog.errors import Busy
from memlog.eventlog.files import disk, locks
from memlog.eventlog.log import log_format
from tests.support.watched import until


@contextmanager
def held(path: Path, flags: int) -> Iterator[None]:
    """A context in which another open file holds the lock of `path`."""
    fd = os.open(path, flags)
    try:
        locks.lock_file(fd, "it", 0)
        yield
    finally:
        os.close(fd)


def test_a_holder_of_the_same_process_is_waited_for_beyond_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    answers = [True] * 30
    with held(path, os.O_RDWR), path.open("rb+") as file, pytest.raises(Busy, match="it is locked by"):
        locks.lock_file(file.fileno(), "it", 0.05, is_held_here=lambda: bool(answers) and answers.pop())
    assert answers == [], "asked 30 times, it has slept for longer than the timeout"


def test_a_process_that_waits_to_write_the_format_finds_it_written(tmp_path: Path) -> None:
    answers: list[bool] = []
    waits = threading.Event()
    acquire = locks.lock_file

    def told(*args: object, **options: object) -> None:
        waits.set()
        acquire(*args, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, held(tmp_path, disk.FOLDER):
        patch.setattr(locks, "lock_file", told)
        other = threading.Thread(
            target=lambda: answers.append(log_format.claim_format(tmp_path, lock_timeout=60))
        )
        other.start()
        assert waits.wait(60)
        (tmp_path / log_format.FORMAT).write_bytes(log_format.LINE)
    other.join(60)
    assert answers == [False]


def test_a_file_without_a_generation_has_none() -> None:
    reader, writer = os.pipe()
    assert disk.inode_generation(reader) is None
    os.close(reader)
    os.close(writer)


def test_the_generation_is_the_number_that_the_system_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    # Not each file system has one: tmpfs and overlayfs have none.
    monkeypatch.setattr("fcntl.ioctl", lambda *_: (7).to_bytes(4, sys.byteorder) + bytes(4))
    with Path(__file__).open("rb") as file:
        assert disk.inode_generation(file.fileno()) == 7


FORKS = """
import multiprocessing, os, sys
from pathlib import Path
from memlog.eventlog.files.locks import holding_lock

stdin = os.dup(0)  # of which multiprocessing closes the original in a child

with holding_lock(Path(sys.argv[1]), "it", 1):
    child = multiprocessing.get_context("fork").Process(target=os.read, args=(stdin, 1))
    child.start()
    if sys.argv[2] == "dies":
        print("forked", flush=True)
        os.kill(os.getpid(), 9)
print("forked", flush=True)
os.read(stdin, 1)
child.join()
"""


@pytest.mark.parametrize("parent", ["goes on", "dies"])
def test_a_forked_child_keeps_no_lock_of_its_parent(tmp_path: Path, parent: str) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", FORKS, path, parent]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"forked\n"
        if parent == "dies":
            process.wait(60)
        until(lambda: not locks.is_lock_held(path))
        process.stdin.close()
