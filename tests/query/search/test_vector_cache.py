"""Vectors that a process holds in memory never change an answer, whatever becomes of those in the file."""

import numpy as np
import pytest

from memlog.projector.passages import vectors
from memlog.projector.passages.index import PassageTables
from memlog.projector.sqlite import connect
from memlog.query.search import vector_cache
from memlog.query.search.hits import SCORE_DIGITS
from memlog.query.search.nearest import _find_nearest_chunks
from memlog.query.search.vector_cache import HeldVectors

SHELF = PassageTables(
    chunks="c", fulltext="none", has_fulltext="0", embeds_label=False, vectors="v", queue="c_queue"
)
LIMIT = 30
ASKED_OFTEN = 20


class Passages:
    """Passages with random vectors, many of them alike."""

    def __init__(self, path, seed: int = 7) -> None:
        path.touch()
        self.db = connect(path, "write")
        self.db.execute("PRAGMA synchronous = OFF")
        self.random = np.random.default_rng(seed)
        self.db.executescript(
            "CREATE TABLE c (chunk_no INTEGER PRIMARY KEY);"
            "CREATE TABLE c_queue (chunk_no INTEGER PRIMARY KEY);"
            "CREATE TABLE meta (name PRIMARY KEY, value);"
        )
        self.make_table("one")
        self.count = 0

    def make_table(self, model: str) -> None:
        self.db.execute("DROP TABLE IF EXISTS v")
        self.db.execute("CREATE VIRTUAL TABLE v USING vec0 (embedding float[16] distance_metric = cosine)")
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('vector_model', ?)", (model,))

    def add(self, count: int, *, waiting: bool = False) -> None:
        self.db.execute("BEGIN")
        for _ in range(count):
            self.count += 1
            self.db.execute("INSERT INTO c VALUES (?)", (self.count,))
            if waiting:
                self.db.execute("INSERT INTO c_queue VALUES (?)", (self.count,))
            else:
                self.embed(self.count)
        self.db.execute("COMMIT")

    def embed(self, number: int) -> None:
        self.db.execute("DELETE FROM c_queue WHERE chunk_no = ?", (number,))
        self.db.execute("INSERT INTO v (rowid, embedding) VALUES (?, ?)", (number, self.vector()))

    def remove(self, numbers) -> None:
        for number in numbers:
            for table in ("c", "c_queue"):
                self.db.execute(f"DELETE FROM {table} WHERE chunk_no = ?", (number,))
            self.db.execute("DELETE FROM v WHERE rowid = ?", (number,))

    def vector(self) -> bytes:
        # Whole numbers: many have the same direction, and many are equally far.
        return (self.random.integers(-1, 2, 16) + 0.5).astype(np.float32).tobytes()

    def nearest(self, held, vector) -> list[float]:
        found = _find_nearest_chunks(self.db, SHELF, vector, None, LIMIT, held)
        return [round(similarity, SCORE_DIGITS) for similarity in found.values()]

    def check(self, held) -> None:
        """What is found with `held` is as near as what is found without."""
        for _ in range(5):
            vector = self.vector()
            assert self.nearest(held, vector) == self.nearest(HeldVectors(), vector)


@pytest.fixture
def passages(tmp_path):
    made = Passages(tmp_path / "a.db")
    made.add(2000)
    yield made
    made.db.close()


@pytest.fixture
def held(passages):
    """Vectors that are held."""
    asked = HeldVectors()
    for _ in range(ASKED_OFTEN):
        passages.nearest(asked, passages.vector())
    assert is_used(asked, passages)
    return asked


def is_used(held, passages) -> bool:
    return held.find_nearest_passages(passages.db, SHELF, passages.vector(), LIMIT) is not None


def test_they_are_held_by_who_asks_often(passages):
    asked = HeldVectors()
    for _ in range(ASKED_OFTEN - 1):
        assert not is_used(asked, passages)
    assert is_used(asked, passages)


def test_they_change_no_answer(passages, held):
    passages.check(held)


def test_what_was_added_is_found(passages, held):
    passages.add(100)
    passages.check(held)
    assert is_used(held, passages)


def test_what_waited_for_its_vector_is_found_when_it_has_one(passages):
    passages.add(50, waiting=True)
    asked = HeldVectors()
    for _ in range(ASKED_OFTEN):
        passages.nearest(asked, passages.vector())
    for number in range(2001, 2051):
        passages.embed(number)
    passages.check(asked)
    assert is_used(asked, passages)


def test_what_was_removed_leaves_nothing_out(passages, held):
    vector = passages.vector()
    near = _find_nearest_chunks(passages.db, SHELF, vector, None, LIMIT, held)
    passages.remove([*near])
    assert passages.nearest(held, vector) == passages.nearest(HeldVectors(), vector)
    passages.check(held)


def test_what_was_added_does_not_stand_in_for_what_was_removed(passages, held):
    for _ in range(3):
        vector = passages.vector()
        passages.add(60)
        passages.remove(_find_nearest_chunks(passages.db, SHELF, vector, None, 40, HeldVectors()))
        assert passages.nearest(held, vector) == passages.nearest(HeldVectors(), vector)


def test_where_much_was_added_all_are_read_anew(passages, held):
    passages.add(400)
    assert not is_used(held, passages)
    passages.check(held)
    for _ in range(ASKED_OFTEN):
        passages.nearest(held, passages.vector())
    passages.check(held)
    assert is_used(held, passages)


def test_vectors_of_another_model_are_not_compared_by_those_of_the_first(passages, held):
    passages.make_table("two")
    for number in range(1, passages.count + 1):
        passages.embed(number)
    assert not is_used(held, passages)
    passages.check(held)
    assert vectors.read_model_of_vectors(passages.db) == "two"


def test_another_generation_is_not_asked_by_what_is_held_of_the_first(passages, held, tmp_path):
    other = Passages(tmp_path / "b.db", seed=8)
    other.add(2000)
    other.check(held)
    other.db.close()


def test_where_all_are_alike_all_are_compared(tmp_path):
    alike = Passages(tmp_path / "alike.db")
    same = alike.vector()
    alike.vector = lambda: same
    alike.add(1000)
    asked = HeldVectors()
    for _ in range(ASKED_OFTEN):
        alike.nearest(asked, same)
    alike.check(asked)
    alike.db.close()


def test_more_than_the_limit_is_not_held(passages, monkeypatch):
    monkeypatch.setattr(vector_cache, "_MOST_BYTES", 2000 * 16 * 4 - 1)
    asked = HeldVectors()
    for _ in range(2 * ASKED_OFTEN):
        assert not is_used(asked, passages)


def test_any_changes_change_no_answer(passages, held):
    chosen = np.random.default_rng(1)
    for _ in range(60):
        match int(chosen.integers(4)):
            case 0:
                passages.add(int(chosen.integers(1, 60)))
            case 1:
                passages.add(3, waiting=True)
            case 2:
                passages.remove(chosen.integers(1, passages.count, 20).tolist())
            case _:
                waiting = passages.db.execute("SELECT chunk_no FROM c_queue LIMIT 5").fetchall()
                for (number,) in waiting:
                    passages.embed(number)
        passages.check(held)
