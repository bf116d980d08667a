"""Memories as a Python program uses them: `store.memories`."""

import json
import sqlite3

import pytest
from msgspec.structs import replace

import memlog
from memlog.eventlog.codec.content_ids import derive_memory_id
from tests.support.refusals import refused


def day(number):
    return f"2026-02-{number:02}T08:00:00.000Z"


def ids(found):
    return [memory.memory_id for memory in found]


def types(events):
    return [event.type for event in events]


# Saving


def test_a_saved_memory_has_all_that_was_given(memories):
    saved = memories.save(
        "Anna drinks green tea",
        title="Tea",
        category="identity",
        kind="preference",
        importance=0.7,
        source="conversation",
        topic="drinks",
        chat="telegram:7",
        tags=["tea", "food"],
        memory_id="tea",
        event_id="e1",
        ts=day(1),
    )
    assert (saved.memory_id, saved.event_id, saved.decision) == ("tea", "e1", "saved")
    found = memories.get("tea")
    assert found == memlog.Memory(
        memory_id="tea",
        title="Tea",
        content="Anna drinks green tea",
        category="identity",
        kind="preference",
        importance=0.7,
        salience=1.0,
        age_days=found.age_days,
        freshness=found.freshness,
        relevance=found.relevance,
        access_count=0,
        last_accessed=None,
        source="conversation",
        topic="drinks",
        chat="telegram:7",
        tags=["tea", "food"],
        created_at=day(1),
        updated_at=day(1),
        archived_at=None,
        event_id="e1",
        position=found.position,
    )
    position = saved.position
    assert (position.id, position.durability) == ("e1", "fsync")
    assert (found.position.stream, found.position.segment, found.position.offset, found.position.line) == (
        position.stream,
        position.segment,
        position.offset,
        1,
    )


def test_a_memory_that_says_nothing_else_has_the_defaults(memories):
    content = "tea " * 100
    found = memories.get(memories.save(content).memory_id)
    assert (found.title, found.category, found.kind, found.source) == (
        content[:80],
        "other",
        "fact",
        "manual",
    )
    assert (found.importance, found.salience, found.tags) == (0.5, 1.0, [])
    assert (found.topic, found.chat) == (None, None)


@pytest.mark.parametrize("chat", [None, "telegram:7"])
def test_the_id_of_a_save_is_the_one_that_the_projector_gives(store, chat):
    """Whoever appends the event without an id means the same memory."""
    store.append([memlog.MemorySaved(content="Anna drinks  GREEN tea", chat_id=chat)])
    saved = store.memories.save("anna drinks green tea ", chat=chat, dedup=False)
    assert saved.memory_id == derive_memory_id(chat, "Anna drinks green tea")
    assert [(memory.memory_id, memory.content) for memory in store.memories.list()] == [
        (saved.memory_id, "anna drinks green tea ")
    ]


def test_the_derived_id_stands_in_the_log(store):
    saved = store.memories.save("tea")
    assert json.loads(store.get(saved.event_id).raw)["memory_id"] == saved.memory_id


def test_saving_without_a_look_for_duplicates_reads_nothing(store):
    store.memories.save("tea", dedup=False)
    store.memories.save("tea", memory_id="m")
    assert not (store.path / "model").exists()


def test_what_cannot_be_a_memory_is_refused(store):
    for content, more in (
        ("", {}),
        ("tea", {"importance": 1.5}),
        ("tea", {"kind": "opinion"}),
        ("tea", {"memory_id": ""}),
        ("tea", {"category": ""}),
        ("half a pair \ud800", {}),
    ):
        with refused((content, more)):
            store.memories.save(content, **more)
        assert not (store.path / "log").exists(), (content, more)


# Saving anew (docs: a later save supersedes)


