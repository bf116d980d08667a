"""What other processes have begun when a text is forgotten and scrubbed leaves nothing of it either."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import memlog
from memlog.eventlog.integrity import seal_losses
from memlog.eventlog.integrity import verify as log_verify
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.log.writer import Log
from memlog.projector import verify
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.lifecycle import Projector
from memlog.projector.passages import index
from memlog.service.upkeep import erasure

SECRET = "my number is 5551234"
KEPT = "thank you"


class Embedder:
    """Makes vectors of noise; `meanwhile` happens while the first ones are computed."""

    id = "noise/3"
    dimension = 3

    def __init__(self, meanwhile):
        self._meanwhile = meanwhile

    is_remote = False

    def embed(self, texts, kind="passage"):
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
        store.maintenance.project(embed=False)
    return path


def forget(path: Path) -> None:
    with memlog.open(path) as store:
        store.erasure.forget("m1")


def forget_and_scrub(path: Path) -> None:
    with memlog.open(path) as store:
        store.erasure.forget("m1")
        store.erasure.scrub()


def embed(path: Path, meanwhile=lambda: None) -> Projector:
    projector = Projector(path)
    projector.embed_passages(Embedder(meanwhile))
    return projector


def cached_keys(path: Path) -> set[bytes]:
    with closing(sqlite3.connect(path / EMBEDDINGS)) as db:
        return {key for (key,) in db.execute("SELECT text_sha256 FROM vectors")}


def key(text: str) -> bytes:
    return sha256(text.encode()).digest()


@pytest.mark.parametrize("erase", [forget, forget_and_scrub])
def test_a_vector_that_was_being_computed_is_kept_nowhere(path, erase):
    projector = embed(path, lambda: erase(path))
    assert cached_keys(path) == {key(KEPT)}
    assert not any(key(SECRET) in file.read_bytes() for file in path.rglob("*") if file.is_file())
    db = projector.connect_to_live()
    assert list(index.texts_to_embed(db)) == [KEPT]
    assert [db.execute(f"SELECT count(*) FROM {shelf.vectors}").fetchone()[0] for shelf in index.SHELVES] == [
        1,
        0,
    ]
    projector.close()


def happens_once_after(monkeypatch, module, name: str, meanwhile) -> None:
    """Have `meanwhile` happen when the function of that name has returned for the first time."""
    real, left = getattr(module, name), [meanwhile]

    def then_it_happens(*args, **options):
        found = real(*args, **options)
        while left:
            left.pop()()
        return found

    monkeypatch.setattr(module, name, then_it_happens)


def test_verify_raises_no_false_alarm_beside_a_scrub(path, monkeypatch):
    """It has taken its snapshot of the read model, and not replayed yet."""
    happens_once_after(monkeypatch, verify, "hash_fulltext_index", lambda: forget_and_scrub(path))
    with memlog.open(path) as store:
        found = store.maintenance.verify()
    assert (found.problems, found.tampered, found.events) == ([], [], 2)


def test_verify_raises_no_false_alarm_beside_a_scrub_of_a_sealed_segment(path, monkeypatch):
    seal_unsealed_segments(path)
    happens_once_after(monkeypatch, seal_losses, "read_seals", lambda: forget_and_scrub(path))
    with memlog.open(path) as store:
        found = store.maintenance.verify()
    assert (found.problems, found.tampered, found.events) == ([], [], 2)


def test_verify_misses_no_seal_of_a_segment_that_gets_a_successor_meanwhile(path, monkeypatch):
    def roll() -> None:
        seal_unsealed_segments(path)
        Log(path).append([memlog.Message(channel="cli", chat_id="1", role="user", content="later")])

    happens_once_after(monkeypatch, log_verify, "read_seals", roll)
    with memlog.open(path) as store:
        assert store.maintenance.verify().tampered == []


def test_a_cached_vector_of_no_passage_is_counted_until_a_scrub(path):
    embed(path).close()
    with closing(VectorCache(path, "noise/3")) as cache:
        cache.add_vectors([("what a document said before", bytes(12))])
    with memlog.open(path) as store:
        assert store.maintenance.verify().unused_vectors == 1
        store.erasure.forget("m1")
        store.append([memlog.MemorySaved(content="later")])
        store.erasure.scrub()
        assert store.maintenance.verify().unused_vectors == 0


def test_files_that_are_removed_while_prove_looks_are_passed_over(path, monkeypatch):
    gone = path / "model" / "gone.db"
    gone.write_text(SECRET)
    real = erasure._list_paths_below

    def then_removed(folder):
        found = list(real(folder))
        gone.unlink()
        return found

    monkeypatch.setattr(erasure, "_list_paths_below", then_removed)
    with memlog.open(path) as store:
        assert "model/gone.db" not in {each.file for each in store.erasure.prove(SECRET).found}
