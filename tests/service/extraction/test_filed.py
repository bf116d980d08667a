"""What is distilled is filed: under a category and a topic, a day of the user, a session and a sender."""

import json
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.service.extraction.test_extraction import opened
from tests.service.jobs.conftest import Clock, clock
from tests.support.provider import Provider

__all__ = ["clock"]

HELSINKI = memlog.JobRules(timezone="Europe/Helsinki")


def said(content: str, ts: str, role: str = "user", chat: str = "7") -> memlog.Message:
    return memlog.Message(channel="telegram", chat_id=chat, role=role, content=content, ts=ts)  # type: ignore[arg-type]


def answer(*entries: dict[str, Any], summary: str = "") -> str:
    filled = [{"type": "fact", "importance": 0.8} | each for each in entries]
    return json.dumps({"memories": filled, "summary": summary})


@pytest.mark.parametrize(
    ("category", "topic", "filed"),
    [
        ("identity", "family", ("identity", "family")),
        ("Decision", " Garden  House ", ("decisions", "garden house")),
        ("solution", "сад", ("solution", "сад")),
        ("hobbies", "none", ("other", None)),
        ("credential", None, ("credential", None)),
        ("credentials", "\u202eTea\x00 break", ("credential", "tea break")),
        ("Solutions", None, ("solution", None)),
        ("identities\u200f", None, ("identity", None)),
        (None, "", ("other", None)),
        (7, ["tea"], ("other", None)),
        ("temp", "x" * 300, ("temp", None)),
        ("event", "ghp_" + "a1B2c3D4e5" * 4, ("event", None)),
    ],
)
def test_a_memory_has_the_category_and_the_topic_that_the_model_gives(
    tmp_path: Path, provider: Provider, category: object, topic: object, filed: tuple[str, str | None]
) -> None:
    provider.answer = lambda _: answer(
        {"content": "Anna has a garden.", "category": category, "topic": topic}
    )
    with opened(tmp_path, provider) as store:
        store.append([said("I have a garden", "2026-01-14T12:00:00Z")])
        store.daily.record("Anna worked in her garden", date="2026-01-13")
        store.extraction.run()
        (memory,) = store.memories.list()
        assert (memory.category, memory.topic) == filed
        store.memories.delete(memory.memory_id)
        store.extraction.days()
        (memory,) = store.memories.list()
        assert (memory.category, memory.topic) == filed


def test_a_day_is_the_day_of_the_user_and_has_its_sender(tmp_path: Path, provider: Provider) -> None:
    provider.answer = lambda _: answer(summary="Anna told of her day.")
    with opened(tmp_path, provider, jobs=HELSINKI) as store:
        times = ("2026-01-14T21:59:00Z", "2026-01-14T22:30:00Z", "2026-01-15T21:30:00Z")
        store.append([said(f"word {number}", ts) for number, ts in enumerate(times)])
        reports = store.extraction.run()
        assert [(each.date, each.messages) for each in reports] == [("2026-01-14", 1), ("2026-01-15", 2)]
        days = [(each.event_date, each.channel, each.sender_id, each.chat) for each in store.daily.list()]
        assert sorted(days) == [(f"2026-01-{day}", "telegram", "7", "telegram:7") for day in (14, 15)]
    assert [each["time"] for each in json.loads(provider.asked[1])] == [
        "2026-01-15T00:30+02:00",
        "2026-01-15T23:30+02:00",
    ]
    assert "Europe/Helsinki" in provider.requests[0][1]["messages"][0]["content"]


def test_the_cap_is_of_a_session(tmp_path: Path, provider: Provider) -> None:
    count = iter(range(1000))
    provider.answer = lambda _: answer(
        *({"content": f"{word} is number {next(count)} of {word}s"} for word in ("tea", "cat", "boat"))
    )
    with opened(tmp_path, provider, max_per_session=4) as store:
        first = [said("one", "2026-01-14T12:00:00Z"), said("two", "2026-01-15T12:00:00Z")]
        ends = memlog.SessionBreak(channel="telegram", chat_id="7", ts="2026-01-16T12:00:00Z")
        store.append([*first, ends, said("three", "2026-01-17T12:00:00Z")])
        assert [each.saved for each in store.extraction.run()] == [3, 1, 3]


def test_what_a_program_says_as_the_system_is_not_distilled(tmp_path: Path, provider: Provider) -> None:
    provider.answer = lambda _: '{"memories": [], "summary": "They talked."}'
    with opened(tmp_path, provider, tokens=300) as store:
        store.append([said("You are a pirate.", "2026-01-14T11:00:00Z", role="system")])
        assert store.extraction.buffer() == store.extraction.run() == []
        turns = [said(f"word {number} " * 30, f"2026-01-14T12:{number:02}:00Z") for number in range(20)]
        store.append(turns)
        store.extraction.run()
        store.jobs.run("summaries")
    assert len(provider.asked) > 2
    assert not any("pirate" in asked for asked in provider.asked)


def test_extracted_memories_fade_are_pruned_and_merged_by_what_they_were_filed_under(
    tmp_path: Path, provider: Provider, clock: Clock
) -> None:
    entries = [
        {"content": "Anna waits for a parcel.", "category": "temp", "topic": "parcel"},
        {"content": "Anna was born in Turku.", "category": "identity", "topic": "birth"},
        {"content": "Anna's birthplace is in Finland.", "category": "identity", "topic": "birth"},
        {"content": "Anna keeps bees.", "category": "identity", "topic": "bees"},
    ]
    provider.answer = lambda asked: (
        answer(*entries) if "role" in asked else '{"groups": [], "entries": [], "memories": []}'
    )
    with opened(tmp_path, provider) as store:
        store.append([said("I wait for a parcel", clock.now)])
        store.extraction.run()
        compared = len(provider.asked)
        clock.now = "2026-01-15T12:00:00.000Z"
        store.jobs.run("daily")
        salience = {each.content: each.salience for each in store.memories.list()}
        assert salience["Anna waits for a parcel."] < salience["Anna keeps bees."] == 1
        store.jobs.run("weekly")
        groups = [asked for asked in provider.asked[compared:] if asked.startswith("[")]
        assert [len(json.loads(asked)) for asked in groups] == [2]  # of one topic; the others are alone
        clock.now = "2026-03-15T12:00:00.000Z"
        for _ in range(3):
            store.jobs.run("daily")
        store.jobs.run("weekly")
        assert "Anna waits for a parcel." not in {each.content for each in store.memories.list()}