def test_a_second_save_replaces_what_a_memory_says_and_keeps_its_beginning_and_its_counts(memories):
    memories.save("green tea", memory_id="m", title="Tea", importance=0.9, tags=["a"], ts=day(1))
    memories.touch("m")
    touched = memories.get("m").last_accessed
    memories.save("coffee", memory_id="m", category="identity", ts=day(2))
    found = memories.get("m")
    assert (found.content, found.title, found.category, found.importance) == (
        "coffee",
        "coffee",
        "identity",
        0.5,
    )
    assert found.tags == []
    assert (found.created_at, found.updated_at) == (day(1), day(2))
    assert (found.access_count, found.last_accessed) == (1, touched)
    assert touched is not None


def test_a_save_that_comes_late_changes_nothing(memories):
    memories.save("coffee", memory_id="m", ts=day(2))
    memories.save("green tea", memory_id="m", ts=day(1))
    found = memories.get("m")
    assert (found.content, found.created_at, found.updated_at) == ("coffee", day(1), day(2))


def test_a_save_revives_an_archived_memory_with_its_beginning_and_its_counts(store):
    store.memories.save("green tea", memory_id="m", ts=day(1))
    store.memories.touch("m")
    store.memories.archive("m")
    store.memories.save("green tea again", memory_id="m")
    found = store.memories.get("m")
    assert (found.archived_at, found.created_at, found.access_count) == (None, day(1), 1)
    assert [hit.id for hit in store.search("tea", mode="text").hits] == ["m"]


def test_a_save_after_a_deletion_is_a_new_beginning(store):
    store.memories.save("green tea", memory_id="m", ts=day(1))
    store.memories.touch("m")
    store.memories.delete("m")
    store.memories.save("green tea", memory_id="m", ts="2030-01-01T00:00:00.000Z")
    found = store.memories.get("m")
    assert (found.created_at, found.access_count, found.last_accessed) == (
        "2030-01-01T00:00:00.000Z",
        0,
        None,
    )
    assert [hit.id for hit in store.search("tea", mode="text").hits] == ["m"]


def test_a_second_save_leaves_what_time_has_left_and_a_new_beginning_does_not(store):
    store.memories.save("green tea", memory_id="m")
    store.append([{"type": "salience_decayed", "rates": {"other": 0.5}}])
    store.memories.save("black tea", memory_id="m")
    assert store.memories.get("m").salience == 0.5
    store.memories.delete("m")
    store.memories.save("green tea", memory_id="m")
    assert store.memories.get("m").salience == 1.0


def test_what_an_older_event_said_stands_again_where_the_newer_one_is_redacted(store):
    store.memories.save("green tea", memory_id="m")
    store.memories.update("m", content="black tea", event_id="u")
    store.append([{"type": "redacted", "target_id": "u", "stream": "memory"}])
    assert store.memories.get("m").content == "green tea"
    assert "u" not in [event.id for event in store.memories.history("m")]


# Changing


def test_an_update_changes_what_is_given_and_nothing_else(memories):
    memories.save("green tea", memory_id="m", title="Tea", topic="drinks", tags=["a"], ts=day(1))
    position = memories.update("m", content="black tea", importance=0.9, event_id="u1", ts=day(2))
    found = memories.get("m")
    assert (found.content, found.importance, found.title, found.topic, found.tags) == (
        "black tea",
        0.9,
        "Tea",
        "drinks",
        ["a"],
    )
    assert (found.created_at, found.updated_at, found.event_id) == (day(1), day(2), "u1")
    assert (position.id, found.position.offset) == ("u1", position.offset)


def test_an_empty_value_takes_away_what_was_there(memories):
    memories.save("green tea", memory_id="m", title="Tea", topic="drinks", chat="x:1", tags=["a"])
    memories.update("m", title="", topic="", chat="", tags=[])
    found = memories.get("m")
    assert (found.title, found.topic, found.chat, found.tags) == ("green tea", None, None, [])


def test_an_update_sets_every_field(memories):
    memories.save("green tea", memory_id="m")
    changes = {
        "content": "coffee",
        "title": "Coffee",
        "category": "identity",
        "kind": "insight",
        "importance": 0.25,
        "salience": 0.125,
        "source": "migration",
        "topic": "drinks",
        "chat": "x:1",
        "tags": ["a", "b"],
    }
    memories.update("m", **changes)
    found = memories.get("m")
    assert {name: getattr(found, name) for name in changes} == changes


