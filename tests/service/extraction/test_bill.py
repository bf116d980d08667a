"""What a language model is sent, and what it costs, is bounded."""

import base64
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

import memlog
from memlog.query.context.token_counters import count_text_tokens
from tests.service.extraction.test_extraction import opened
from tests.support.provider import Provider
from tests.support.storm_workload import MEMLOG
from tests.support.watched import Watch, until

ROOM = 400

LONG = {
    "english": "Anna drinks tea in the morning, and coffee at noon. ",
    "russian": "Анна пьёт чай по утрам, а кофе — в обед. ",
    "chinese": "安娜早上喝茶，中午喝咖啡。",
    "japanese": "アンナは朝にお茶を飲み、昼にコーヒーを飲みます。",
    "finnish": "Anna juo aamulla teetä ja keskipäivällä kahvia. ",
    "emoji": "🍵☕",
    "quotes": '"\\"\n',
}


@pytest.mark.parametrize("name", LONG)
def test_a_request_keeps_its_budget_and_all_of_a_text_is_sent(
    tmp_path: Path, provider: Provider, name: str
) -> None:
    text = LONG[name] * (6000 // len(LONG[name]))
    with opened(tmp_path, provider, tokens=ROOM) as store:
        store.append([message("user", text), *(message("user", LONG[name]) for _ in range(50))])
        store.daily.record(text, date="2026-01-01")
        store.extraction.run()
        shown = [each for asked in provider.asked for each in json.loads(asked)]
        assert text in "".join(each["content"] for each in shown)
        store.extraction.days()
        for chat in "ab":
            store.append([message("user", f"{chat} {n} {LONG[name]}", chat=chat) for n in range(60)])
        for content in (text[:3000], *LONG.values()):
            store.memories.save(content)
        store.jobs.run("summaries")
        store.jobs.run("weekly")
    assert max(count_text_tokens(asked, "model") for asked in provider.asked) <= ROOM
    jobs = {body["messages"][0]["content"][:40] for _, body, _ in provider.requests}
    assert len(jobs) == 5  # a prompt each


DATA = base64.b64encode(random.Random(1).randbytes(60_000)).decode()
BULKY: dict[str, Callable[[], memlog.Message]] = {
    "output of a tool": lambda: message("tool", "begins " + "a line of a build\n" * 5_000 + " ends"),
    "base64": lambda: message("user", f"begins {DATA} ends"),
    "base64 in lines": lambda: message("user", "begins " + lines(DATA, "\n") + " ends"),
    "base64 in JSON": lambda: message("assistant", "begins " + lines(DATA, "\\n") + " ends"),
    "base64 in short lines": lambda: message("user", "begins " + lines(DATA, "\n", 32) + " ends"),
    "base64 that is quoted": lambda: message("user", "begins " + lines(DATA, "\n> ") + " ends"),
    "a hex dump": lambda: message(
        "user", "begins\n" + lines(DATA.encode().hex(" ")[:300_000], "\n00000010  ", 48) + "\nends"
    ),
    "numbers": lambda: message("user", f"begins {[number % 256 for number in range(20_000)]} ends"),
    "a fence": lambda: message("assistant", "```\nbegins\n" + "a line of a build\n" * 5_000 + "ends\n```"),
    "an address with data": lambda: message("user", f"begins data:image/png;base64,{DATA} ends"),
    "hexadecimal": lambda: message("user", "begins " + lines(DATA.encode().hex(), "\n") + " ends"),
}


@pytest.mark.parametrize("name", BULKY)
def test_what_tells_nothing_of_people_is_cut(tmp_path: Path, provider: Provider, name: str) -> None:
    with opened(tmp_path, provider) as store:
        store.append([BULKY[name](), message("user", "My cat is called Miso.")])
        store.extraction.run()
    (asked,) = provider.asked
    assert all(part in asked for part in ("begins", "ends", "left out", "Miso"))


def test_a_dry_run_tells_what_a_run_sends(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider, tokens=ROOM) as store:
        for chat in "ab":
            store.append([message("user", LONG["russian"], chat=chat) for _ in range(60)])
        plan = store.extraction.run(dry_run=True)
        assert provider.asked == []
        done = store.extraction.run()
    assert sum(each.messages for each in plan) == sum(each.messages for each in done) == 120
    assert sum(each.requests for each in plan) == sum(each.requests for each in done) == len(provider.asked)
    sent = sum(
        count_text_tokens(each["content"], "model")
        for _, body, _ in provider.requests
        for each in body["messages"]
    )
    assert sum(each.tokens_in for each in plan) == pytest.approx(sent, rel=0.05)


def test_a_watch_says_a_line_for_each_request(tmp_path: Path, provider: Provider) -> None:
    with memlog.open(tmp_path) as store:
        for chat in ("1", "2", "3"):
            store.append([message("user", "I live in Turku", chat=chat, ts="2026-01-14T12:00:00Z")])
    sections = f'[embedding]\nenabled = false\n[language_model]\nbase_url = "{provider.url}"\n'
    (tmp_path / "memlog.toml").write_text(sections)
    with closing(Watch(tmp_path)) as watch:
        until(lambda: len([note for note in watch.notes() if "distilled 1 of cli:" in note]) == 3)


def message(role: str, content: str, chat: str = "1", ts: str | None = None) -> memlog.Message:
    return memlog.Message(channel="cli", chat_id=chat, role=role, content=content, ts=ts)  # type: ignore[arg-type]


def lines(text: str, between: str, width: int = 76) -> str:
    return between.join(text[start : start + width] for start in range(0, len(text), width))


def test_the_tokens_of_a_day_bound_a_history(tmp_path: Path, provider: Provider) -> None:
    rules = {"tokens": ROOM, "max_tokens_per_day": 2500}
    with opened(tmp_path, provider, **rules) as store:
        for chat in "abcdefghij":
            store.append([message("user", LONG["finnish"] * 20, chat=chat)])
        *done, rest = store.extraction.run()
        assert rest.messages == 10 - len(done) > 0
        assert "max_tokens_per_day" in str(rest.set_aside)
        assert sum(each.tokens_in + each.tokens_out for each in done) <= 2500
    shutil.rmtree(tmp_path / "cache")
    asked = len(provider.asked)
    with opened(tmp_path, provider, **rules) as store:
        assert [each.messages for each in store.extraction.run()] == [rest.messages]
        weekly = {step.name: step.outcome for step in store.jobs.run("weekly")[0].steps}
        assert (weekly["duplicates"], weekly["merge"], weekly["profile"]) == ("done", "skipped", "skipped")
        assert len(provider.asked) == asked
        assert len(store.extraction.run(unbounded=True)) == rest.messages


def test_an_answer_without_a_text_was_paid_for(tmp_path: Path, provider: Provider) -> None:
    provider.reply = lambda _, answer: (
        answer
        | {
            "choices": [{"message": {"content": ""}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 450, "completion_tokens": 4000},
        }
    )
    with opened(tmp_path, provider, max_tokens_per_day=30_000) as store:
        store.append([message("user", "I live in Turku", chat=str(n)) for n in range(20)])
        with suppress(memlog.ProviderError):
            store.extraction.run()
    assert len(provider.asked) * 4450 <= 30_000


def test_the_first_run_over_a_history_asks_on_a_terminal(tmp_path: Path, provider: Provider) -> None:
    with memlog.open(tmp_path) as store:
        for chat in "ab":
            store.append([message("user", "I live in Turku", chat=chat)])
    (tmp_path / "memlog.toml").write_text(f'[language_model]\nbase_url = "{provider.url}"\n')

    def answered(words: bytes) -> str:
        ours, its = os.openpty()
        command = [MEMLOG, "--store", tmp_path, "extract"]
        process = subprocess.Popen(command, stdin=its, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.close(its)
        os.write(ours, words)
        _, errors = process.communicate(timeout=60)
        os.close(ours)
        return errors.decode()

    assert "2 messages, 2 requests" in answered(b"n\n")
    assert provider.asked == []
    assert "2 messages, 2 requests" in answered(b"y\n")
    assert len(provider.asked) == 2


def test_the_doctor_names_a_language_model_that_refuses_its_key(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider) as store:
        store.append([message("user", "I live in Turku")])
        provider.always = "echo"
        (found,) = [each for each in store.maintenance.examine() if each.check == "language model"]
    assert found.state == "warning"
    assert "HTTP 401" in found.finding
    assert "api_key" in found.remedy
