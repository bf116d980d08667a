"""One bad item holds nothing up: it is set aside for the day, for two requests at most, and named."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import memlog
from memlog.eventlog import timestamps
from memlog.service.llm.extraction import create_questions
from memlog.service.llm.tasks.extract import ExtractTask
from tests.service.extraction.test_extraction import answer
from tests.support.forked_memlog import run_memlog
from tests.support.provider import Provider

POISON = "hemlock"


def opened(store: Path, provider: Provider, model: str = "m", timeout: float = 30) -> memlog.Store:
    chosen = memlog.LanguageModelProvider(base_url=provider.url, model=model, timeout=timeout)
    return memlog.open(store, language_model=chosen, extraction=memlog.ExtractionRules(tokens=1000))


def answers(asked: str) -> str:
    """What a model answers that takes no offence, whatever the task."""
    asked = asked.partition("\n\nThe last answer")[0]
    question = json.loads(asked)
    if isinstance(question, dict):
        return json.dumps({"summary": "It was said."} if "messages" in question else {"entries": []})
    if "text" in question[0]:
        return json.dumps({"groups": []})
    told = "; ".join(str(each.get("content") or each.get("summary"))[:50] for each in question)
    return answer(("fact", f"It was said: {told}", 0.6))


def or_nothing(asked: str) -> str:
    return "I cannot help with that." if POISON in asked else answers(asked)


def said(chat: str, content: str, name: str | None = None) -> memlog.Message:
    return memlog.Message(channel="cli", chat_id=chat, role="user", content=content, name=name)


def _two_chats(store: memlog.Store) -> None:
    store.append([said("1", f"I drink {POISON}"), said("2", "I drink tea")])


def _two_days(store: memlog.Store) -> None:
    store.daily.record(f"Anna drank {POISON}", date="2026-01-01")
    store.daily.record("Anna drank tea", date="2026-01-02")


def _two_sessions(store: memlog.Store) -> None:
    for chat, word in (("1", POISON), ("2", "tea")):
        store.append([said(chat, f"{word} " * 600), memlog.SessionBreak(channel="cli", chat_id=chat)])


def _two_people(store: memlog.Store) -> None:
    store.append([said("1", "Hello", "Anna"), said("2", "Hello", "Boris")])
    for chat, word in (("1", POISON), ("2", "tea")):
        for number in (1, 2):
            store.memories.save(f"In year {number} it was {word}.", chat=f"cli:{chat}", dedup=False)


class Task(NamedTuple):
    """prepare: makes two items, of which one is poisoned. job, step: do the other one. count: of the step."""

    prepare: Callable[[memlog.Store], None]
    job: str
    step: str


TASKS = {
    "extract": Task(_two_chats, "extraction", "messages"),
    "compress": Task(_two_days, "daily", "daily events"),
    "summarise": Task(_two_sessions, "summaries", "messages"),
    "merge": Task(_two_people, "weekly", "merge"),
    "profile": Task(_two_people, "weekly", "profile"),
}
KINDS = {"400": 1, "403": 1, "413": 1, "422": 1, "unusable": 2, "500": 2, "hang": 2}
"""How an item fails, and the requests that it takes on a day."""


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        *(("extract", kind) for kind in KINDS),
        *((task, kind) for task in [*TASKS][1:] for kind in ("403", "unusable", "500", "hang")),
    ],
)
def test_what_fails_is_asked_about_twice_a_day_at_most_and_named(
    tmp_path: Path, provider: Provider, task: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlog.service.llm.model._WAITS", ())
    provider.answer = or_nothing if kind == "unusable" else answers
    provider.poison = {} if kind == "unusable" else {POISON: kind}
    timeout = 0.3 if kind == "hang" else 30
    prepare, job, step = TASKS[task]
    notes = []
    for run in range(3):
        with opened(tmp_path, provider, timeout=timeout) as store:
            if not run:
                prepare(store)
            (done,) = [each for each in store.jobs.run(job)[0].steps if each.name == step]
            notes.append(done.why or "")
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    of_both = 2 if task in ("merge", "profile") else 1  # these read the same memories
    assert provider.asked_about(POISON) == KINDS[kind] * of_both
    assert provider.asked_about("tea") == of_both, "the other one is done once"
    assert "set aside until tomorrow: 1" in notes[-1]
    with opened(tmp_path, provider) as store:
        (item,) = [each for each in store.maintenance.status().set_aside if each.task == task]
        assert (f"HTTP {kind}" in item.why) == kind.isdecimal()
        assert item.until > timestamps.now()
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest
        provider.answer, provider.poison = answers, {}
        store.jobs.run(job, retry=True)
        assert [each for each in store.maintenance.status().set_aside if each.task == task] == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hang"])
def test_a_watch_goes_on_behind_what_fails(
    tmp_path: Path, provider: Provider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whom nobody waits for does not ask a provider that rests: such a text makes none rest."""
    monkeypatch.setattr("memlog.service.llm.model._WAITS", ())
    provider.answer = or_nothing if kind == "unusable" else answers
    provider.poison = {} if kind == "unusable" else {POISON: kind}
    chosen = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    rules = memlog.ExtractionRules(quiet_minutes=0)
    with memlog.open(tmp_path, language_model=chosen, extraction=rules) as store:
        store.append([said(f"{number}", POISON if number < 3 else f"tea-{number}") for number in range(9)])
        for _ in range(4):
            task = ExtractTask(store._engine, create_questions(store._engine))
            with suppress(memlog.ProviderError):  # of a run in which nothing worked
                reports = list(task.distil_and_report())
        assert [each.chat for each in reports if each.set_aside] == ["cli:0", "cli:1", "cli:2"]
        assert len(store.memories.list()) == 6
    assert provider.asked_about(POISON) == 3 * KINDS[kind]