def test_an_update_of_nothing_is_refused(memories):
    memories.save("tea", memory_id="m")
    with pytest.raises(memlog.BadInput, match="no fields to change were given"):
        memories.update("m", ts=day(1))
    assert len(memories.history("m")) == 1


def test_an_archived_memory_is_kept_and_not_searched(store):
    store.memories.save("green tea", memory_id="m")
    store.memories.archive("m")
    assert store.memories.get("m").archived_at is not None
    assert store.memories.list() == []
    assert ids(store.memories.list(archived=True)) == ["m"]
    assert store.search("tea", mode="text").hits == []


def test_an_update_leaves_an_archived_memory_archived(memories):
    memories.save("green tea", memory_id="m")
    memories.archive("m")
    memories.update("m", content="black tea")
    assert (memories.get("m").content, memories.list()) == ("black tea", [])


def test_a_deleted_memory_is_gone(store):
    store.memories.save("green tea", memory_id="m")
    assert store.memories.delete("m").stream == "memory"
    assert store.memories.get("m") is None
    assert store.memories.list() == store.memories.list(archived=True) == []
    assert store.search("tea", mode="text").hits == []


def test_a_touch_counts_each_memory_once(memories):
    for name in ("a", "b"):
        memories.save(name, memory_id=name)
    memories.touch("a", "b", "a")
    memories.touch("a")
    assert {memory.memory_id: memory.access_count for memory in memories.list()} == {"a": 2, "b": 1}
    assert memories.get("a").last_accessed > memories.get("a").updated_at


def test_what_is_unknown_is_named_and_nothing_is_written(memories):
    memories.save("tea", memory_id="m")
    for change in (
        lambda: memories.update("x", content="tea"),
        lambda: memories.archive("x"),
        lambda: memories.touch("x", "m", "y", "x"),
    ):
        with pytest.raises(memlog.NotFound) as caught:
            change()
        assert caught.value.code == "memory_not_found"
    assert caught.value.message == "no memory 'x', 'y'"
    assert memories.get("x") is None
    assert memories.delete("x") is False
    assert memories.history("x") == []
    assert types(memories.history("m")) == ["memory_saved"]


def test_a_touch_of_nothing_is_refused(memories):
    with pytest.raises(memlog.BadInput):
        memories.touch()


def test_a_change_waits_for_a_projector_and_does_not_go_by_an_old_read_model(store):
    from memlog.eventlog.files.locks import holding_lock

    store.memories.save("tea", memory_id="m")
    with memlog.open(store.path, lock_timeout=0.1) as hurried:
        hurried.memories.list()
        store.memories.save("coffee", memory_id="new")
        with holding_lock(store.path / "projector.lock", "a test", 1.0), pytest.raises(memlog.Busy):
            hurried.memories.archive("new")
        hurried.memories.archive("new")
    assert ids(store.memories.list()) == ["m"]


# Listing


def test_a_list_is_ordered_by_salience_then_by_change_then_by_id(memories):
    for name, salience, number in (
        ("d", 1.0, 1),
        ("b", 1.0, 2),
        ("a", 1.0, 2),
        ("old", 0.5, 3),
        ("faded", 0.25, 9),
    ):
        memories.save(name, memory_id=name, ts=day(1))
        memories.update(name, salience=salience, title=name, ts=day(number))
    assert ids(memories.list()) == ["a", "b", "d", "old", "faded"]
    assert ids(memories.list(limit=2)) == ["a", "b"]
    assert ids(memories.list(min_salience=0.5)) == ["a", "b", "d", "old"]


