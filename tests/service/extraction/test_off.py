"""Off means off: nothing is asked of a model, and imported conversations stay on this machine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.service.llm.model import LanguageModel
from tests.service.extraction.test_extraction import opened
from tests.support.provider import Provider


def said(name: str, channel: str = "cli") -> memlog.Message:
    return memlog.Message(id=name, channel=channel, chat_id="1", role="user", content="I live in Turku")


WAYS: dict[str, Callable[[memlog.Store], object]] = {
    "extract": lambda store: store.extraction.run(),
    "days": lambda store: store.extraction.days(),
    "a job": lambda store: store.jobs.run("weekly"),
    "what is due": lambda store: store.jobs.run(),
    "a watch": lambda store: store.maintenance.watch(),
}


@pytest.mark.parametrize("way", WAYS)
def test_where_memory_is_off_nothing_is_distilled_and_no_job_runs(
    tmp_path: Path, provider: Provider, way: str
) -> None:
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    with memlog.open(tmp_path, language_model=model, memory=False) as store:
        store.append([said("m1")])
        with pytest.raises(memlog.BadInput, match=r"memory\.enabled is false"):
            WAYS[way](store)
        assert store.jobs.log() == []
        assert {job.due for job in store.jobs.list()} == {"off: memory.enabled is false"}
    assert provider.asked == []


def test_where_extraction_is_off_the_steps_of_a_model_say_so(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider, enabled=False) as store:
        store.append([said("m1")])
        with pytest.raises(memlog.BadInput, match=r"extraction\.enabled is false"):
            store.extraction.run()
        whys = {step.name: step.why for step in store.jobs.run("weekly")[0].steps}
        assert whys["merge"] == whys["profile"] == "extraction.enabled is false"
        assert whys["prune"] is None
    assert provider.asked == []


@pytest.mark.parametrize(
    ("is_near", "rules", "sent"),
    [(False, {}, 1), (True, {}, 2), (False, {"channels": ("chatdo",)}, 2), (False, {"channels": ("x",)}, 1)],
)
def test_imported_conversations_stay_on_this_machine(
    tmp_path: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    is_near: bool,
    rules: dict[str, Any],
    sent: int,
) -> None:
    # The provider of the test is near: another machine is not at hand.
    monkeypatch.setattr(LanguageModel, "is_of_this_machine", property(lambda _: is_near))
    provider.answer = lambda _: '{"memories": [], "summary": "They talked."}'
    with opened(tmp_path, provider, tokens=300, **rules) as store:
        store.append([said("mine"), said("chatdo~1f0c9a3e/1/2/m1", "chatdo")])
        reports = store.extraction.run()
        assert len(provider.asked) == sent
        assert [each.messages for each in reports if each.set_aside] == ([1] if sent == 1 else [])
        assert len(store.extraction.buffer()) == 2 - sent
        store.append(
            [
                memlog.DailyEventRecorded(
                    id="memory-folder/2026-01-14/1", event_date="2026-01-14", summary="Tea"
                )
            ]
        )
        asked = len(provider.asked)
        store.extraction.days()
        assert len(provider.asked) == asked + is_near
        long = "I live in Turku " * 200
        store.append(
            [
                memlog.Message(id=f"chatdo/1/2/{n}", channel="chatdo", chat_id="1", role="user", content=long)
                for n in range(3)
            ]
        )
        asked = len(provider.asked)
        store.jobs.run("summaries")
        assert (len(provider.asked) > asked) == (sent == 2)


@pytest.mark.parametrize(
    ("is_near", "channels", "is_sent"),
    [(False, (), False), (True, (), True), (False, ("tiered",), True), (False, ("cli",), False)],
)
def test_imported_memories_and_values_stay_on_this_machine(
    tmp_path: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    is_near: bool,
    channels: tuple[str, ...],
    is_sent: bool,
) -> None:
    monkeypatch.setattr(LanguageModel, "is_of_this_machine", property(lambda _: is_near))
    provider.answer = lambda asked: '{"groups": []}' if asked.startswith("[") else '{"entries": []}'
    with opened(tmp_path, provider, channels=channels) as store:
        for number, text in enumerate(("Anna has tulips", "Anna has had an operation")):
            name = f"tiered~1f0c9a3e/{number}"
            store.append([memlog.MemorySaved(id=name, memory_id=name, content=text)])
        store.append([memlog.CoreMemoryUpdated(id="tiered/9", section="user", key="city", value="Salo")])
        for text in ("Anna lives in Turku", "Bo sails to Oslo"):
            store.memories.save(text)
        (report,) = store.jobs.run("weekly")
        texts = ("tulips", "operation", "Salo")
        assert [bool(provider.asked_about(text)) for text in texts] == [is_sent] * 3
        assert provider.asked_about("Turku")
        whys = {step.name: step.why for step in report.steps}
        note = "imported memories not sent (extraction.channels does not name them): 2"
        assert (whys["merge"], whys["profile"]) == ((None, None) if is_sent else (note, note))
        assert len(store.memories.list()) == 4


def of_messages(store: memlog.Store) -> None:
    message = memlog.Message(id="tiered/1", channel="x", chat_id="1", role="user", content="I have tulips")
    store.append([message])
    [*store.extraction.run()]


def of_days(store: memlog.Store) -> None:
    store.append([memlog.DailyEventRecorded(id="tiered/1", event_date="2026-01-14", summary="It rained.")])
    [*store.extraction.days()]


def of_memories(store: memlog.Store) -> None:
    for number, text in enumerate(("Anna has tulips.", "Anna had an operation.")):
        name = f"tiered/{number}"
        store.append([memlog.MemorySaved(id=name, memory_id=name, content=text, source="extraction")])


DERIVED = [of_messages, of_days, of_memories]


@pytest.mark.parametrize("is_near", [False, True])
@pytest.mark.parametrize("derive", DERIVED)
def test_what_was_derived_of_imported_things_stays_on_this_machine(
    tmp_path: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    derive: Callable[[memlog.Store], None],
    is_near: bool,
) -> None:
    near = [True]
    monkeypatch.setattr(LanguageModel, "is_of_this_machine", property(lambda _: near[0]))

    def answer(asked: str) -> str:
        question = json.loads(asked)
        if isinstance(question, dict):
            return json.dumps({"entries": [{"key": "garden", "value": "tulips", "numbers": [1]}]})
        texts = {each.get("text"): each.get("number") for each in question}
        if None not in texts:
            members = {"numbers": [*texts.values()], "content": " ".join(texts)}
            return json.dumps({"groups": [{"relation": "update", **members}] if near[0] else []})
        memories = [{"type": "fact", "content": "Anna has tulips.", "importance": 0.8}]
        return json.dumps({"memories": memories, "summary": "She told of her operation."})

    provider.answer = answer
    with opened(tmp_path, provider) as store:
        derive(store)
        store.jobs.run("weekly")
        assert store.core.get("user") == {"garden": "tulips"}
        near[0] = is_near
        before = len(provider.asked)
        store.memories.save("Bo sails to Oslo.")
        store.memories.save("Bo has a boat.")
        [*store.extraction.days(until="2999-01-01")]
        store.jobs.run("weekly")
        sent = "\n".join(provider.asked[before:])
        assert "Oslo" in sent
        assert ("tulips" in sent or "operation" in sent) is is_near


@pytest.mark.parametrize(
    ("url", "is_near"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://localhost:1234/v1", True),
        ("http://[::1]:80", True),
        ("https://api.openai.com/v1", False),
        ("http://192.168.1.5:11434", False),
        ("http://localhost.example.com", False),
    ],
)
def test_a_provider_is_near_by_its_address(url: str, is_near: bool) -> None:
    assert memlog.LanguageModelProvider(base_url=url, model="m").is_of_this_machine is is_near


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "no language model is configured"),
        ({"extraction": memlog.ExtractionRules(enabled=False)}, "extraction.enabled is false"),
        ({"memory": False}, "memory.enabled is false"),
    ],
)
def test_extract_and_save_without_a_language_model_stores_the_exchange(
    tmp_path: Path, provider: Provider, options: dict[str, Any], why: str
) -> None:
    with memlog.open(tmp_path, **options) as store:
        for _ in range(2):  # a retry stores nothing twice
            done = store.extraction.extract("cli:1", user="I live in Turku", assistant="Noted")
            assert (done.waiting, done.why) == (2, why)
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    with memlog.open(tmp_path, language_model=model) as store:
        messages = store.conversations.window("cli:1").messages
        assert [(each.role, each.content) for each in messages] == [
            ("user", "I live in Turku"),
            ("assistant", "Noted"),
        ]
        provider.answer = lambda _: '{"memories": [{"content": "Anna lives in Turku", "importance": 0.9}]}'
        store.extraction.run()
        assert [each.content for each in store.memories.list()] == ["Anna lives in Turku"]
