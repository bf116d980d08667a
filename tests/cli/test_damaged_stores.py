"""`memlog verify` finds each damage that is planted in a store, and passes the clean ones: those of an older
memlog, and those of today."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.process.main import memlog_command
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log
from tests.support import damaged_stores
from tests.support.damaged_stores import OLDER

OLDER_DAMAGED = [name for name, expected in OLDER.items() if expected["exit"]]
OLDER_CLEAN = [name for name in OLDER if name not in OLDER_DAMAGED]
"""Of the paths and bytes of all older stores, as a memlog of the first format wrote them."""

Run = Callable[..., Any]
Make = Callable[[str], Path]
Verify = Callable[..., tuple[int, Any]]


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Verify:
    """Verifies a store, in this process; the exit code and what was found."""

    def run(store: Path, *args: str) -> tuple[int, Any]:
        before = contents(store)
        code = memlog_command.main(["--store", str(store), "verify", "--json", *args], standalone_mode=False)
        assert contents(store) == before
        return int(code), json.loads(capsys.readouterr().out)

    return run


def contents(store: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.fixture
def older(older_stores: Path, tmp_path: Path) -> Make:
    """Copies a store that an older memlog made."""
    return lambda name: Path(shutil.copytree(older_stores / name, tmp_path / name))


@pytest.fixture
def today(tmp_path: Path) -> Make:
    """Makes a store in today's format."""
    return lambda name: damaged_stores.make(tmp_path, name)


def test_the_damage_of_an_older_store_is_found(verify: Verify, older: Make) -> None:
    for name in OLDER_DAMAGED:
        check_damaged(verify, older(name), OLDER[name]["exit"], OLDER[name]["says"])


def test_the_damage_is_found(verify: Verify, today: Make) -> None:
    for name, (code, says, _) in damaged_stores.DAMAGED.items():
        check_damaged(verify, today(name), code, says)


def check_damaged(verify: Verify, store: Path, expected: int, says: str) -> None:
    code, found = verify(store)
    assert code == expected, store
    assert found["ok"] is False, store
    assert any(says in text for text in found["problems"] + found["tampered"]), (store, found)
    assert bool(found["tampered"]) is (code == 3), store


def test_a_clean_older_store_passes(verify: Verify, older: Make) -> None:
    for name in OLDER_CLEAN:
        check_clean(verify, older(name), OLDER[name]["strict"])


def test_a_clean_store_passes(verify: Verify, today: Make) -> None:
    for name, (strict, _) in damaged_stores.CLEAN.items():
        check_clean(verify, today(name), strict)


def check_clean(verify: Verify, store: Path, strict: int) -> None:
    code, found = verify(store)
    assert (code, found["ok"], found["problems"], found["tampered"]) == (0, True, [], []), store
    assert verify(store, "--strict")[0] == strict, store


def test_an_older_store_goes_on_in_files_of_its_own(verify: Verify, older: Make) -> None:
    for name in OLDER:
        store = older(name)
        before, known = contents(store), verify(store)
        Log(store).append([damaged_stores.said("new", "More tea.")])
        code, found = verify(store)
        assert code == known[0], name
        assert found["events"] == known[1]["events"] + 1, name
        assert {path: path.read_bytes() for path in before} == before, name
        assert {segment.name.writer for segment in list_segments(store / "log")[0]} > {""}, name


def test_a_read_model_of_the_store_is_compared_too(
    verify: Verify, memlog: Run, older: Make, today: Make
) -> None:
    for name in ("clean", "clean-accepted-loss", "clean-resealed", "sealed-gone"):
        for make in (older, today):
            store = make(name)
            memlog("--store", store, "project", "--no-embed")
            code, found = verify(store)
            assert code == OLDER[name]["exit"], store
            assert found["digest"] == found["replayed"] is not None, store
            shutil.rmtree(store)


def test_the_command_exits_as_documented_and_says_what_it_found(memlog: Run, older: Make) -> None:
    done = memlog("--store", older("sealed-cut"), "verify")
    assert done.code == 3
    assert b"result       loss or tampering" in done.out
    assert b"memlog: conversations/telegram_7/2026-02-24.jsonl: sealed with 625 bytes, has 624" in done.err
