"""Scrubbing a whole store: log, seals, read model, cache, and the proof."""

import json
import os
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_file import SealFiles, measure_segment, read_seals
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.log.reader import select_segments
from memlog.projector.lifecycle import Projector
from tests.crash.storms.scrubs import victim_process

STREAM = "conversations/cli_1"
OLD = "2026-02-24.jsonl"
SECRET = "my number is 5551234"


def said(content, **members):
    event = {"type": "message", "channel": "cli", "chat_id": "1", "role": "user", "content": content}
    return event | members


def write_segment(store, *events: dict) -> Path:
    path = store.path / "log" / STREAM / OLD
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in events))
    return path


def generations(store) -> list[str]:
    return [path.name for path in (store.path / "model").glob("*.db")]


def test_a_text_stands_nowhere_when_it_was_scrubbed(store):
    store.append([said(SECRET, id="m1"), said("thank you", id="m2")])
    store.append([memlog.CoreMemoryUpdated(section="user", key="phone", value=SECRET, id="c1")])
    store.maintenance.project()
    store.maintenance.project(from_scratch=True)  # a predecessor stands, too
    # The cache knows the vector of a passage by its sha256.
    assert {each.file.split("/")[0] for each in store.erasure.prove(SECRET).found} == {
        "log",
        "model",
        "cache",
    }
    store.erasure.forget(match="5551234")
    assert store.erasure.prove(SECRET).found
    done = store.erasure.scrub()
    assert (done.lines, done.segments, done.done) == (2, 2, True)
    assert generations(store) == [done.generation]
    assert store.erasure.prove(SECRET).found == store.erasure.prove("5551234").found == []
    assert [each.content for each in store.conversations.window(("cli", "1")).messages] == ["thank you"]
    verified = store.maintenance.verify()
    assert (verified.ok, verified.missing_vectors, verified.is_spotless) == (True, 0, True)
    assert any("backups" in note for note in done.notes)


def test_scrubbing_again_changes_nothing(store):
    store.append([said(SECRET, id="m1")])
    store.erasure.forget("m1")
    store.erasure.scrub()
    before, digest = log_bytes(store), store.maintenance.digest()
    done = store.erasure.scrub()
    assert (done.lines, done.bytes, done.done) == (0, 0, True)
    assert (log_bytes(store), store.maintenance.digest()) == (before, digest)


def log_bytes(store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (store.path / "log").rglob("*") if path.is_file()}


def test_where_nothing_was_forgotten_nothing_is_done(store):
    store.append([said(SECRET, id="m1")])
    store.maintenance.project(embed=False)
    before = generations(store)
    done = store.erasure.scrub()
    assert (done.done, done.notes) == (False, ["nothing was forgotten"])
    assert generations(store) == before


def test_a_dry_run_scrubs_nothing(store):
    store.append([said(SECRET, id="m1")])
    store.erasure.forget("m1")
    done = store.erasure.scrub(dry_run=True)
    assert (done.lines, done.done) == (1, False)
    assert store.erasure.prove(SECRET).found


def test_vectors_of_what_went_leave_the_cache_and_its_free_pages(store):
    store.append([said(f"{SECRET} {number}", id=f"m{number}") for number in range(50)])
    store.append([said("thank you", id="kept")])
    store.maintenance.project()
    # As where a memlog without this forgot: the read model is without it, the cache is not.
    store.append([memlog.Redacted(target_id=f"m{number}", stream=STREAM) for number in range(50)])
    size = (store.path / EMBEDDINGS).stat().st_size
    assert store.erasure.scrub().vectors == 50
    with closing(sqlite3.connect(store.path / EMBEDDINGS)) as db:
        assert db.execute("SELECT count(*) FROM vectors").fetchone() == (1,)
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert (store.path / EMBEDDINGS).stat().st_size < size


def test_a_store_that_follows_sees_no_rewritten_stream(store):
    """The checkpoint's fingerprint follows: another process reads on as if nothing had been."""
    store.append([said(SECRET, id="m1"), said("thank you", id="m2")])
    write_segment(store, said(SECRET, id="old"), said("kept", id="kept"))
    store.erasure.forget(match="5551234")
    notes: list[str] = []
    projector = Projector(store.path)
    projector.catch_up()

    def not_rebuilt(*_, **__):
        raise memlog.DatabaseError("stopped before the new read model")

    store._engine.reads.maintenance.projector.rebuild_generation = not_rebuilt
    with pytest.raises(memlog.DatabaseError):
        store.erasure.scrub()
    assert SECRET.encode() not in b"".join(log_bytes(store).values())
    done = projector.catch_up()
    assert (done.read.notes, done.read.bytes) == (notes, 0)
    projector.close()


