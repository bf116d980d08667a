"""`memlog verify` finds each damage that is planted in a store, and passes the clean ones: those of an older
memlog in fixtures/damaged/, and those of today."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.main import memlog_command
from memlog.eventlog.streams import SegmentName, segments_of
from memlog.eventlog.writer import Log

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

import make_damaged_stores  # noqa: E402 - it stands one folder up, where people find it

FOLDER = TESTS.parent / "fixtures" / "damaged"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
OLDER_DAMAGED = [name for name, expected in EXPECTED.items() if expected["exit"]]
OLDER_CLEAN = [name for name in EXPECTED if name not in OLDER_DAMAGED]

Run = Callable[..., Any]
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


def older(folder: Path, name: str) -> Path:
    """A copy of a store that an older memlog made."""
    return Path(shutil.copytree(FOLDER / name, folder / name))


def test_thirty_damaged_stores_of_an_older_memlog_are_kept_as_it_made_them() -> None:
    assert len(OLDER_DAMAGED) == 30
    assert {path.name for path in FOLDER.iterdir()} - {"README.md"} == {*EXPECTED, "expected.json"}
    names = [SegmentName.parse(path.name) for path in FOLDER.rglob("*.jsonl") if path.name != "seals.jsonl"]
    assert {"" if name is None else name.writer for name in names} == {""}


@pytest.mark.parametrize("name", OLDER_DAMAGED)
def test_the_damage_of_an_older_store_is_found(verify: Verify, tmp_path: Path, name: str) -> None:
    check_damaged(verify, older(tmp_path, name), EXPECTED[name]["exit"], EXPECTED[name]["says"])


@pytest.mark.parametrize("name", make_damaged_stores.DAMAGED)
def test_the_damage_is_found(verify: Verify, tmp_path: Path, name: str) -> None:
    code, says, _ = make_damaged_stores.DAMAGED[name]
    check_damaged(verify, make_damaged_stores.make(tmp_path, name), code, says)


def check_damaged(verify: Verify, store: Path, expected: int, says: str) -> None:
    code, found = verify(store)
    assert code == expected
    assert found["ok"] is False
    assert any(says in text for text in found["problems"] + found["tampered"])
    assert bool(found["tampered"]) is (code == 3)


@pytest.mark.parametrize("name", OLDER_CLEAN)
def test_a_clean_older_store_passes(verify: Verify, tmp_path: Path, name: str) -> None:
    check_clean(verify, older(tmp_path, name), EXPECTED[name]["strict"])


@pytest.mark.parametrize("name", make_damaged_stores.CLEAN)
def test_a_clean_store_passes(verify: Verify, tmp_path: Path, name: str) -> None:
    strict, _ = make_damaged_stores.CLEAN[name]
    check_clean(verify, make_damaged_stores.make(tmp_path, name), strict)


def check_clean(verify: Verify, store: Path, strict: int) -> None:
    code, found = verify(store)
    assert (code, found["ok"], found["problems"], found["tampered"]) == (0, True, [], [])
    assert verify(store, "--strict")[0] == strict


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_store_goes_on_in_files_of_its_own(verify: Verify, tmp_path: Path, name: str) -> None:
    store = older(tmp_path, name)
    before, known = contents(store), verify(store)
    Log(store).append([make_damaged_stores.said("new", "More tea.")])
    code, found = verify(store)
    assert code == known[0]
    assert found["events"] == known[1]["events"] + 1
    assert {path: path.read_bytes() for path in before} == before
    assert {segment.name.writer for segment in segments_of(store / "log")[0]} > {""}


@pytest.mark.parametrize("name", ["clean", "clean-accepted-loss", "clean-resealed", "sealed-gone"])
@pytest.mark.parametrize("make", [older, make_damaged_stores.make])
def test_a_read_model_of_the_store_is_compared_too(
    verify: Verify, memlog: Run, tmp_path: Path, make: Callable[[Path, str], Path], name: str
) -> None:
    store = make(tmp_path, name)
    memlog("--store", store, "project", "--no-embed")
    code, found = verify(store)
    assert code == EXPECTED[name]["exit"]
    assert found["digest"] == found["replayed"] is not None


def test_the_command_exits_as_documented_and_says_what_it_found(memlog: Run, tmp_path: Path) -> None:
    done = memlog("--store", older(tmp_path, "sealed-cut"), "verify")
    assert done.code == 3
    assert b"result       loss or tampering" in done.out
    assert b"memlog: conversations/telegram_7/2026-02-24.jsonl: sealed with 625 bytes, has 624" in done.err
