"""What `store.maintenance.stats()` counts."""

import shutil

import msgspec
import pytest

import memlog

NO_EXTRACTIONS = dict.fromkeys(
    (f"memory.extraction.{name}" for name in ("count", "success", "errors", "tokens")), 0
)


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store" / "log").mkdir(parents=True)
    with memlog.open(tmp_path / "store", durability="os") as opened:
        yield opened


def said(content, **more):
    return {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": content} | more


def test_an_empty_store_has_nothing_to_count(store):
    found = store.maintenance.stats()
    counts = msgspec.structs.asdict(found)
    assert counts.pop("counters") == NO_EXTRACTIONS | {"memory.saved.count": 0, "memory.retrieved.count": 0}
    assert counts.pop("model_bytes") > 0
    assert counts.pop("synced")
    assert not any(counts.values())


def test_events_are_counted_by_type_and_by_utc_day(store):
    store.append([said("tea", ts="2026-02-24T23:30:00-02:00"), said("tea", ts="2026-02-24T08:00:00Z")])
    store.append([{"type": "session_break", "channel": "x", "chat_id": "1", "ts": "2026-02-24T09:00:00Z"}])
    found = store.maintenance.stats()
    assert list(found.events_by_type.items()) == [("message", 2), ("session_break", 1)]
    assert list(found.events_by_day.items()) == [("2026-02-24", 2), ("2026-02-25", 1)]


def test_messages_are_counted_by_role_and_chat_without_session_breaks(store):
    store.append([said("a"), said("b", role="assistant"), said("c", chat_id="2")])
    store.append([{"type": "session_break", "channel": "x", "chat_id": "3"}])
    found = store.maintenance.stats()
    assert found.messages_by_role == {"assistant": 1, "user": 2}
    assert found.messages_by_chat == {"x:1": 2, "x:2": 1}


def test_memories_are_counted_by_category_and_kind(store):
    store.memories.save("a", category="decisions", kind="insight", memory_id="a")
    store.memories.save("b", category="context", memory_id="b")
    store.memories.save("c", category="context", memory_id="c")
    store.memories.save("d", category="temp", memory_id="d")
    store.memories.archive("b")
    store.memories.delete("d")
    found = store.maintenance.stats()
    assert found.memories_by_category == {"context": 2, "decisions": 1}
    assert found.memories_by_kind == {"fact": 2, "insight": 1}
    assert found.memories_archived == 1


def test_saves_and_retrievals_are_counted_from_events(store):
    for _ in range(2):
        store.memories.save("a", memory_id="a")
    store.memories.save("b", memory_id="b")
    store.memories.touch("a", "b", "a")
    store.memories.touch("a")
    store.memories.delete("b")
    counters = NO_EXTRACTIONS | {"memory.saved.count": 3, "memory.retrieved.count": 3}
    assert store.maintenance.stats().counters == counters
    store.close()
    shutil.rmtree(store.path / "model")
    assert store.maintenance.stats().counters == counters


def test_reading_counts_nothing_and_appends_nothing(store):
    store.memories.save("green tea", memory_id="a")
    before = store.maintenance.stats()
    store.search("tea", mode="text")
    store.memories.list()
    store.memories.get("a")
    after = store.maintenance.stats()
    assert (after.counters, after.log_bytes) == (before.counters, before.log_bytes)


def test_a_forgotten_event_no_longer_counts(store):
    store.memories.save("a", memory_id="a", event_id="s")
    touched = store.memories.touch("a")
    store.erasure.forget(touched.id)
    assert store.maintenance.stats().counters == NO_EXTRACTIONS | {
        "memory.saved.count": 1,
        "memory.retrieved.count": 0,
    }


def test_a_retry_counts_once(store):
    for _ in range(3):
        store.memories.save("a", event_id="s")
    assert store.maintenance.stats().counters["memory.saved.count"] == 1


def test_the_lag_is_what_was_behind_when_it_was_asked_and_all_is_counted(store):
    store.append([said("tea")])
    store.maintenance.stats()
    before = store.maintenance.stats()
    (segment,) = (store.path / "log" / "conversations" / "x_1").iterdir()
    read = segment.stat().st_size
    store.append([said("tea"), said("tea")])
    with segment.open("ab") as file:
        file.write(b'{"type":"mess')
    found = store.maintenance.stats()
    assert (before.unread_bytes, before.unread_lines) == (0, 0)
    assert found.unread_bytes == segment.stat().st_size - read
    assert (found.unread_lines, found.events_by_type) == (2, {"message": 3})
    # The tail has no end yet: it stays unread.
    assert (store.maintenance.stats().unread_bytes, store.maintenance.stats().unread_lines) == (
        len(b'{"type":"mess'),
        0,
    )


def test_the_status_says_the_same_lag(store):
    store.append([said("tea")])
    store.maintenance.project(embed=False)
    store.append([said("more tea")])
    assert store.maintenance.status().unread_bytes == store.maintenance.stats().unread_bytes > 0


def test_passages_are_counted_with_and_without_a_vector(store):
    store.append(
        [said("tea"), {"type": "document_indexed", "source_id": "d", "file": "t.md", "content": "tea"}]
    )
    store.maintenance.project(embed=False)
    found = store.maintenance.stats()
    assert (found.passages, found.vectors, found.vectors_pending) == (2, 0, 2)
    store.maintenance.embed()
    found = store.maintenance.stats()
    assert (found.passages, found.vectors, found.vectors_pending) == (2, 2, 0)
    assert found.vectors == store.maintenance.verify().vectors


def test_sizes_are_those_of_the_files(store):
    store.append([said("tea")])
    store.maintenance.project()
    found = store.maintenance.stats()
    store.close()  # SQLite then removes what it keeps beside the read model
    for folder, size in (
        ("log", found.log_bytes),
        ("model", found.model_bytes),
        ("cache", found.cache_bytes),
    ):
        assert size == sum(path.stat().st_size for path in (store.path / folder).rglob("*") if path.is_file())
        assert size > 0