def test_of_twenty_chats_seventeen_are_distilled_and_three_are_named(
    tmp_path: Path, provider: Provider
) -> None:
    """By the program's commands, each a process: a restart."""
    store = tmp_path / "store"
    with memlog.open(store) as opened_store:
        texts = [f"I drink {POISON if number < 3 else 'tea'}-{number}." for number in range(20)]
        opened_store.append([said(f"{number:02}", text) for number, text in enumerate(texts)])
    settings = f'[language_model]\nbase_url = "{provider.url}"\nmodel = "m"\n'
    (store / "memlog.toml").write_text(settings)
    provider.answer, provider.poison = answers, {POISON: "400"}

    def memlog_(*args: str) -> Any:
        done = run_memlog(*args, env=os.environ | {"MEMLOG_STORE": str(store)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in args else (done.stdout + done.stderr).decode()

    named = {"cli:00", "cli:01", "cli:02"}
    reports = memlog_("extract", "--json")["extractions"]
    assert {each["chat"] for each in reports if each["set_aside"]} == named
    assert sum(each["saved"] for each in reports) == 17
    shutil.rmtree(store / "cache")
    told = memlog_("extract")
    assert "3 set aside until tomorrow" in told
    assert "--retry" in told
    assert "set aside until tomorrow: 3" in memlog_("jobs", "run", "extraction")
    found = memlog_("status", "--json")["set_aside"]
    assert {each["chat"] for each in found} == named
    assert all("HTTP 400: words " in each["why"] and "filtered" not in each["why"] for each in found)
    assert all(f"extract {chat}: " in memlog_("status") for chat in named)
    assert [provider.asked_about(f"-{number}.") for number in range(20)] == [1] * 20

    provider.poison = {}
    reports = memlog_("extract", "--retry", "--json")["extractions"]
    assert {each["chat"] for each in reports if each["saved"]} == named
    assert memlog_("status", "--json")["set_aside"] == []
    assert "set aside" not in memlog_("extract")


@pytest.mark.parametrize(
    ("chats", "days"),
    [(2, 21), *(pytest.param(*each, marks=pytest.mark.deep) for each in ((10, 101), (1010, 1)))],
)
def test_many_poisoned_items_are_asked_about_once_and_hold_nothing_up(
    tmp_path: Path, provider: Provider, chats: int, days: int
) -> None:
    """A chat is asked about day by day."""
    provider.answer, provider.poison = answers, {POISON: "422"}
    poisoned = [
        msgspec.structs.replace(
            said(f"{chat:04}", f"{POISON}-{chat}-{day}."),
            ts=f"{2000 + day // 12}-{1 + day % 12:02}-01T00:00:00Z",
        )
        for chat in range(chats)
        for day in range(days)
    ]
    with opened(tmp_path, provider) as store:
        store.append([*poisoned, *(said(f"z{number}", f"tea-{number}.") for number in range(5))])
        assert sum(each.saved for each in store.extraction.run()) == 5
    for _ in range(2):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        with opened(tmp_path, provider) as store:
            asked = len(provider.requests)
            reports = store.extraction.run()
            assert [each.set_aside is not None for each in reports] == [True] * len(poisoned)
            assert len(provider.requests) == asked
    told = [body["messages"][-1]["content"] for _, body, _ in provider.requests]
    times = Counter(text for text in told if POISON in text)
    assert (len(times), {*times.values()}) == (len(poisoned), {1})


@pytest.mark.parametrize("fault", ["400", "unusable"])
def test_a_provider_that_refuses_whatever_it_is_asked_is_asked_little(
    tmp_path: Path, provider: Provider, fault: str
) -> None:
    """Such as for a model that it does not have, or an account without credit."""
    provider.answer = lambda _: "No."
    provider.always = None if fault == "unusable" else fault
    with opened(tmp_path, provider) as store:
        store.append([said(f"{number}", f"tea-{number}.") for number in range(30)])
        with pytest.raises(memlog.ProviderError):
            store.extraction.run()
        asked = len(provider.requests)
        assert asked <= 11
        with pytest.raises(memlog.ProviderError):
            store.extraction.run()
        assert len(provider.requests) == asked + 1, "it is greeted"
        provider.answer, provider.always = answers, None
        reports = store.extraction.run()
        assert sum(each.saved for each in reports) == 25
        assert sum(each.saved for each in store.extraction.run(retry=True)) == 5


def test_a_part_of_a_chat_that_takes_too_long_is_distilled_in_halves(
    tmp_path: Path, provider: Provider
) -> None:
    provider.answer, provider.poison = answers, {POISON: "hang"}
    with opened(tmp_path, provider, timeout=0.5) as store:
        store.append([said("1", word) for word in ("tea", "milk", "honey", POISON)])
        assert [each.messages for each in store.extraction.run()] == [2, 2]
        assert [each.content for each in store.extraction.buffer()[0].messages] == ["honey", POISON]
        assert [each.set_aside is None for each in store.extraction.run()] == [False]
        assert provider.asked_about(POISON) == 2


def test_another_model_is_asked_at_once_and_the_same_one_on_another_day(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.answer, provider.poison = answers, {POISON: "413"}
    with opened(tmp_path, provider) as store:
        _two_chats(store)
        store.extraction.run()
    with opened(tmp_path, provider, model="another") as store, pytest.raises(memlog.ProviderError):
        store.extraction.run()
    assert provider.asked_about(POISON) == 2
    tomorrow = timestamps.shift_timestamp(timestamps.now(), 24 * 60 * 60 * 1000)
    monkeypatch.setattr(timestamps, "now", lambda: tomorrow)
    with opened(tmp_path, provider) as store:
        assert store.maintenance.status().set_aside == []
        provider.poison = {}
        assert [each.saved for each in store.extraction.run()] == [1]


def test_what_says_that_a_chat_was_set_aside_goes_with_it(tmp_path: Path, provider: Provider) -> None:
    provider.answer, provider.poison = answers, {POISON: "400"}
    with opened(tmp_path, provider) as store:
        _two_chats(store)
        store.extraction.run()
        store.erasure.forget(chat="cli:1")
        store.erasure.scrub()
        assert store.erasure.prove("cli:1").found == []
        assert store.maintenance.status().set_aside == []
