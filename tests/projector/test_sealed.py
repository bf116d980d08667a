"""What seals do to the read model: a closed tail is a line; a loss is noted, and what remains is read."""

import shutil
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import hash_dump


@pytest.fixture
def projector(tmp_path: Path):
    made = Projector(tmp_path / "store")
    yield made
    made.close()


def contents(projector: Projector) -> list[str]:
    return [
        row[0] for row in projector.connect_to_live().execute("SELECT content FROM memories ORDER BY content")
    ]


def remove_seals(log: Path) -> None:
    for path in log.glob("seals*.jsonl"):
        path.unlink()


def losses(projector: Projector) -> list[str]:
    return [note for note in projector.catch_up().read.notes if "sealed with" in note]


def replayed(projector: Projector) -> str:
    fresh = projector.store.parent / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(projector.log, fresh / "log", symlinks=True)
    other = Projector(fresh)
    other.catch_up()
    try:
        return hash_dump(other.connect_to_live())
    finally:
        other.close()


def test_a_pending_tail_is_projected_once_it_is_sealed_and_is_pending_again_without_its_seal(projector):
    (position,) = Log(projector.store).append([memlog.MemorySaved(content="green")])
    with (projector.log / position.stream / position.segment).open("ab") as file:
        file.write(b'{"type":"memory_saved","content":"foreign"}')
    projector.catch_up()
    assert contents(projector) == ["green"]
    seal_unsealed_segments(projector.store)
    projector.catch_up()
    assert contents(projector) == ["foreign", "green"]
    assert hash_dump(projector.connect_to_live()) == replayed(projector)
    remove_seals(projector.log)
    assert projector.catch_up().read.notes == [
        f"memory: {position.segment} was rewritten; the stream was replayed"
    ]
    assert contents(projector) == ["green"]
    assert hash_dump(projector.connect_to_live()) == replayed(projector)


def test_a_segment_that_arrives_in_two_parts_is_not_called_rewritten(projector):
    log = Log(projector.store)
    (position,) = log.append([memlog.MemorySaved(content="green")])
    log.append([memlog.MemorySaved(content="black")])
    seal_unsealed_segments(log.store)
    (projector.store / "writers").rename(projector.store / "away")  # as in a copy: the segment is another's
    path = projector.log / position.stream / position.segment
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    projector.catch_up()
    assert contents(projector) == ["green"]
    path.write_bytes(whole)
    assert projector.catch_up().read.notes == [
        f"memory: more of {position.segment} has arrived; the stream was replayed"
    ]
    assert contents(projector) == ["black", "green"]
    assert hash_dump(projector.connect_to_live()) == replayed(projector)


@pytest.fixture
def sealed(projector):
    """Three memories in three sealed segments, and a fact; all projected."""
    log = Log(projector.store)
    for content in ("black", "green", "white"):
        log.append([memlog.MemorySaved(content=content)])
        seal_unsealed_segments(log.store)
    log.append([memlog.FactStored(topic_key="tea", value="green")])
    projector.catch_up()
    return projector


def segments(projector: Projector) -> list[Path]:
    return sorted((projector.log / "memory").iterdir(), key=lambda path: (len(path.name), path.name))


def facts(projector: Projector) -> list[str]:
    return [row[0] for row in projector.connect_to_live().execute("SELECT value FROM facts")]


def gone(path: Path) -> None:
    path.unlink()


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("lose", "left"),
    [(gone, ["black", "white"]), (shorter, ["black", "green", "white"]), (a_link, ["black", "white"])],
)
def test_what_remains_of_a_stream_that_lost_something_is_read_and_appended_to(sealed, lose, left):
    path = segments(sealed)[1]
    lose(path)
    Log(sealed.store).append([memlog.MemorySaved(content="after")])
    (loss,) = losses(sealed)
    assert loss.startswith(f"memory/{path.name}, sealed with ")
    assert contents(sealed) == sorted([*left, "after"])
    assert hash_dump(sealed.connect_to_live()) == replayed(sealed)
    assert len(losses(sealed)) == 1


def test_what_is_put_back_is_read_again(sealed):
    path = segments(sealed)[1]
    path.rename(sealed.store / "aside")
    before = hash_dump(sealed.connect_to_live())
    assert losses(sealed)
    (sealed.store / "aside").rename(path)
    assert losses(sealed) == []
    assert contents(sealed) == ["black", "green", "white"]
    assert hash_dump(sealed.connect_to_live()) == before == replayed(sealed)


@pytest.mark.parametrize(
    ("lose", "left"), [(gone, ["black", "white"]), (shorter, ["black", "green", "white"])]
)
def test_a_loss_that_is_accepted_lets_the_stream_go_on(sealed, lose, left):
    lose(segments(sealed)[1])
    sealed.catch_up()
    (made,) = accept_losses(sealed.store)
    assert made.lost
    assert accept_losses(sealed.store) == []
    assert losses(sealed) == []
    assert contents(sealed) == left
    assert hash_dump(sealed.connect_to_live()) == replayed(sealed)


@pytest.mark.parametrize(
    ("lose", "left"),
    [(lambda _: None, ["black", "green", "white"]), (gone, ["black", "white"])],
    ids=["nothing is lost", "a segment is gone"],
)
def test_seals_that_are_made_anew_leave_the_rows_of_what_stands(sealed, lose, left):
    lose(segments(sealed)[1])
    sealed.catch_up()
    remove_seals(sealed.log)
    seal_unsealed_segments(sealed.store)
    assert losses(sealed) == []
    assert contents(sealed) == left
    assert hash_dump(sealed.connect_to_live()) == replayed(sealed)


def test_a_stream_whose_folder_is_gone_has_no_rows(sealed):
    shutil.rmtree(sealed.log / "memory")
    assert len(losses(sealed)) == 3
    assert (contents(sealed), facts(sealed)) == ([], ["green"])


def test_what_grew_behind_its_seal_is_read_on(sealed):
    with segments(sealed)[1].open("ab") as file:
        file.write(b'{"type":"memory_saved","content":"late"}\n')
    assert losses(sealed) == []
    assert contents(sealed) == ["black", "green", "late", "white"]
