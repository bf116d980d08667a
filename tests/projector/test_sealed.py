"""What seals do to the read model: a closed tail is a line, and what is lost stops its stream."""

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
    shutil.copytree(projector.log, fresh / "log", symlinks=True)
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


@pytest.fixture
def sealed(projector):
    """Three memories in three sealed segments, and a fact; all projected."""
    log = Log(projector.store)
    for content in ("black", "green", "white"):
        log.append([memlog.MemorySaved(content=content)])
        log.seal()
    log.append([memlog.FactStored(topic_key="tea", value="green")])
    projector.catch_up()
    return projector


def segments(projector: Projector) -> list[Path]:
    return sorted((projector.log / "memory").iterdir(), key=lambda path: (len(path.name), path.name))


def facts(projector: Projector) -> list[str]:
    return [row[0] for row in projector.live().execute("SELECT value FROM facts")]


def gone(path: Path) -> None:
    path.unlink()


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("lose", [gone, shorter, a_link])
def test_a_stream_that_lost_something_stops_here_as_from_scratch_and_others_go_on(sealed, lose):
    path = segments(sealed)[1]
    lose(path)
    Log(sealed.store).append([memlog.MemorySaved(content="after")])
    Log(sealed.store).append([memlog.FactStored(topic_key="coffee", value="black")])
    (loss,) = sealed.catch_up().read.losses
    assert (loss.stream, loss.segment) == ("memory", path.name)
    assert (contents(sealed), sorted(facts(sealed))) == ([], ["black", "green"])
    assert digest(sealed.live()) == replayed(sealed)
    assert len(sealed.catch_up().read.losses) == 1


def test_what_is_put_back_is_read_again(sealed):
    path = segments(sealed)[1]
    path.rename(sealed.store / "aside")
    before = digest(sealed.live())
    assert sealed.catch_up().read.losses
    (sealed.store / "aside").rename(path)
    assert sealed.catch_up().read.losses == []
    assert contents(sealed) == ["black", "green", "white"]
    assert digest(sealed.live()) == before == replayed(sealed)


@pytest.mark.parametrize(
    ("lose", "left"), [(gone, ["black", "white"]), (shorter, ["black", "green", "white"])]
)
def test_a_loss_that_is_accepted_lets_the_stream_go_on(sealed, lose, left):
    lose(segments(sealed)[1])
    sealed.catch_up()
    (made,) = Log(sealed.store).accept_loss()
    assert made.lost
    assert Log(sealed.store).accept_loss() == []
    assert sealed.catch_up().read.losses == []
    assert contents(sealed) == left
    assert digest(sealed.live()) == replayed(sealed)


@pytest.mark.parametrize(
    ("lose", "left"),
    [(lambda _: None, ["black", "green", "white"]), (gone, ["black", "white"])],
    ids=["nothing is lost", "a segment is gone"],
)
def test_seals_that_are_made_anew_leave_the_rows_of_what_stands(sealed, lose, left):
    lose(segments(sealed)[1])
    sealed.catch_up()
    (sealed.log / "seals.jsonl").unlink()
    Log(sealed.store).seal()
    assert sealed.catch_up().read.losses == []
    assert contents(sealed) == left
    assert digest(sealed.live()) == replayed(sealed)


def test_a_stream_whose_folder_is_gone_stops(sealed):
    shutil.rmtree(sealed.log / "memory")
    assert len(sealed.catch_up().read.losses) == 3
    assert (contents(sealed), facts(sealed)) == ([], ["green"])


def test_what_grew_behind_its_seal_is_read_on(sealed):
    with segments(sealed)[1].open("ab") as file:
        file.write(b'{"type":"memory_saved","content":"late"}\n')
    assert sealed.catch_up().read.losses == []
    assert contents(sealed) == ["black", "green", "late", "white"]
