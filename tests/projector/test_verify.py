"""`verify` finds what is planted, and passes what is clean."""

from shutil import copytree

import pytest

from memlog.projector.lifecycle import Projector
from memlog.projector.sqlite import connect
from memlog.projector.verify import verify_read_model
from tests.projector.test_any_batches import LETTERS

DAMAGE = {
    "a message changed": "UPDATE messages SET content = 'other' WHERE id = 'w-004'",
    "a message gone": (
        "DELETE FROM messages WHERE rowid = (SELECT min(rowid) FROM messages WHERE type = 'session_break')"
    ),
    "an event gone": "DELETE FROM events WHERE id = 'w-004'",
    "a memory's importance changed": "UPDATE memories SET importance = 0.123",
    "a core value changed": "UPDATE core_values SET value = 'Elsewhere' WHERE key = 'location'",
    "a chunk moved": "UPDATE memory_chunks SET start_char = 1 WHERE chunk_no = 1",
    "a word added to the full text": "INSERT INTO messages_fts (rowid, content) VALUES (1, 'planted')",
    "a wrong delete in the full text": (
        "INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', 2, 'never there')"
    ),
    "a row that nobody wrote": (
        "INSERT INTO quarantine VALUES ('memory', '2026-02-24.jsonl', 0, 1, 1, 'torn', NULL)"
    ),
    "a passage that waits for no vector": "DELETE FROM memory_chunks_queue WHERE chunk_no = 3",
    "a vector gone": "DELETE FROM vec_memory WHERE rowid = 3",
}


@pytest.fixture
def projected(fixture_store):
    projector = Projector(fixture_store("week"))
    projector.catch_up()
    yield projector
    projector.close()


def checked(projector):
    return verify_read_model(projector.connect_to_live(), projector.log, projector.sizes)


def test_a_clean_store_is_clean(projected):
    found = checked(projected)
    assert (found.ok, found.is_spotless, found.problems) == (True, True, [])
    assert found.digest == found.replayed


def test_planted_damage_is_found(projected, tmp_path):
    projected.embed_passages(LETTERS, limit=64)
    assert checked(projected).ok
    projected.close()
    for planted, sql in DAMAGE.items():
        copy = Projector(copytree(projected.store, tmp_path / planted))
        damage = connect(copy.generations.find_live_file(), "write")
        damage.execute("PRAGMA foreign_keys = OFF")
        if planted == "a passage that waits for no vector":
            damage.execute("DELETE FROM vec_memory WHERE rowid = 3")
        damage.execute(sql)
        damage.close()
        assert not checked(copy).ok, planted
        copy.close()


@pytest.mark.parametrize(
    ("name", "damaged", "counted"),
    [
        ("bad-lines", 2, {"bad_crc": 1, "missing_crc": 1}),
        ("torn-tail", 0, {"torn": 2}),
        ("duplicates", 0, {}),
        ("foreign", 0, {"invalid": 1}),
    ],
)
def test_lines_that_changed_since_memlog_wrote_them_are_damage_and_odd_ones_are_counted(
    fixture_store, name, damaged, counted
):
    projector = Projector(fixture_store(name))
    projector.catch_up()
    found = checked(projector)
    assert found.damaged == damaged
    assert found.quarantined.items() >= counted.items()
    assert not found.is_spotless


def test_a_log_that_grows_meanwhile_is_compared_as_far_as_it_was_read(projected):
    with (projected.log / "core" / "2026-02-26.jsonl").open("ab") as file:
        file.write(b'{"type":"core_memory_updated","section":"user","key":"new","value":"unread"}\n')
    assert checked(projected).ok


def test_a_full_text_whose_last_word_has_gone_is_well(tmp_path):
    """An earlier segment comes late, and with it another event of the only message's id."""
    chat = tmp_path / "log" / "conversations" / "cli_1"
    chat.mkdir(parents=True)
    (chat / "2026-02-25.jsonl").write_bytes(b'{"id":"m1","role":"user","content":"tea"}\n')
    projector = Projector(tmp_path)
    projector.catch_up()
    (chat / "2026-02-24.jsonl").write_bytes(b'{"id":"m1","type":"session_break"}\n')
    projector.catch_up()
    assert projector.connect_to_live().execute("SELECT type FROM messages").fetchall() == [("session_break",)]
    assert checked(projector).problems == []
    projector.close()
