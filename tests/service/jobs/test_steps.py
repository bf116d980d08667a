"""What the steps of jobs make of memories and conversations, and what a person has said on top of it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.service.jobs.conftest import Clock
from tests.support.provider import Provider


def opened(path: Path, provider: Provider, **rules: Any) -> memlog.Store:
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    return memlog.open(path, language_model=model, extraction=memlog.ExtractionRules(**rules))


def scripted(groups: list[tuple[str, tuple[str, ...], str]] = [], profile: dict[str, str] = {}) -> Any:  # noqa: B006
    """A model that finds groups of memories by their texts, and sets these values of the profile."""

    def answer(asked: str) -> str:
        question = json.loads(asked)
        if "messages" in question:
            return json.dumps({"summary": f"{question['before']} {len(question['messages'])} more.".strip()})
        if "memories" in question:
            entries = [{"key": key, "value": value, "numbers": [1]} for key, value in profile.items()]
            return json.dumps({"entries": entries})
        numbers = {each["text"]: each["number"] for each in question}
        found = [
            {"relation": relation, "numbers": [numbers[text] for text in texts], "content": content}
            for relation, texts, content in groups
            if numbers.keys() >= {*texts}
        ]
        return json.dumps({"groups": found})

    return answer


TURKU, TAMPERE, HOME = "Anna lives in Turku.", "Anna has moved to Tampere.", "Anna lives in Tampere."
MOVED = f"{TURKU} {TAMPERE}"


def saved(store: memlog.Store, *texts: str, source: str = "extraction") -> None:
    for number, text in enumerate(texts):
        store.memories.save(text, source=source, dedup=False, ts=f"2026-01-0{number + 1}T00:00:00Z")


def contents(store: memlog.Store) -> list[str]:
    return sorted(each.content for each in store.memories.list())


def test_a_contradiction_supersedes_and_the_history_has_both_texts(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer = scripted([("contradiction", (TURKU, TAMPERE), HOME)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE)
        store.jobs.run("weekly")
        assert contents(store) == [HOME]
        (memory,) = store.memories.list()
        texts = [json.loads(event.raw)["content"] for event in store.memories.history(memory.memory_id)]
        assert texts == [TURKU, HOME]
        (conflict,) = store.memories.conflicts()
        assert (conflict.state, conflict.decided_by, conflict.memory_id) == (
            "decided",
            "model",
            memory.memory_id,
        )
        assert [each.content for each in conflict.memories] == [TURKU, TAMPERE]
        asked = len(provider.asked)
        store.jobs.run("weekly")
        assert len(provider.asked) == asked, "nothing is new"


@pytest.mark.parametrize("keep", [0, 1, None])
def test_what_somebody_saved_waits_for_a_person(tmp_path: Path, provider: Provider, keep: int | None) -> None:
    provider.answer = scripted([("contradiction", (TURKU, TAMPERE), HOME)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE, source="manual")
        store.jobs.run("weekly")
        assert contents(store) == sorted([TURKU, TAMPERE])
        (conflict,) = store.memories.conflicts()
        assert conflict.state == "waiting"
        ids = [each.memory_id for each in conflict.memories]
        with pytest.raises(memlog.BadInput):
            store.memories.resolve(conflict.id, keep=["another"])
        store.memories.resolve(conflict.id, keep=ids if keep is None else [ids[keep]])
        assert contents(store) == sorted([TURKU, TAMPERE] if keep is None else [[TURKU, TAMPERE][keep]])
        with pytest.raises(memlog.NotFound):
            store.memories.resolve(conflict.id, keep=ids)
        found = [(each.state, each.decided_by, each.memory_id) for each in store.memories.conflicts()]
        assert found == [("decided", "person", None if keep is None else ids[keep])]
        store.erasure.forget(memory=ids[keep or 0])
        assert contents(store) == ([TAMPERE] if keep is None else []), "only that one was forgotten"
        assert len(store.memories.list(archived=True)) == (keep is not None)


def test_to_forget_a_merged_memory_takes_what_it_was_merged_from_and_what_it_told_of_the_user(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer = scripted([("update", (TURKU, TAMPERE), MOVED)], {"city": "Tampere"})
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE)
        store.jobs.run("weekly")
        assert (contents(store), store.core.get("user")) == ([MOVED], {"city": "Tampere"})
        (memory,) = store.memories.list()
        store.erasure.forget(memory=memory.memory_id)
        store.erasure.scrub()
        assert (store.memories.list(), store.memories.list(archived=True), store.core.get("user")) == (
            [],
            [],
            {},
        )
        for text in ("Turku", "Tampere"):
            assert store.erasure.prove(text).found == []


def test_the_profile_leaves_what_a_person_set_or_removed(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted(profile={"City": "Tampere", "phone": "040", "diet": "vegan", "key": "x" * 900})
    with opened(tmp_path, provider) as store:
        store.core.set("user", "city", "Turku")
        store.core.set("user", "phone", "050")
        store.core.delete("user", "phone")
        saved(store, HOME)
        for name in ("Anna", "Boris"):
            store.append([memlog.Message(channel="t", chat_id=name, role="user", name=name, content="Hi")])
        store.memories.save("Anna told a secret.", chat="telegram:7")
        store.jobs.run("weekly")
        assert store.core.get("user") == {"city": "Turku", "diet": "vegan"}
        told = [asked for asked in provider.asked if "secret" in asked]
        assert HOME not in "".join(told), "what one chat told is no business of another"
        store.core.set("user", "diet", "omnivore")
        saved(store, TURKU)
        store.jobs.run("weekly")
        assert store.core.get("user")["diet"] == "omnivore"


def test_a_new_memory_is_compared_with_those_that_mean_the_same_in_a_large_partition(
    tmp_path: Path, provider: Provider
) -> None:
    old, new = "The dog is afraid of fireworks.", "Rockets and firecrackers scare our dog."
    others = [f"The {what} was painted in year {1990 + n}." for n, what in enumerate(["barn"] * 60)]
    both = f"{old} {new}"
    provider.answer = scripted([("same", (old, new), both)])
    with opened(tmp_path, provider, tokens=300) as store:
        saved(store, *[old])
        for text in others:
            store.memories.save(text, source="extraction", dedup=False)
        store.jobs.run("weekly")
        store.memories.save(new, source="extraction", dedup=False)
        store.maintenance.embed()
        asked = len(provider.asked)
        store.jobs.run("weekly")
        assert old not in contents(store)
        merges = [json.loads(each) for each in provider.asked[asked:] if each.startswith("[")]
        assert len(merges) == 1
        assert len(merges[0]) < 30


def test_the_older_part_of_a_long_session_and_sessions_that_end_are_summarised(
    tmp_path: Path, provider: Provider, clock: Clock
) -> None:
    provider.answer = scripted()
    with opened(tmp_path, provider, tokens=600, quiet_minutes=10_000) as store:

        def say(count: int) -> None:
            said = [memlog.Message(channel="cli", chat_id="1", role="user", content="word " * 50)] * count
            store.append(said)

        say(10)
        store.jobs.run("summaries")
        assert store.conversations.summaries() == [], "all of it fits into a context"
        say(20)
        store.jobs.run("summaries")
        messages = store.conversations.window("cli:1", last=100).messages
        first = store.conversations.summaries()[-1]
        assert first.from_message_id == messages[0].id
        assert first.to_message_id in [each.id for each in messages[15:20]]
        assert store.context("word", chat="cli:1", max_tokens=500).entries
        count = len(store.conversations.summaries())
        store.jobs.run("summaries")
        assert len(store.conversations.summaries()) == count
        store.append([memlog.SessionBreak(channel="cli", chat_id="1")])
        store.jobs.run("summaries")
        last = store.conversations.summaries()[-1]
        assert (last.from_message_id, last.to_message_id) == (messages[0].id, messages[-1].id)
        assert last.content.startswith(first.content), "it goes on from the one before"
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


def test_while_the_model_is_away_the_run_stays_due_and_its_other_steps_are_done(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlog.service.llm.model._WAITS", ())
    provider.always = "500"
    provider.answer = scripted([("same", (TURKU, TAMPERE), MOVED)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE)
        store.memories.save(TURKU, memory_id="double", source="extraction")
        store.memories.save("Scrap", category="temp", importance=0.001)
        with pytest.raises(memlog.ProviderError):
            store.jobs.run("weekly")
        assert contents(store) == sorted([TURKU, TAMPERE]), "duplicates and faded ones are gone"
        assert store.jobs.log() == []
        provider.always = None
        store.jobs.run("weekly")
        assert contents(store) == [MOVED]
        assert len(store.jobs.log()) == 1


def test_a_value_of_the_profile_goes_with_what_it_was_made_of(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted(profile={"city": "Turku"})
    with opened(tmp_path, provider) as store:
        saved(store, TURKU)
        store.memories.save("Anna likes tea.", ts="2026-01-02T00:00:00Z")
        store.jobs.run("weekly")
        assert store.core.get("user") == {"city": "Turku"}
        (turku,) = [each for each in store.memories.list() if each.content == TURKU]
        store.memories.archive(turku.memory_id)
        provider.answer = scripted()
        store.jobs.run("weekly")
        assert store.core.get("user") == {}
        provider.answer = scripted(profile={"city": "Oulu"})
        store.memories.save("Anna has moved to Oulu.")
        store.jobs.run("weekly")
        assert store.core.get("user") == {"city": "Oulu"}, "the profile may set again what it has removed"


def test_what_was_made_of_a_credential_goes_and_is_not_sent_again(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted(profile={"door": "4711-hauki"})
    with opened(tmp_path, provider) as store:
        saved(store, "The door opens with 4711-hauki")
        store.jobs.run("weekly")
        assert store.core.get("user") == {"door": "4711-hauki"}
        (memory,) = store.memories.list()
        store.memories.update(memory.memory_id, category="credential")
        store.memories.save("Anna likes tea.", ts="2026-01-02T00:00:00Z")
        provider.answer = scripted()
        asked = len(provider.asked)
        store.jobs.run("weekly")
        assert store.core.get("user") == {}
        assert [text for text in provider.asked[asked:] if "4711" in text] == []
        assert len(provider.asked) > asked


def test_what_a_person_sets_while_the_model_works_holds(tmp_path: Path, provider: Provider) -> None:
    def answer(asked: str) -> str:
        with memlog.open(tmp_path) as other:
            other.core.set("user", "city", "Turku")
        return str(scripted(profile={"city": "Tampere"})(asked))

    with opened(tmp_path, provider) as store:
        saved(store, TURKU)
        store.append([memlog.CoreMemoryUpdated(section="user", key="city", value="Oulu", source="profile")])
        provider.answer = answer
        store.jobs.run("weekly")
        assert store.core.get("user") == {"city": "Turku"}
        later = memlog.CoreMemoryUpdated(section="user", key="city", value="Espoo", source="profile")
        store.append([later])
        assert store.core.get("user") == {"city": "Turku"}, "whoever writes a profile, and whenever"


def test_a_merge_leaves_every_memory_that_is_not_of_its_group(tmp_path: Path, provider: Provider) -> None:
    allergy = "Anna is allergic to penicillin."
    provider.answer = scripted([("update", (TURKU, TAMPERE), MOVED)])
    with opened(tmp_path, provider) as store:
        report = store.memories.save(MOVED)
        store.memories.update(report.memory_id, content=allergy)
        saved(store, TURKU, TAMPERE)
        store.jobs.run("weekly")
        assert contents(store) == sorted([MOVED, allergy])


def test_a_forgotten_closing_line_makes_no_memory_vanish(tmp_path: Path, provider: Provider) -> None:
    provider.answer = scripted([("update", (TURKU, TAMPERE), MOVED)])
    with opened(tmp_path, provider) as store:
        saved(store, TURKU, TAMPERE)
        store.jobs.run("weekly")
        (closing,) = [
            each["id"]
            for path in (tmp_path / "log/memory").glob("*.jsonl")
            for each in map(json.loads, path.read_bytes().splitlines())
            if each["type"] == "memories_merged"
        ]
        store.erasure.forget(event_id=closing)
        assert contents(store) == [MOVED]


def test_an_answer_of_no_use_is_paid_for_once_a_day_and_the_run_ends(
    tmp_path: Path, provider: Provider, clock: Clock
) -> None:
    provider.answer = lambda asked: "I cannot help with that."
    clock.now = "2026-01-14T12:00:00.000Z"
    with opened(tmp_path, provider, tokens=300) as store:
        saved(store, TURKU, TAMPERE)
        long = memlog.Message(channel="cli", chat_id="1", role="user", content="word " * 600)
        store.append([long, memlog.SessionBreak(channel="cli", chat_id="1")])
        store.daily.record("Anna moved.", date="2026-01-13")
        clock.now = "2026-01-20T12:00:00.000Z"
        for _ in range(3):
            with suppress(memlog.ProviderError), opened(tmp_path, provider, tokens=300) as other:
                other.jobs.run()
        assert sorted((run.job, run.period) for run in store.jobs.log()) == [
            ("daily", "2026-01-20"),
            ("weekly", "2026-01-19"),
        ]
        assert all(
            "answered twice" in (step.why or "") for run in store.jobs.log() for step in run.steps[1:3]
        )
        asked = len(provider.asked)
        with suppress(memlog.ProviderError):
            store.jobs.run()
        assert len(provider.asked) == asked


def test_a_run_whose_line_was_forgotten_is_made_once_more(tmp_path: Path, clock: Clock) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save(TURKU)
        clock.now = "2026-01-20T12:00:00.000Z"
        store.jobs.run()
        for run in store.jobs.log():
            store.erasure.forget(event_id=run.id)
        assert len(store.jobs.run()) == 2
        assert store.jobs.run() == []


def test_what_is_distilled_of_a_day_is_of_that_day_and_of_its_chat(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer = lambda asked: json.dumps(
        {
            "memories": [{"type": "fact", "content": "Anna has pneumonia.", "importance": 0.9}],
            "summary": "Anna told of her pneumonia.",
        }
        if "role" in asked
        else {"memories": [{"type": "fact", "content": "Anna had pneumonia in January.", "importance": 0.9}]}
    )
    with opened(tmp_path, provider) as store:
        said = memlog.Message(
            channel="telegram",
            chat_id="7",
            role="user",
            content="I have pneumonia",
            ts="2026-01-14T12:00:00Z",
        )
        store.append([said])
        store.jobs.run("extraction")
        store.jobs.run("daily")
        found = {(each.content, each.chat, each.updated_at[:10]) for each in store.memories.list()}
        assert found == {
            ("Anna has pneumonia.", "telegram:7", "2026-01-14"),
            ("Anna had pneumonia in January.", "telegram:7", "2026-01-14"),
        }
        store.jobs.run("weekly")
        store.erasure.forget(chat="telegram:7")
        store.erasure.scrub()
        assert store.erasure.prove("pneumonia").found == []
