"""What becomes of memories that are saved again, and of those that name no id."""

import shutil
import unicodedata
from hashlib import sha256

import pytest

import memlog
from memlog.eventlog.events import (
    MemoryAccessed,
    MemorySaved,
    SalienceDecayed,
    SourceRegistered,
    SourceRemoved,
)
from memlog.projector.lifecycle import Projector


def rows(store, sql):
    """What the read model of a store says, once it has caught up."""
    projector = Projector(store.path)
    projector.catch_up()
    found = projector.connect_to_live().execute(sql).fetchall()
    projector.close()
    return found


def test_a_memory_saved_again_says_something_else_and_keeps_its_beginning_and_its_counts(store):
    long = "The first harvest of green tea. " * 200
    store.append(
        [
            MemorySaved(memory_id="m", title="Old", content=long, ts="2026-02-24T08:00:00Z", importance=0.9),
            MemoryAccessed(memory_ids=["m"], ts="2026-02-24T09:00:00Z"),
        ]
    )
    assert len(rows(store, "SELECT * FROM memory_chunks")) > 1
    store.append(
        [
            MemorySaved(
                memory_id="m",
                title="New",
                content="black tea",
                category="event",
                importance=0.1,
                ts="2026-02-25T08:00:00Z",
            )
        ]
    )
    columns = "title, content, category, importance, created_at, updated_at, access_count, last_accessed"
    assert rows(store, f"SELECT {columns} FROM memories") == [
        ("New", "black tea", "event", 0.1, "2026-02-24T08:00:00.000Z", "2026-02-25T08:00:00.000Z")
        + (1, "2026-02-24T09:00:00.000Z")
    ]
    assert rows(store, "SELECT content FROM memory_chunks") == [("black tea",)]


def test_decays_multiply_in_the_order_of_their_times_to_the_last_bit(store):
    """Not in that of their ids, nor of their arrival: products of floats differ by their order."""
    in_time, elsewise = 0.7 * 0.3 * 0.1, 0.1 * 0.3 * 0.7
    assert in_time != elsewise
    rates = {"a": 0.1, "b": 0.3, "c": 0.7}
    hours = {"c": 9, "b": 10, "a": 11}
    store.append([MemorySaved(memory_id="m", content="tea", ts="2026-02-24T08:00:00Z")])
    for name in ("b", "a", "c"):
        decay = SalienceDecayed(
            id=name, rates={"other": rates[name]}, ts=f"2026-02-24T{hours[name]:02}:00:00Z"
        )
        store.append([decay])
        store.memories.get("m")
    assert rows(store, "SELECT salience FROM memories") == [(in_time,)]


def test_one_text_saved_by_two_processes_is_one_memory(store):
    with memlog.open(store.path) as other:
        store.append([MemorySaved(content="I like  GREEN\ntea ", chat_id="cli:1")])
        other.append([MemorySaved(content="i like green tea", chat_id="cli:1")])
    store.append([MemorySaved(content="I like green tea", chat_id="cli:2")])
    found = {memory_id for (memory_id,) in rows(store, "SELECT memory_id FROM memories")}
    assert found == {sha256(chat + b"\0i like green tea").hexdigest()[:32] for chat in (b"cli:1", b"cli:2")}


def test_the_id_of_a_memory_sees_no_difference_of_form_and_case(store):
    store.append([MemorySaved(content="Kahvi ① on STRASSE"), MemorySaved(content="kahvi 1 on straße")])
    folded = unicodedata.normalize("NFKC", "kahvi 1 on strasse")
    assert rows(store, "SELECT memory_id FROM memories") == [
        (sha256(b"\0" + folded.encode()).hexdigest()[:32],)
    ]


def test_a_source_of_documents_survives_the_loss_of_the_read_model(store):
    store.append(
        [
            SourceRegistered(source_id="notes", root="/srv/notes", include=["*.md"], exclude=["old/*"]),
            SourceRegistered(source_id="gone", root="/srv/gone"),
            SourceRemoved(source_id="gone"),
        ]
    )
    listed = 'SELECT source_id, kind, root, "include", "exclude" FROM sources'
    before = rows(store, listed)
    shutil.rmtree(store.path / "model")
    assert before == rows(store, listed) == [("notes", "docs", "/srv/notes", '["*.md"]', '["old/*"]')]


def test_the_rates_of_a_decay_stand_in_its_event(store):
    with pytest.raises(memlog.BadInput, match="rates"):
        store.append([{"type": "salience_decayed"}])
    store.append([{"type": "salience_decayed", "rates": {"context": 0.9}, "ts": "2026-02-24T08:00:00Z"}])
    assert rows(store, "SELECT rates FROM decays") == [('{"context":0.9}',)]