def test_history_that_was_rewritten_before_is_still_told(store):
    path = write_segment(store, said(SECRET, id="old"), said("green tea", id="kept"))
    store.append([said("thank you", id="m2")])
    store.erasure.forget("old")
    projector = store._engine.reads.maintenance.projector
    catch_up = projector.catch_up

    def then_changed(**options):
        done = catch_up(**options)
        path.write_bytes(path.read_bytes().replace(b"green tea", b"black tea"))
        return done

    projector.catch_up = then_changed
    rebuild, projector.rebuild_generation = (
        projector.rebuild_generation,
        lambda *_, **__: pytest.fail("stop here"),
    )
    with pytest.raises(pytest.fail.Exception):
        store.erasure.scrub()
    projector.catch_up = catch_up
    projector.rebuild_generation = rebuild
    assert any("rewritten" in note for note in projector.catch_up().read.notes)
    assert "black tea" in [each.content for each in store.conversations.window(("cli", "1")).messages]


def test_a_segment_that_was_not_read_yet_has_no_checkpoint_to_follow(store):
    path = write_segment(store, said(SECRET, id="old"))
    store.append([memlog.Redacted(target_id="old", stream=STREAM)])
    assert store.erasure.scrub().lines == 1
    assert path.read_bytes().isspace()
    assert store.maintenance.verify().ok


def test_seals_are_renewed_also_where_a_run_was_killed_before(store):
    write_segment(store, said(SECRET, id="old"), said("kept", id="kept"))
    store.append([said("thank you", id="m2")])
    log = store.path / "log"
    SealFiles(log).seal_segments(STREAM, [OLD])
    store.erasure.forget("old")
    store.erasure.scrub()
    assert is_as_sealed(log)
    SealFiles(log).blank_seals(STREAM, OLD)  # killed between the bytes and the seal
    assert not is_as_sealed(log)
    store.erasure.scrub()
    assert is_as_sealed(log)
    assert read_seals(log).damaged_lines == []


def is_as_sealed(log: Path) -> bool:
    return read_seals(log).valid_seals[STREAM, OLD].is_of(measure_segment(log, STREAM, OLD))


def test_a_seal_that_spoke_of_other_bytes_is_left_and_told(store):
    path = write_segment(store, said(SECRET, id="old"), said("green tea", id="kept"))
    store.append([said("thank you", id="m2")])
    SealFiles(store.path / "log").seal_segments(STREAM, [OLD])
    path.write_bytes(path.read_bytes().replace(b"green tea", b"black tea"))
    store.erasure.forget("old")
    assert any("did not match its seal, which is kept" in note for note in store.erasure.scrub().notes)
    assert not is_as_sealed(store.path / "log")


def test_a_disk_that_fails_is_named_and_the_next_run_finishes(store, monkeypatch):
    store.append([said(SECRET, id="m1")])
    store.erasure.forget("m1")

    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(disk, "overwrite", fail)
        with pytest.raises(memlog.LogError, match="Input/output error") as failed:
            store.erasure.scrub()
    assert "store.erasure.scrub()" in failed.value.hint
    assert store.erasure.scrub().lines == 1
    assert store.maintenance.verify().ok


def test_what_a_killed_write_of_the_core_memory_left_is_removed(store):
    store.core.set("user", "phone", SECRET)
    store.core.get()
    model = store.path / "model"
    for name in ("core_memory.json.new", ".core_memory.pending.json", ".core_memory.json.new"):
        (model / name).write_text(SECRET)
    store.erasure.forget(match=SECRET)
    store.erasure.scrub()
    assert store.erasure.prove(SECRET).found == []
    assert (model / "core_memory.json").exists()


def test_a_core_memory_that_was_changed_by_hand_stays_and_is_proved_to(store):
    store.core.set("user", "phone", SECRET)
    store.core.get()
    view = store.path / "model" / "core_memory.json"
    view.write_text(view.read_text() + "\n")
    store.erasure.forget(match=SECRET)
    store.erasure.scrub()
    assert [each.file for each in store.erasure.prove(SECRET).found] == [
        "model/.core_memory.json",
        "model/core_memory.json",
    ]


# Kills of real processes


@pytest.mark.parametrize("step", [127, pytest.param(23, marks=pytest.mark.deep)])
def test_a_process_that_is_killed_anywhere_leaves_what_the_next_run_finishes(tmp_path, step):
    """At each `step`th call of the disk, by a process that kills itself there; `make storm` has them all."""
    kills = 0
    with victim_process() as scrub_killed_at:
        for number in count(step, step):
            path = tmp_path / f"store-{number}"
            with memlog.open(path) as store:
                store.append([said(SECRET, id="m1"), said("thank you", id="m2")])
                write_segment(store, said(SECRET, id="old"), said("kept", id="kept"))
                SealFiles(path / "log").seal_segments(STREAM, [OLD])
                store.erasure.forget(match="5551234")
            was_killed = scrub_killed_at(path, number)
            with memlog.open(path) as store:
                assert [each.content for each in store.conversations.window(("cli", "1")).messages] == [
                    "kept",
                    "thank you",
                ]
                assert all(
                    "an erasure was begun" in problem for problem in store.maintenance.verify().problems
                )
                assert store.erasure.scrub().done
                assert store.erasure.prove(SECRET).found == []
                assert is_as_sealed(path / "log")
                assert store.maintenance.verify().is_spotless
                assert len(generations(store)) == 1
            if not was_killed:
                break
            kills += 1
    assert kills >= 3


