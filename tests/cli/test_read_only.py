"""A store that cannot be written: it is read as it stands, and what would write says why it does not."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

LINES = [
    {"type": "message", "id": "m1", "channel": "x", "chat_id": "1", "role": "user", "content": "green tea"},
    {"type": "core_memory_updated", "section": "user", "key": "name", "value": "Ann"},
    {"type": "memory_saved", "content": "black tea"},
]
STAYS = b"cannot be written: the read model stays as it is"


def line(members: dict[str, Any]) -> bytes:
    return json.dumps(members).encode() + b"\n"


@pytest.fixture
def bound(memlog: Run, bound_by_modes: dict[str, Any]) -> Run:
    """`memlog` as someone whom modes bind."""
    return partial(memlog, **bound_by_modes)


@pytest.fixture
def filled(memlog: Run, segment: Run) -> None:
    """A store with a read model, and one line that came later."""
    segment("memory", b"nonsense\n", "2026-02-23.jsonl")
    assert memlog("append", input=b"".join(map(line, LINES))).code == 0
    assert memlog("project", "--no-embed").code == 0
    assert memlog("append", input=line({"type": "memory_saved", "content": "later tea"})).code == 0


@pytest.fixture
def frozen(store: Path) -> Iterator[Callable[[], None]]:
    """Takes the right to write in the store and its files, until the test ends."""

    def set_modes(folder_mode: int, file_mode: int) -> None:
        for path in [store, *store.rglob("*")]:
            path.chmod(folder_mode if path.is_dir() else file_mode)

    yield partial(set_modes, 0o500, 0o400)
    set_modes(0o700, 0o600)


READS = [
    (("query", "tea", "--mode", "text"), b"green tea"),
    (("window", "--chat", "x:1"), b"green tea"),
    (("session", "content", "x:1"), b"green tea"),
    (("show", "m1"), b"green tea"),
    (("stats",), b"messages by role: user"),
    (("status",), b"events"),
    (("core", "get"), b"Ann"),
    (("core", "get", "user", "name"), b"Ann"),
    (("quarantine",), b"not_json"),
]


@pytest.mark.usefixtures("filled")
def test_what_reads_does_so_and_says_that_the_read_model_stays(bound: Run, frozen: Run, store: Path) -> None:
    frozen()
    before = sorted(path for path in store.rglob("*"))
    for args, said in READS:
        done = bound(*args)
        assert done.code == 0, args
        assert said in done.out, args
        assert STAYS in done.err, args
        assert sorted(path for path in store.rglob("*")) == before, args


@pytest.mark.usefixtures("filled")
def test_verify_compares_what_stands(bound: Run, frozen: Run, store: Path) -> None:
    frozen()
    before = sorted(path for path in store.rglob("*"))
    done = bound("verify")
    assert (done.code, done.err) == (0, b"")
    assert b"equal" in done.out
    assert sorted(path for path in store.rglob("*")) == before


@pytest.mark.usefixtures("filled")
def test_a_search_says_that_it_is_behind(bound: Run, frozen: Run) -> None:
    frozen()
    found = bound("query", "tea", "--mode", "text", "--json").json
    assert {hit["content"] for hit in found["hits"]} == {"green tea", "black tea"}
    assert found["synced"] is False


WRITES = [
    ("append", "message", "--chat", "x:1", "--role", "user", "--content", "x"),
    ("core", "set", "user", "name", "Bea"),
    ("core", "delete", "user", "name"),
    ("project", "--no-embed"),
    ("project", "--no-embed", "--from-scratch"),
]


@pytest.mark.usefixtures("filled")
def test_what_writes_is_refused_with_a_hint(bound: Run, frozen: Run) -> None:
    frozen()
    for args in WRITES:
        done = bound(*args)
        assert (done.code, done.out) == (73, b""), args
        *_, hint = done.err.decode().splitlines()
        assert hint.startswith("hint: "), args


@pytest.mark.usefixtures("filled")
def test_without_a_read_model_nothing_can_be_read_and_why_is_said(
    bound: Run, frozen: Run, store: Path
) -> None:
    shutil.rmtree(store / "model")
    frozen()
    for args, _ in READS:
        done = bound(*args)
        assert (done.code, done.out) == (73, b""), args
        said, hint = done.err.decode().splitlines()
        assert (
            said
            == f"memlog: there was no read model, and {store} is not writable, so memlog cannot build one"
        ), args
        assert hint == "hint: run memlog project as a user with write permission, or on a copy", args


@pytest.mark.usefixtures("filled")
def test_a_read_model_of_another_memlog_is_not_read(bound: Run, frozen: Run, store: Path) -> None:
    (generation,) = (store / "model").glob("*.db")
    with sqlite3.connect(generation) as db:
        db.execute("UPDATE meta SET value = 'another' WHERE name = 'projection_id'")
    db.close()
    frozen()
    done = bound("query", "tea", "--mode", "text")
    assert (done.code, done.out) == (73, b"")
    assert b"by another memlog, and " in done.err


_PROJECT_AND_DIE = """
import os, sys, memlog
store = memlog.open(sys.argv[1])
store.maintenance.project(embed=False)
os._exit(0)
"""


@pytest.mark.usefixtures("filled")
def test_what_a_killed_projector_has_committed_is_read(bound: Run, frozen: Run, store: Path) -> None:
    """It stands beside the file still, in its write-ahead log."""
    subprocess.run([sys.executable, "-c", _PROJECT_AND_DIE, store], check=True)
    (wal,) = (store / "model").glob("*.db-wal")
    assert os.stat(wal).st_size > 0
    frozen()
    found = bound("query", "tea", "--mode", "text", "--json").json
    assert {hit["content"] for hit in found["hits"]} == {"green tea", "black tea", "later tea"}


@pytest.fixture
def keep_read_only(store: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Makes a folder of the store one to read: by its mode and those of its files, or as a mount."""
    before: list[tuple[Path, int]] = []
    mounts: list[Path] = []

    def keep(name: str) -> None:
        folder = store / name
        if request.param == "mount":
            if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
                pytest.skip("this process cannot mount")
            mounts.append(folder)
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
            return
        for path in (*folder.iterdir(), folder):
            before.append((path, path.stat().st_mode))
            path.chmod(0o500 if path is folder else request.param)

    yield keep
    for path, mode in before:
        path.chmod(mode)
    for folder in mounts:
        subprocess.run(["umount", folder], check=True)


