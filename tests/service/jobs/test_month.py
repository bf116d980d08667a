"""A month of days and weeks: daily events become memories, memories are merged, and the profile follows."""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

import memlog
from tests.service.jobs.conftest import Clock
from tests.support.month_log import MonthLog
from tests.support.places import FIXTURES
from tests.support.provider import Provider

FOLDER = FIXTURES / "sleep"
FIRST, LAST = date(2026, 1, 15), date(2026, 2, 16)
"""The last day is the Monday after the month."""
KILLS = 10
OF_A_PERSON = ("memory_id", "content", "category", "importance", "chat_id")
GIVEN = [
    ("musti", "Musti syö vain kanaa.", "other", 0.5, "telegram:elina"),
    ("swim-1", "Sofia swims on Tuesdays.", "other", 0.5, None),
    ("swim-2", "Sofia  swims on tuesdays.", "other", 0.5, None),
    ("scrap", "The lift is out of order.", "temp", 0.001, None),
]
MEMBERS = ("type", "id", "ts", "event_date", "channel", "sender_id", "summary", "section", "key", "value")


def _rows(name: str) -> dict[str, list[list[str]]]:
    """The lines of a table by the heading that they stand under."""
    found: dict[str, list[list[str]]] = {"": []}
    heading = ""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("@ "):
            heading = line.removeprefix("@ ")
            found[heading] = []
        elif line and not line.startswith("#"):
            found[heading].append(line.split("|"))
    return found


def scripted(asked: str) -> str:
    """What the model answers, by `model.txt`."""
    script, question = _rows("model.txt"), json.loads(asked)
    if "memories" in question:
        numbers = {each["text"]: each["number"] for each in question["memories"]}
        entries = [
            {"key": key, "value": value, "numbers": [numbers[text]]}
            for text, key, value in script["profile"]
            if text in numbers
        ]
        return json.dumps({"entries": entries})
    if "summary" in question[0]:
        memories = [
            {"type": kind, "content": content, "importance": float(worth)}
            for words, kind, worth, content in script["daily"]
            if any(words in each["summary"] for each in question)
        ]
        return json.dumps({"memories": memories, "summary": ""})
    numbers = {each["text"]: each["number"] for each in question}
    groups = [
        {"relation": relation, "numbers": [numbers[first], numbers[second]], "content": content}
        for relation, first, second, content in script["merge"]
        if first in numbers and second in numbers
    ]
    return json.dumps({"groups": groups})


def opened(path: Path, provider: Provider) -> memlog.Store:
    return memlog.open(
        path,
        language_model=memlog.LanguageModelProvider(base_url=provider.url, model="m"),
        jobs=memlog.JobRules(timezone="Europe/Helsinki"),
        people=memlog.People(messengers=()),  # all chats are of one person
    )


def nights(store: memlog.Store, month: MonthLog, clock: Clock) -> Iterator[str]:
    """Append what happened on each day; after it, the clock says half past four in Helsinki."""
    happened = [json.loads(line.data) for line in month.lines() if line.is_event]
    clock.now = f"{FIRST}T06:00:00.000Z"
    store.append([{"type": "memory_saved", **dict(zip(OF_A_PERSON, given, strict=True))} for given in GIVEN])
    for number in range((LAST - FIRST).days):
        day = str(FIRST + timedelta(days=number))
        clock.now = f"{day}T21:00:00.000Z"
        of_day = [
            {name: event[name] for name in MEMBERS if name in event}
            for event in happened
            if str(event["type"]).startswith(("daily_event_recorded", "core_memory"))
            and event.get("event_date", event["ts"][:10]) == day
        ]
        store.append(of_day)
        clock.now = f"{FIRST + timedelta(days=number + 1)}T02:30:00.000Z"
        yield clock.now


def check(store: memlog.Store) -> None:
    memories = [*store.memories.list(), *store.memories.list(archived=True)]
    found = sorted([each.content, each.source, "archived" if each.archived_at else ""] for each in memories)
    assert found == sorted(_rows("memories.txt")[""])
    assert sorted(map(list, store.core.get("user").items())) == sorted(_rows("profile.txt")[""])
    ran = sorted((run.job, run.period) for run in store.jobs.log())
    days = [FIRST + timedelta(days=number + 1) for number in range((LAST - FIRST).days)]
    assert ran == [
        *(("daily", str(day)) for day in days),
        *(("weekly", str(day)) for day in days if day.weekday() == 0),
    ]
    (waiting, decided) = store.memories.conflicts()
    assert (waiting.state, [each.content for each in waiting.memories]) == (
        "waiting",
        ["Musti syö vain kanaa.", "Musti syö lohta."],
    )
    assert (decided.state, decided.decided_by, [each.content for each in decided.memories]) == (
        "decided",
        "model",
        [
            "The façade of the harbour library is red brick.",
            "Red brick for the façade cannot be had before June.",
        ],
    )
    texts = [
        json.loads(event.raw).get("content") for event in store.memories.history(decided.memory_id or "")
    ]
    assert "The façade of the harbour library is red brick." in texts
    digest = store.maintenance.digest()
    store.maintenance.project(from_scratch=True)
    assert store.maintenance.digest() == digest


def test_a_month_of_jobs_leaves_the_memories_and_the_profile_of_the_fixture(
    tmp_path: Path, provider: Provider, clock: Clock, month: MonthLog
) -> None:
    provider.answer = scripted
    with opened(tmp_path, provider) as store:
        for _ in nights(store, month, clock):
            store.jobs.run()
            assert store.jobs.run() == []
        asked = len(provider.asked)
        check(store)
        assert len(provider.asked) == asked, "a replay asks no model"


PROGRAM = """
import sys, memlog
from memlog.eventlog import timestamps
from tests.service.jobs.test_month import opened
path, url, now = sys.argv[1:]
timestamps.now = lambda: now
class Provider: pass
provider = Provider()
provider.url = url
with opened(path, provider) as store:
    store.jobs.run()
"""


def _until_asked(asked_now: threading.Semaphore, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the model is asked, or nothing is left to ask."""
    for _ in range(60 * 20):
        if asked_now.acquire(timeout=0.05) or process.poll() is not None:
            return
    raise AssertionError("the model was not asked within a minute")


def test_ten_kills_leave_the_same(tmp_path: Path, provider: Provider, clock: Clock, month: MonthLog) -> None:
    """Somewhere in an answer, a look for duplicates, an append, or between two steps."""
    asked_now = threading.Semaphore(0)

    def answer(asked: str) -> str:
        asked_now.release()
        return scripted(asked)

    provider.answer = answer
    chosen = random.Random(7)
    left = KILLS
    with opened(tmp_path, provider) as store:
        for night, now in enumerate(nights(store, month, clock)):
            is_monday = date.fromisoformat(now[:10]).weekday() == 0
            for number in range(3 if is_monday else night % 5 == 1):
                if not left:
                    break
                left -= 1
                process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), provider.url, now])
                # Of a Monday, the daily events, the merge, the profile.
                for _ in range(1 + number):
                    _until_asked(asked_now, process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(chosen.uniform(0.0, 0.02))
                process.kill()
                process.wait(60)
                while asked_now.acquire(blocking=False):
                    pass
            store.jobs.run()
        assert left == 0
        check(store)
