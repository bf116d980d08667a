"""`memlog verify` finds each damage that is planted in fixtures/damaged/, and passes the clean stores."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.main import memlog_command

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

import make_damaged_stores  # noqa: E402 - it stands one folder up, where people find it

FOLDER = TESTS.parent / "fixtures" / "damaged"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
DAMAGED = [name for name, expected in EXPECTED.items() if expected["exit"]]
CLEAN = [name for name in EXPECTED if name not in DAMAGED]

Run = Callable[..., Any]


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Verifies a copy of a store, in this process; the exit code and what was found."""

    def run(name: str, *args: str) -> tuple[int, Any]:
        store = tmp_path / name
        if not store.exists():
            shutil.copytree(FOLDER / name, store)
        before = contents(store)
        code = memlog_command.main(["--store", str(store), "verify", "--json", *args], standalone_mode=False)
        assert contents(store) == before
        return int(code), json.loads(capsys.readouterr().out)

    return run


def contents(store: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


def test_there_are_thirty_damaged_stores() -> None:
    assert len(DAMAGED) == 30
    assert {path.name for path in FOLDER.iterdir()} - {"README.md"} == {*EXPECTED, "expected.json"}


@pytest.mark.parametrize("name", DAMAGED)
def test_the_damage_is_found(verify: Callable[..., tuple[int, Any]], name: str) -> None:
    code, found = verify(name)
    assert code == EXPECTED[name]["exit"]
    assert found["ok"] is False
    assert any(EXPECTED[name]["says"] in text for text in found["problems"] + found["tampered"])
    assert bool(found["tampered"]) is (code == 3)


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_store_passes(verify: Callable[..., tuple[int, Any]], name: str) -> None:
    code, found = verify(name)
    assert (code, found["ok"], found["problems"], found["tampered"]) == (0, True, [], [])
    assert verify(name, "--strict")[0] == EXPECTED[name]["strict"]


@pytest.mark.parametrize("name", ["clean", "clean-accepted-loss", "clean-resealed", "sealed-gone"])
def test_a_read_model_of_the_store_is_compared_too(
    verify: Callable[..., tuple[int, Any]], memlog: Run, tmp_path: Path, name: str
) -> None:
    shutil.copytree(FOLDER / name, tmp_path / name)
    memlog("--store", tmp_path / name, "project", "--no-embed")
    code, found = verify(name)
    assert code == EXPECTED[name]["exit"]
    assert found["digest"] == found["replayed"] is not None


def test_the_command_exits_as_documented_and_says_what_it_found(memlog: Run, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "sealed-cut", tmp_path / "cut")
    done = memlog("--store", tmp_path / "cut", "verify")
    assert done.code == 3
    assert b"result       loss or tampering" in done.out
    assert b"memlog: conversations/telegram_7/2026-02-24.jsonl: sealed with 625 bytes, has 624" in done.err


def test_the_stores_are_those_that_the_script_makes(tmp_path: Path) -> None:
    make_damaged_stores.make(tmp_path)
    made = {path.relative_to(tmp_path): data for path, data in contents(tmp_path).items()}
    kept = {path.relative_to(FOLDER): data for path, data in contents(FOLDER).items()}
    del kept[Path("README.md")]
    assert made == kept
