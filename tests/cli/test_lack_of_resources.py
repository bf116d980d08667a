"""Too little memory: an error that says so. No inodes, a full disk: a sound read model is read as it is."""

import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memlog.projector.sqlite import connect_without_side_files

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


def test_too_little_memory_for_a_library_is_no_fault_of_memlog(memlog: Run) -> None:
    memlog(*SAID, "--content", "tea")
    done = memlog("project", "--json", **with_memory(100 * MIB))
    assert (done.code, done.error["code"]) == (71, "resources"), done.err


def test_too_few_descriptors_are_no_fault_of_memlog(memlog: Run) -> None:
    memlog(*SAID, "--content", "tea")
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))}
    done = memlog("log", "cat", "--json", **few)
    assert done.code == 71, done.err
    assert b"too many open files" in done.err


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A small file system at `folder`."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def without_inodes(memlog: Run, store: Path) -> Iterator[None]:
    """A store with a message, on a file system that has room for bytes and for no further file."""
    with mounted(store, "size=40m,nr_inodes=60"):
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


def fill(folder: Path) -> Path:
    """Leave not one byte of the file system free; the file that takes them."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return filler


@pytest.fixture
def small_disk(memlog: Run, store: Path) -> Iterator[None]:
    """A store with a message and a read model, on a file system of 6 MiB."""
    with mounted(store, "size=6m"):
        assert memlog(*SAID, "--content", "green tea").code == 0
        assert memlog("project").code == 0
        yield


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


READS = (
    ("query", "tea"),
    ("sessions",),
    ("window", "--chat", "c:1"),
    ("context", "tea", "--no-record"),
    ("ask", "favourite tea"),
    ("memory", "list"),
    ("docs", "list"),
    ("stats",),
)


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("has_unread", [False, True])
def test_on_a_full_disk_a_sound_read_model_is_read(memlog: Run, store: Path, has_unread: bool) -> None:
    if has_unread:
        memlog(*SAID, "--content", "black coffee")
    generations = {*store.glob("model/*.db")}
    fill(store)
    for command in READS:
        done = memlog(*command)
        assert done.code == 0, done.err
        assert b"No space left on device: the read model stays as it is" in done.err
        assert (b"green tea" in done.out) == (command[0] in ("query", "window", "context")), done.out
    assert memlog("verify", "--json").json["ok"] is True
    assert {*store.glob("model/*.db")} == generations


@pytest.mark.usefixtures("small_disk")
def test_without_room_for_what_is_new_the_read_model_is_read_and_catches_up_later(
    memlog: Run, store: Path
) -> None:
    for _ in range(6):
        memlog(*SAID, "--content", "-", input=b"black coffee " * 3000)
    filler = fill(store)
    with filler.open("ab") as file:
        # SQLite's index of the WAL takes 32 KiB; the rows of what is new take more than the rest.
        file.truncate(filler.stat().st_size - 40 * 1024)
    for command in READS[:3]:
        done = memlog(*command)
        assert done.code == 0, done.err
        assert b"database or disk is full: the read model stays as it is" in done.err
    filler.unlink()
    assert b"coffee" in memlog("query", "coffee", "--mode", "text").out


def test_without_room_the_commits_beside_a_database_are_read(tmp_path: Path) -> None:
    written = tmp_path / "written.db"
    full = tmp_path / "full"
    with mounted(full, "size=1m"), closing(sqlite3.connect(written)) as db:
        db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        for side in ("", "-wal"):
            (full / f"copy.db{side}").write_bytes(Path(f"{written}{side}").read_bytes())
        fill(full)
        with closing(connect_without_side_files(full / "copy.db")) as copy:
            assert copy.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_has_no_room_for_a_first_read_model(memlog: Run, store: Path) -> None:
    for path in store.glob("model/*"):
        path.unlink()
    fill(store)
    done = memlog("query", "tea", "--json")
    assert done.code == 74, done.err
    assert "database or disk is full" in done.error["message"]


@pytest.mark.usefixtures("without_inodes")
def test_a_store_that_has_room_again_catches_up(memlog: Run, store: Path) -> None:
    memlog(*SAID, "--content", "black coffee")
    assert b"coffee" not in memlog("query", "coffee", "--mode", "text").out
    for filler in store.glob("filler-*"):
        filler.unlink()
    assert b"coffee" in memlog("query", "coffee", "--mode", "text").out