WAYS = pytest.mark.parametrize("keep_read_only", [0o400, 0o600, "mount"], indirect=True, ids=str)


@WAYS
@pytest.mark.usefixtures("filled")
def test_reads_answer_from_a_folder_of_read_models_that_is_to_be_read(
    bound: Run, store: Path, keep_read_only: Callable[[str], None]
) -> None:
    keep_read_only("model")
    before = sorted(store.rglob("*"))
    for args, said in [*READS, (("context", "tea", "--no-record"), b"green tea")]:
        done = bound(*args)
        assert (done.code, said in done.out) == (0, True), (args, done.err)
        assert f"{store / 'model'} cannot be written".encode() in done.err, args
        assert sorted(store.rglob("*")) == before, args
    assert bound("verify").code == 0
    refused = bound("project", "--json")
    assert (refused.code, refused.error["code"]) == (73, "cannot_create")
    assert bound("append", input=line(LINES[0] | {"id": "m2"})).code == 0


@WAYS
@pytest.mark.usefixtures("filled")
def test_reads_answer_where_no_vector_can_be_kept(
    bound: Run, store: Path, keep_read_only: Callable[[str], None]
) -> None:
    assert bound("query", "tea").code == 0
    bound("append", "memory_saved", "--content", "white tea")
    keep_read_only("cache")
    for args in (("query", "tea"), ("context", "tea")):
        done = bound(*args)
        assert (done.code, b"white tea" in done.out) == (0, True), (args, done.err)
    assert [path.name for path in store.iterdir() if "unreadable" in path.name] == []
