"""Checking a whole store: what is wrong with its read model or its cache is found, and nothing is changed."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.log.writer import Log
from memlog.projector.embedding.cache import VectorCache
from memlog.projector.sqlite import connect

LENGTH = 384


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A projected store of two streams, its log sealed, with two vectors in its cache."""
    folder = tmp_path / "store"
    with memlog.open(folder) as opened:
        opened.append([memlog.MemorySaved(content=content) for content in ("green tea", "black tea")])
        opened.append([memlog.FactStored(topic_key="tea", value="green")])
        seal_unsealed_segments(folder)
        opened.maintenance.project(embed=False)
    cache = VectorCache(folder, "model")
    cache.add_vectors([("green", struct.pack("<384f", *range(384))), ("black", bytes(4 * LENGTH))])
    cache.close()
    return folder


def checked(folder: Path) -> memlog.Verification:
    with memlog.open(folder) as opened:
        return opened.maintenance.verify()


def generation(folder: Path) -> Path:
    return folder / "model" / (folder / "model" / "CURRENT").read_text().strip()


def test_a_clean_store_is_clean(store: Path) -> None:
    found = checked(store)
    assert (found.ok, found.is_spotless, found.notes) == (True, True, [])
    assert (found.events, found.seals, found.cached_vectors, found.unused_vectors) == (3, 2, 2, 2)
    assert found.digest == found.replayed


def test_an_empty_store_is_clean(tmp_path: Path) -> None:
    with pytest.raises(memlog.NotFound):
        checked(tmp_path / "store")
    assert not (tmp_path / "store").exists()
    (tmp_path / "store" / "log").mkdir(parents=True)
    found = checked(tmp_path / "store")
    assert (found.ok, found.digest, found.events) == (True, None, 0)
    assert found.notes == ["there is no read model: store.maintenance.project()"]
    assert not (tmp_path / "store" / "model").exists()


def test_a_store_without_a_read_model_has_its_log_checked(store: Path) -> None:
    (store / "model" / "CURRENT").unlink()
    found = checked(store)
    assert (found.ok, found.digest, found.events) == (True, None, 3)


def test_a_read_model_of_other_chunks_is_not_compared(store: Path) -> None:
    with memlog.open(store, chunk_sizes=memlog.ChunkSizes(100, 20)) as opened:
        found = opened.maintenance.verify()
    assert (found.ok, found.digest) == (True, None)
    assert "other chunk sizes" in found.notes[0]


def test_what_came_later_is_checked_and_not_compared(store: Path) -> None:
    Log(store).append([memlog.MemorySaved(content="later")])
    found = checked(store)
    assert (found.ok, found.events) == (True, 3)
    path = max((store / "log" / "memory").iterdir(), key=lambda path: len(path.name))
    path.write_bytes(path.read_bytes().replace(b"later", b"never"))
    assert checked(store).problems == [
        "1 line is not as memlog wrote it: store.maintenance.quarantine() lists where"
    ]


def test_a_log_that_was_rewritten_after_the_last_read_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "log" / "conversations" / "x_1" / "2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(foreign("green") + foreign("x" * 8000))
    with memlog.open(tmp_path) as opened:
        opened.maintenance.project(embed=False)
    (tmp_path / "watermarks.jsonl").unlink()
    path.write_bytes(foreign("brown") + foreign("x" * 8000))
    found = checked(tmp_path)
    assert (found.ok, found.digest, found.replayed, found.events) == (True, None, None, 2)
    (note,) = found.notes
    assert "conversations/x_1" in note
    with memlog.open(tmp_path) as opened:
        assert opened.conversations.window(("x", "1")).messages[0].content == "brown"
    assert (checked(tmp_path).ok, checked(tmp_path).notes) == (True, [])
    path.unlink()
    assert (checked(tmp_path).problems, len(checked(tmp_path).notes)) == ([], 1)


def test_a_rewritten_log_that_no_read_notices_is_told_as_a_wrong_read_model(tmp_path: Path) -> None:
    """Where a segment has grown, reads look at the last 4 KiB of what they have read alone."""
    path = tmp_path / "log" / "conversations" / "x_1" / "2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(foreign("green") + foreign("x" * 8000))
    with memlog.open(tmp_path) as opened:
        opened.maintenance.project(embed=False)
    inode = path.stat().st_ino
    path.write_bytes(foreign("brown") + foreign("x" * 8000) + foreign("black"))
    assert path.stat().st_ino == inode
    assert any("differs from a replay" in problem for problem in checked(tmp_path).problems)