# The proof


def test_a_text_is_found_in_every_spelling_and_in_names(store):
    folder = store.path / "log" / "memory"
    folder.mkdir(parents=True)
    text = 'Zürich "5/5" 🦊'
    spellings = {
        "plain": text,
        "json": json.dumps(text, ensure_ascii=False),
        "ascii": json.dumps(text),
        "upper": json.dumps(text).replace("\\u00fc", "\\u00FC").replace("\\ud83e\\udd8a", "\\uD83E\\uDD8A"),
        "slash": json.dumps(text, ensure_ascii=False).replace("/", "\\/"),
        "twice": json.dumps(json.dumps(text)),
        "other": "Zurich",
    }
    for name, spelt in spellings.items():
        (folder / name).write_bytes(b"#" * 1000 + spelt.encode())
    found = store.erasure.prove(text).found
    assert [each.file for each in found] == [f"log/memory/{name}" for name in sorted(spellings)[:1]] + [
        f"log/memory/{name}" for name in ("json", "plain", "slash", "twice", "upper")
    ]
    assert store.erasure.prove("zürich").found == []
    store.append([said("hello", chat_id="Zürich")])
    assert [(each.file, each.offset) for each in store.erasure.prove("Zürich").found][:1] == [
        ("log/conversations/cli_%5a%c3%bcrich", None)
    ]


def test_a_text_across_blocks_and_pages_is_found(store, monkeypatch):
    monkeypatch.setattr("memlog.service.upkeep.erasure._BLOCK", 64)
    store.path.mkdir(exist_ok=True)
    (store.path / "long").write_bytes(b"#" * 60 + b"across two blocks" + b"#" * 1000)
    text = "".join(f"{number} tea " for number in range(3000))
    with closing(sqlite3.connect(store.path / "pages.db")) as db:
        db.execute("CREATE TABLE t (said TEXT)")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        db.commit()
    with closing(sqlite3.connect(store.path / "wal.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (said TEXT)")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        db.commit()
        assert [(each.file, each.offset) for each in store.erasure.prove("across two blocks").found] == [
            ("long", 60)
        ]
        assert {each.file for each in store.erasure.prove(text[2000:20_000]).found} == {
            "pages.db",
            "wal.db-wal",
        }


def test_links_and_pipes_are_named_and_not_read(store, tmp_path):
    store.path.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").write_text(SECRET)
    (store.path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(store.path / "pipe")
    proof = store.erasure.prove(SECRET)
    assert (proof.found, proof.left_out) == ([], ["link", "pipe"])


def test_no_text_is_no_question_and_a_store_without_a_log_holds_nothing(store):
    with pytest.raises(memlog.BadInput):
        store.erasure.prove("")
    assert (store.erasure.prove("x").found, select_segments(store.path / "log")) == ([], [])


def test_a_text_is_found_in_each_canonical_form(store):
    forms = {
        "café": ["cafe\u0301"],
        "각 tea": ["\u1100\u1161\u11a8 tea"],
        "ẹ̈": ["e\u0323\u0308", "e\u0308\u0323", "\u00eb\u0323", "\u1eb9\u0308"],
        "20 Å and 3 K": ["20 \u212b and 3 \u212a"],
        "ñandú/1": ["n\u0303and\u00fa/1"],
        "\\" * 40: [],  # which a mix of spellings would match in exponentially many ways
    }
    for asked, stored in forms.items():
        for text in [asked, *stored]:
            for given in [asked, *stored]:
                store.append([memlog.MemorySaved(content=f"- {text} -", id=f"{asked} {text}")])
                assert store.erasure.prove(given).found, (given, text)
        assert not store.erasure.prove(asked + "x").found


def test_what_memlog_reads_behind_a_link_is_searched(store, tmp_path):
    store.append([memlog.MemorySaved(content=SECRET)])
    store.close()
    (store.path / "log").rename(tmp_path / "elsewhere")
    (store.path / "log").symlink_to(tmp_path / "elsewhere")
    proof = store.erasure.prove(SECRET)
    assert [each.file.split("/")[:2] for each in proof.found] == [["log", "memory"]]
    assert proof.left_out == []
