"""Generations: rebuilt beside the live one, swapped in whole, never in the way of a reader."""

import os
import shutil
import stat
import threading

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.projector.lifecycle import Projector
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.verify import hash_dump


@pytest.fixture
def week(fixture_store):
    return fixture_store("week")


def databases(store):
    return sorted(path.name for path in (store / "model").glob("*.db"))


def test_current_names_the_live_generation_and_one_predecessor_is_kept(week):
    projector = Projector(week)
    projector.catch_up()
    seen = databases(week)
    for _ in range(3):
        projector.rebuild_generation("a test")
        current = (week / "model" / "CURRENT").read_text().strip()
        assert current not in seen, "a name is never used twice"
        assert current in databases(week)
        assert len(databases(week)) == 2
        seen += databases(week)


def test_a_reader_goes_on_with_its_generation_while_others_are_built(week):
    reader, builder = Projector(week), Projector(week)
    reader.catch_up()
    before = reader.connect_to_live()
    cursor = before.execute("SELECT id FROM messages")
    cursor.fetchone()
    for _ in range(3):
        builder.rebuild_generation("a test")
    assert len(cursor.fetchall()) == 57
    assert reader.connect_to_live() is not before
    assert hash_dump(reader.connect_to_live()) == hash_dump(builder.connect_to_live())


def test_what_a_killed_build_left_is_removed_by_the_next(week):
    projector = Projector(week)
    projector.catch_up()
    for name in ("20200101T000000-00000000.db", "20200101T000000-00000000.db-journal"):
        (week / "model" / name).write_bytes(b"half")
    projector.rebuild_generation("a test")
    assert not list((week / "model").glob("20200101*"))


def test_another_projection_id_makes_another_generation(week):
    Projector(week).catch_up()
    other = Projector(week, ChunkSizes(window=100, overlap=20))
    done = other.catch_up()
    assert done.rebuilt == "the read model was built with other chunk sizes or by another memlog"
    assert done.read.events == 68
    assert Projector(week, ChunkSizes(window=100, overlap=20)).catch_up().rebuilt is None


def test_a_read_model_that_cannot_be_read_is_made_anew_and_the_log_is_not_touched(week):
    for damage in [b"", b"no database at all" * 100, None]:
        projector = Projector(week)
        projector.catch_up()
        whole = hash_dump(projector.connect_to_live())
        projector.close()
        current = projector.generations.find_live_file()
        if damage is None:
            current.unlink()
        else:
            current.write_bytes(damage)
        with_repair = Projector(week)
        done = with_repair.catch_up()
        assert done.rebuilt, damage
        assert hash_dump(with_repair.connect_to_live()) == whole, damage


def test_a_current_that_names_no_generation_is_no_generation(week):
    for current in [b"../../etc/passwd\n", b"nothing.db\n", b"", b"\xff\xfe"]:
        Projector(week).catch_up()
        (week / "model" / "CURRENT").write_bytes(current)
        assert Projector(week).catch_up().rebuilt == "model/CURRENT pointed to no valid read model", current


def test_a_current_that_is_a_link_is_not_followed_and_replaced(week, tmp_path):
    """Also where the link leads to what would name a generation."""
    Projector(week).catch_up()
    current, elsewhere = week / "model" / "CURRENT", tmp_path / "elsewhere"
    current.rename(elsewhere)
    current.symlink_to(elsewhere)
    named, log = elsewhere.read_bytes(), log_bytes(week)
    with memlog.open(week) as store:
        assert store.maintenance.verify().problems == [
            "model/CURRENT points to a read model that does not exist: store.maintenance.project()"
        ]
    done = Projector(week).catch_up()
    assert (done.rebuilt, done.read.events) == ("model/CURRENT pointed to no valid read model", 68)
    assert current.is_file()
    assert not current.is_symlink()
    assert (elsewhere.read_bytes(), log_bytes(week)) == (named, log)
    assert Projector(week).catch_up().rebuilt is None


def log_bytes(store):
    return {path: path.read_bytes() for path in (store / "log").rglob("*.jsonl")}


def test_deleting_model_and_cache_loses_nothing(week):
    seal_unsealed_segments(week)
    with memlog.open(week) as store:
        store.maintenance.project(embed=False)
        before = store.maintenance.verify()
    shutil.rmtree(week / "model")
    shutil.rmtree(week / "cache", ignore_errors=True)
    with memlog.open(week) as store:
        store.maintenance.project(embed=False)
        after = store.maintenance.verify()
    assert after.ok
    assert after.digest == before.digest


def test_files_are_for_their_owner_alone_under_any_umask(tmp_path):
    old = os.umask(0)
    try:
        with memlog.open(tmp_path / "store") as store:
            store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="private")])
            store.search("private", mode="text")
            open_files = [path for path in store.path.rglob("*") if path.is_file()]
            assert any(path.name.endswith("-wal") for path in open_files)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in open_files}
            folders = [path for path in [store.path, *store.path.rglob("*")] if path.is_dir()]
    finally:
        os.umask(old)
    assert set(modes.values()) == {0o600}, modes
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_readers_during_rebuilds_and_swaps_see_all_or_wait_for_nothing(week):
    """4 readers beside 3 rebuilds: no error, and never another count."""
    Projector(week).catch_up()
    failures, counts, stop = [], set(), threading.Event()

    def read():
        with memlog.open(week) as store:
            while not stop.is_set():
                try:
                    counts.add(len(store.search("Robin tea сауна mökki", mode="text", k=100).hits))
                except Exception as error:
                    failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    builder = Projector(week)
    for _ in range(3):
        builder.rebuild_generation("a test")
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(counts) == 1
