"""A tail that a seal has made a line is projected, and is pending again where the seal goes."""

import shutil
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.log import Log
from memlog.projector.digest import digest
from memlog.projector.projector import Projector


@pytest.fixture
def projector(tmp_path: Path):
    made = Projector(tmp_path / "store")
    yield made
    made.close()


def contents(projector: Projector) -> list[str]:
    return [row[0] for row in projector.live().execute("SELECT content FROM memories ORDER BY content")]


def replayed(projector: Projector) -> str:
    fresh = projector.store.parent / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(projector.log, fresh / "log")
    other = Projector(fresh)
    other.catch_up()
    try:
        return digest(other.live())
    finally:
        other.close()


def test_a_pending_tail_is_projected_once_it_is_sealed_and_is_pending_again_without_its_seal(projector):
    (position,) = Log(projector.store).append([memlog.MemorySaved(content="green")])
    with (projector.log / position.stream / position.segment).open("ab") as file:
        file.write(b'{"type":"memory_saved","content":"foreign"}')
    projector.catch_up()
    assert contents(projector) == ["green"]
    Log(projector.store).seal()
    projector.catch_up()
    assert contents(projector) == ["foreign", "green"]
    assert digest(projector.live()) == replayed(projector)
    (projector.log / "seals.jsonl").unlink()
    assert projector.catch_up().read.notes == [
        f"memory: {position.segment} was rewritten; the stream was replayed"
    ]
    assert contents(projector) == ["green"]
    assert digest(projector.live()) == replayed(projector)