LISTS = [
    ({}, {"a", "b", "c"}),
    ({"category": "identity"}, {"a"}),
    ({"kind": "insight"}, {"b"}),
    ({"chat": "x:1"}, {"a", "b"}),
    ({"topic": "drinks"}, {"b", "c"}),
    ({"tag": "tea"}, {"a", "c"}),
    ({"tag": "tea", "chat": "x:1"}, {"a"}),
    ({"tag": "te"}, set()),
    ({"archived": True}, {"z"}),
    ({"archived": True, "topic": "drinks"}, set()),
]


def test_memory_metadata_is_the_light_form_of_a_list_without_contents(store, memories):
    memories.save("Anna drinks green tea", memory_id="tea", tags=["tea"])
    memories.save("The kettle is blue", title="Kettle", memory_id="kettle")
    whole, read = memories.list(), set()
    store._engine.read_model.projector.connect_to_live().set_authorizer(
        lambda _, table, column, *__: read.add((table, column)) or sqlite3.SQLITE_OK
    )
    assert memories.list(light=True) == [replace(each, content="") for each in whole]
    assert ("memories", "title") in read
    assert ("memories", "content") not in read


def test_a_list_has_what_is_all_that_is_asked_for(memories):
    memories.save("a", memory_id="a", category="identity", chat="x:1", tags=["tea", "food"])
    memories.save("b", memory_id="b", kind="insight", chat="x:1", topic="drinks")
    memories.save("c", memory_id="c", chat="x:2", topic="drinks", tags=["tea"])
    memories.save("z", memory_id="z")
    memories.archive("z")
    for asked, expected in LISTS:
        assert set(ids(memories.list(**asked))) == expected, asked


# History


def test_a_history_goes_on_through_changes_deletion_and_return(memories):
    memories.save("tea", memory_id="m")
    memories.update("m", content="coffee")
    memories.touch("m")
    memories.archive("m")
    memories.delete("m")
    assert types(memories.history("m")) == [
        "memory_saved",
        "memory_updated",
        "memory_accessed",
        "memory_archived",
        "memory_deleted",
    ]
    memories.save("milk", memory_id="m")
    memories.save("another", memory_id="other")
    events = memories.history("m")
    assert types(events)[-2:] == ["memory_deleted", "memory_saved"]
    assert [json.loads(event.raw)["id"] for event in events] == [event.id for event in events]
    assert json.loads(events[1].raw)["content"] == "coffee"
    assert [event.position.line for event in events] == [1, 2, 3, 4, 5, 6]


def test_a_history_is_in_the_order_in_which_things_happened(memories):
    memories.save("third", memory_id="m", event_id="3", ts=day(3))
    memories.save("first", memory_id="m", event_id="1", ts=day(1))
    memories.update("m", content="second", event_id="2", ts=day(2))
    assert [event.id for event in memories.history("m")] == ["1", "2", "3"]
    assert memories.get("m").content == "third"


# Several processes


def _update(path, number, barrier):
    with memlog.open(path) as store:
        barrier.wait(60)
        for step in range(5):
            store.memories.update("m", content=f"{number} {step}", event_id=f"{number}-{step}")


def test_of_two_processes_that_update_one_memory_the_later_wins(spawning, store):
    store.memories.save("tea", memory_id="m")
    barrier = spawning.Barrier(2)
    processes = [spawning.Process(target=_update, args=(store.path, number, barrier)) for number in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    *_, last = events = store.memories.history("m")
    assert len(events) == 11
    found = store.memories.get("m")
    assert (found.event_id, found.content) == (last.id, json.loads(last.raw)["content"])
    assert store.maintenance.verify().ok


def test_access_counts_take_no_part_in_ranking(store, memories):
    for name in ("a", "b", "c"):
        memories.save(f"The tea house {name} opens at eight", memory_id=name, ts=day(1))
    before = [(hit.id, hit.score) for hit in store.search("when does the tea house open", mode="text").hits]
    for _ in range(20):
        memories.touch(before[-1][0])
    assert [
        (hit.id, hit.score) for hit in store.search("when does the tea house open", mode="text").hits
    ] == before
    assert memories.get(before[-1][0]).access_count == 20
