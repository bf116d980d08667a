"""What other processes have begun when a text is forgotten and scrubbed leaves nothing of it either."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import memlog
from memlog.projector import passages
from memlog.projector.cache import cache_file
from memlog.projector.projector import Projector

SECRET = "my number is 5551234"
KEPT = "thank you"


class Embedder:
    """Makes vectors of noise; `meanwhile` happens while the first ones are computed."""

    id = "noise/3"
    dimension = 3

    def __init__(self, meanwhile):
        self._meanwhile = meanwhile

    def embed(self, texts):
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()
        return np.ones((len(texts), 3), dtype=np.float32)


@pytest.fixture
def path(tmp_path) -> Path:
    """A store in which a secret waits for its vector."""
    path = tmp_path / "store"
    said = {"type": "message", "channel": "cli", "chat_id": "1", "role": "user"}
    with memlog.open(path) as store:
        store.append([said | {"content": SECRET, "id": "m1"}, said | {"content": KEPT, "id": "m2"}])
        store.project(embed=False)
    return path


def forget(path: Path) -> None:
    with memlog.open(path) as store:
        store.forget("m1")


def forget_and_scrub(path: Path) -> None:
    with memlog.open(path) as store:
        store.forget("m1")
        store.scrub()


def embed(path: Path, meanwhile=lambda: None) -> Projector:
    projector = Projector(path)
    projector.embed(Embedder(meanwhile))
    return projector


def cached_keys(path: Path) -> set[bytes]:
    with closing(sqlite3.connect(cache_file(path))) as db:
        return {key for (key,) in db.execute("SELECT text_sha256 FROM vectors")}


def key(text: str) -> bytes:
    return sha256(text.encode()).digest()


@pytest.mark.parametrize("erase", [forget, forget_and_scrub])
def test_a_vector_that_was_being_computed_is_kept_nowhere(path, erase):
    projector = embed(path, lambda: erase(path))
    assert cached_keys(path) == {key(KEPT)}
    assert not any(key(SECRET) in file.read_bytes() for file in path.rglob("*") if file.is_file())
    db = projector.live()
    assert list(passages.texts(db)) == [KEPT]
    assert [
        db.execute(f"SELECT count(*) FROM {shelf.vectors}").fetchone()[0] for shelf in passages.SHELVES
    ] == [1, 0]
    projector.close()
