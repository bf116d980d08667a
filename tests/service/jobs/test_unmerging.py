"""A merge is taken back by one event: the memories are as they were before it."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import memlog
from tests.service.jobs.test_merging import state_of
from tests.service.jobs.test_steps import MOVED, TAMPERE, TURKU, contents, opened, saved, scripted
from tests.support.places import FIXTURES
from tests.support.provider import Provider

AGAIN = "Anna lives in Turku! Anna has moved to Tampere!"

MERGES = {
    "update": ([("extraction", TURKU), ("extraction", TAMPERE)], ("update", MOVED)),
    "same, of a text that is there": ([("extraction", MOVED), ("extraction", AGAIN)], ("same", MOVED)),
    "same, of what somebody saved": ([("manual", MOVED), ("extraction", TAMPERE)], ("same", MOVED)),
    "contradiction": (
        [("extraction", TURKU), ("extraction", TAMPERE)],
        ("contradiction", "Anna lives in Tampere."),
    ),
    "exact": ([("manual", TURKU), ("extraction", "Anna  lives in TURKU.")], None),
}


@pytest.mark.parametrize(("memories", "answer"), MERGES.values(), ids=MERGES)
def test_what_a_merge_changed_is_as_before_and_no_job_merges_it_again(
    tmp_path: Path,
    provider: Provider,
    memories: list[tuple[str, str]],
    answer: tuple[str, str] | None,
) -> None:
    with opened(tmp_path, provider) as store:
        for number, (source, text) in enumerate(memories):
            ts = f"2026-01-0{number + 1}T00:00:00Z"
            store.memories.save(text, source=source, memory_id=f"m{number}", ts=ts, tags=[source])
        before = state_of(store)
        texts = tuple(text for _, text in memories)
        provider.answer = scripted([] if answer is None else [(answer[0], texts, answer[1])])
        store.jobs.run("weekly")
        (merged,) = store.memories.list()
        assert state_of(store) != before
        restored = store.memories.unmerge(merged.memory_id)
        assert sorted(each.content for each in restored) == sorted(texts)
        assert state_of(store) == before
        history = [event.type for each in restored for event in store.memories.history(each.memory_id)]
        assert "change_undone" in history
        assert {each.state for each in store.memories.conflicts()} <= {"settled"}
        store.jobs.run("weekly")
        assert state_of(store) == before
        with pytest.raises(memlog.MemlogError):
            store.memories.unmerge(merged.memory_id)
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


def merged_store(path: Path, provider: Provider) -> tuple[memlog.Store, memlog.Memory]:
    provider.answer = scripted([("update", (TURKU, TAMPERE), MOVED)])
    store = opened(path, provider)
    saved(store, TURKU, TAMPERE)
    store.jobs.run("weekly")
    (merged,) = store.memories.list()
    return store, merged


def test_a_third_memory_does_not_put_together_again_what_a_person_parted(
    tmp_path: Path, provider: Provider
) -> None:
    store, merged = merged_store(tmp_path, provider)
    with store:
        store.memories.unmerge(merged.memory_id)
        store.memories.save(AGAIN, source="extraction", dedup=False)
        provider.answer = scripted([("update", (TURKU, TAMPERE, AGAIN), MOVED)])
        store.jobs.run("weekly")
        assert contents(store) == sorted([TURKU, TAMPERE, AGAIN])


def test_what_somebody_has_changed_since_stays_beside_its_sources(tmp_path: Path, provider: Provider) -> None:
    store, merged = merged_store(tmp_path, provider)
    with store:
        mine = "Anna has moved to Tampere, to the house by the lake."
        store.memories.update(merged.memory_id, content=mine)
        store.memories.unmerge(merged.memory_id)
        assert contents(store) == sorted([TURKU, TAMPERE, mine])


def test_a_merge_of_a_merge_is_taken_back_first(tmp_path: Path, provider: Provider) -> None:
    store, first = merged_store(tmp_path, provider)
    with store:
        provider.answer = scripted([("update", (MOVED, "Anna moved in May."), f"{MOVED} Anna moved in May.")])
        store.memories.save("Anna moved in May.", source="extraction")
        store.jobs.run("weekly")
        (second,) = store.memories.list()
        with pytest.raises(memlog.BadInput, match=second.memory_id):
            store.memories.unmerge(first.memory_id)
        store.memories.unmerge(second.memory_id)
        store.memories.unmerge(first.memory_id)
        assert contents(store) == sorted([TURKU, TAMPERE, "Anna moved in May."])


def test_what_is_no_merge_is_refused(tmp_path: Path) -> None:
    with memlog.open(tmp_path) as store:
        name = store.memories.save(TURKU).memory_id
        with pytest.raises(memlog.BadInput, match="has no merge to undo"):
            store.memories.unmerge(name)
        with pytest.raises(memlog.NotFound):
            store.memories.unmerge("nothing")


@pytest.mark.parametrize("log", ["golden/v2", "extraction"])
def test_a_merge_of_an_old_log_is_taken_back(tmp_path: Path, log: str) -> None:
    copytree(FIXTURES / log / "log", tmp_path / "store/log")
    with memlog.open(tmp_path / "store") as store:
        merges = [
            (decision["memory_id"], decision["memory_ids"])
            for path in sorted((tmp_path / "store/log/memory").glob("*.jsonl"))
            for event in map(
                json.loads, filter(lambda line: line.startswith(b"{"), path.read_bytes().splitlines())
            )
            if event.get("type") == "memories_merged"
            for decision in event.get("decisions", [])
            if decision.get("memory_id") == "brass-tula"
        ]
        assert merges
        for name, sources in merges:
            assert [each.memory_id for each in store.memories.unmerge(name)] == sources
            assert store.memories.get(name) is None
            assert all(store.memories.get(each).archived_at is None for each in sources)  # type: ignore[union-attr]


def test_exact_duplicates_that_an_older_version_merged_are_parted(tmp_path: Path) -> None:
    twice: list[Any] = [
        memlog.MemorySaved(id=f"s{n}", memory_id=f"m{n}", content=TURKU + " " * n) for n in range(2)
    ]
    decision = memlog.MergeDecision("same", ["m0", "m1"], ["s0", "s1"], "m0")
    with memlog.open(tmp_path) as store:
        store.append(twice)
        store.memories.update("m0", importance=0.7)
        before = state_of(store)
        store.append(
            [
                memlog.MemoryUpdated(memory_id="m0", importance=0.9),
                memlog.MemoryArchived(memory_id="m1"),
                memlog.MemoriesMerged(event_ids=["s1"], decisions=[decision]),
            ]
        )
        assert state_of(store) != before
        store.memories.unmerge("m0")
        assert state_of(store) == before
        assert store.memories.list()[0].importance == 0.7 or store.memories.list()[1].importance == 0.7


@pytest.mark.parametrize("relation", ["update", "contradiction"])
def test_to_forget_a_source_takes_the_text_of_a_merge_that_was_taken_back(
    tmp_path: Path, provider: Provider, relation: str
) -> None:
    home = {"update": MOVED, "contradiction": "Anna moved to Tampere and lives in Tampere."}[relation]
    provider.answer = scripted([(relation, (TURKU, TAMPERE), home)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE)
        ids = {each.content: each.memory_id for each in store.memories.list()}
        store.jobs.run("weekly")
        (merged,) = store.memories.list()
        store.memories.unmerge(merged.memory_id)
        store.erasure.forget(memory=ids[TAMPERE])
        store.erasure.scrub()
        assert contents(store) == [TURKU], "that the merge is forgotten brings nothing back"
        assert store.erasure.prove("Tampere").found == []


def test_to_forget_a_merge_that_was_taken_back_leaves_its_sources(tmp_path: Path, provider: Provider) -> None:
    store, merged = merged_store(tmp_path, provider)
    with store:
        store.memories.unmerge(merged.memory_id)
        store.erasure.forget(memory=merged.memory_id)
        assert contents(store) == sorted([TURKU, TAMPERE])
        store.erasure.scrub()
        assert store.erasure.prove(MOVED).found == []


@pytest.mark.parametrize("kept", ["proposed", "first"])
def test_a_decision_of_a_person_is_taken_back_and_the_conflict_waits_again(
    tmp_path: Path, provider: Provider, kept: str
) -> None:
    provider.answer = scripted([("update", (TURKU, TAMPERE), MOVED)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE, source="manual")
        store.jobs.run("weekly")
        before = state_of(store)
        (conflict,) = store.memories.conflicts()
        assert conflict.proposed is not None
        name = (conflict.proposed if kept == "proposed" else conflict.memories[0]).memory_id
        store.memories.resolve(conflict.id, keep=[name])
        store.memories.unmerge(name)
        assert state_of(store) == before
        assert store.memories.conflicts() == [conflict]
