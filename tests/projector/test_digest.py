"""The digest: of the whole read model, and of what its events say alone."""

import json

import pytest

import memlog
from memlog.projector import schema
from memlog.projector.verify import _ABOUT_BYTES, _LEFT_OUT, _WHERE_AND_WHEN_APPENDED, dump_tables

SAID = [
    memlog.Message(id="m1", ts="2026-02-24T10:15:00Z", channel="x", chat_id="1", role="user", content="tea"),
    memlog.Message(id="m2", ts="2026-02-24T10:15:00Z", channel="x", chat_id="1", role="user", content="no"),
    memlog.SessionBreak(id="b1", ts="2026-02-24T10:16:00Z", channel="x", chat_id="1", model="haiku"),
    memlog.MemorySaved(id="y1", ts="2026-02-24T10:17:00Z", memory_id="tea", content="likes tea"),
    memlog.MemorySaved(id="y2", ts="2026-02-24T10:17:30Z", memory_id="no", content="dislikes coffee"),
    memlog.MemoryUpdated(id="y3", ts="2026-02-24T10:17:40Z", memory_id="tea", salience=0.5),
    memlog.SummaryWritten(
        id="s1", ts="2026-02-24T10:17:50Z", channel="x", chat_id="1", content="tea was spoken of"
    ),
    memlog.CoreMemoryUpdated(id="c1", ts="2026-02-24T10:18:00Z", section="user", key="name", value="Ann"),
]


@pytest.fixture
def opened(tmp_path):
    """A store by name, with these events appended one by one."""

    def make(name, *events):
        store = memlog.open(tmp_path / name)
        for event in events:
            store.append([event])
        return store

    return make


def test_stores_that_say_the_same_have_one_content_digest(opened):
    one, other = opened("one", *SAID), opened("other", *reversed(SAID))
    assert one.maintenance.digest(content=True) == other.maintenance.digest(content=True)
    assert one.maintenance.digest() != other.maintenance.digest()


def test_a_word_more_is_another_content(opened):
    one = opened("one", *SAID)
    before = one.maintenance.digest(content=True)
    one.append([memlog.CoreMemoryUpdated(section="user", key="name", value="Bob")])
    assert one.maintenance.digest(content=True) != before


def test_a_copy_of_the_log_has_the_same_digest(opened, fixture_store):
    week = fixture_store("week")
    first = memlog.open(week).maintenance.digest()
    fixture_log = week / "log"
    copy = opened("copy")
    copy.path.mkdir()
    fixture_log.rename(copy.path / "log")
    assert copy.maintenance.digest() == first


def test_segments_split_elsewhere_say_the_same(fixture_store):
    week = fixture_store("week")
    store = memlog.open(week)
    before, content = store.maintenance.digest(), store.maintenance.digest(content=True)
    for segment in list((week / "log").rglob("2026-02-24.jsonl")):
        first, *rest = segment.read_bytes().splitlines(keepends=True)
        segment.write_bytes(first)
        (segment.parent / "2026-02-24.0001.jsonl").write_bytes(b"".join(rest))
    assert store.maintenance.digest() != before
    assert store.maintenance.digest(content=True) == content


def test_the_content_of_every_table_names_no_position(opened):
    store = opened("one", *SAID)
    store.maintenance.digest()
    lines = list(dump_tables(store._engine.read_model.projector.connect_to_live(), content=True))
    assert [line for line in lines if line.startswith("#")] == [
        f"# {table}" for table in schema.list_tables() if table not in (*_LEFT_OUT, *_ABOUT_BYTES)
    ]
    rows = [json.loads(line) for line in lines if not line.startswith("#")]
    assert len(rows) > len(SAID)
    assert all(_WHERE_AND_WHEN_APPENDED.isdisjoint(row) for row in rows)