def foreign(content: str) -> bytes:
    return json.dumps({"role": "user", "content": content}).encode() + b"\n"


def zero_bytes(folder: Path) -> None:
    generation(folder).write_bytes(b"")


def another_file(folder: Path) -> None:
    generation(folder).write_bytes(b"no database" * 1000)


def cut_in_half(folder: Path) -> None:
    path = generation(folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed_in_the_middle(folder: Path) -> None:
    path = generation(folder)
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 40] = bytes(4096 * 38)
    path.write_bytes(data)


def no_generation(folder: Path) -> None:
    generation(folder).unlink()


def current_names_nothing(folder: Path) -> None:
    (folder / "model" / "CURRENT").write_text("nothing.db\n")


def sql(text: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        db = connect(generation(folder), "write")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(text)
        db.close()

    plant.__name__ = text[:30]
    return plant


def in_cache(text: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        db = connect(folder / EMBEDDINGS, "write")
        db.execute(text)
        db.close()

    plant.__name__ = f"cache: {text[:30]}"
    return plant


def cache_of_other_bytes(folder: Path) -> None:
    for path in (folder / "cache").iterdir():
        path.write_bytes(b"no database" * 1000)


DAMAGE = [
    (zero_bytes, "the read model could not be read"),
    (another_file, "the read model could not be read"),
    (cut_in_half, "read model"),
    (zeroed_in_the_middle, "read model"),
    (no_generation, "model/CURRENT points to a read model that does not exist"),
    (current_names_nothing, "model/CURRENT points to a read model that does not exist"),
    (sql("DELETE FROM events"), "the read model has 0 events, the log 3"),
    (
        sql("INSERT INTO duplicates VALUES ('memory', 'x', '2026-02-24.jsonl', 5)"),
        "1 duplicates, the log 0",
    ),
    (sql("UPDATE facts SET value = 'black'"), "differs from a replay"),
    (sql("INSERT INTO messages_fts (rowid, content) VALUES (1, 'planted')"), "full text differs"),
    (sql("DELETE FROM meta"), "chunk sizes"),
    (cache_of_other_bytes, "the cache could not be read"),
    (in_cache("UPDATE vectors SET vector = zeroblob(8) WHERE rowid = 1"), "differ in length"),
    (in_cache("UPDATE vectors SET vector = zeroblob(7)"), "not a row of numbers"),
    (in_cache("UPDATE vectors SET vector = x'0000c07f'"), "not finite"),
]


def test_damage_of_what_is_disposable_is_found_and_left(store: Path, tmp_path: Path) -> None:
    for number, (plant, says) in enumerate(DAMAGE):
        damaged = shutil.copytree(store, tmp_path / str(number))
        plant(damaged)
        kept = generation(damaged).read_bytes() if generation(damaged).exists() else None
        found = checked(damaged)
        assert any(says in text for text in found.problems + found.notes), plant.__name__
        assert found.tampered == [], plant.__name__
        assert found.ok is (plant.__name__ == "DELETE FROM meta"), plant.__name__
        assert kept is None or generation(damaged).read_bytes() == kept, plant.__name__


def test_an_erasure_that_was_not_finished_is_told_and_no_damage(store: Path) -> None:
    (path,) = (store / "log" / "facts").iterdir()
    SealFiles(store / "log").blank_seals("facts", path.name)
    found = checked(store)
    assert found.notes == [f"facts/{path.name}: an erasure was not finished: run store.erasure.scrub()"]
    assert found.ok


def test_a_log_that_cannot_be_read_is_an_error(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, length: int, offset: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("memlog.eventlog.files.disk.read", fail)
    with pytest.raises(memlog.LogError, match="Input/output error"):
        checked(store)


def test_a_log_that_is_too_long_for_memory_is_not_compared(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlog.service.upkeep.maintenance._IN_MEMORY", -1)
    monkeypatch.setattr("memlog.service.engine.read_model.ReadModel.is_read_only", True)
    found = checked(store)
    assert (found.ok, found.digest, found.events) == (True, None, 3)
    assert any("verify a copy" in note for note in found.notes)
