"""No text stops a store: what is appended is found, within seconds of CPU time."""

import json
import resource
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]

SECONDS = 10
"""Of CPU time that a command may take; one is what they need. Before, these took 20 seconds to hours."""

TEXTS = {
    "a heading and spaces": "# a" + " " * 20_000 + "x",
    "dots": "tea " + "." * 80_000,
    "a list item, spaces and a backtick": "- " + " " * 40_000 + "`\n" + "tea " * 500,
    "a table's row and spaces": "| a |\n" + " " * 40_000 + "|x\n| a |\n" + "tea " * 500,
    "combining marks out of order": "tea " + "\u0315\u0316" * 100_000,
    "a fence of as many backticks as the text has lines": "`" * 200_000 + "\n" + "tea\n" * 50_000,
}


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.deep
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_of_repeats_stops_no_command(memlog: Run, text: str, without_model: dict[str, str]) -> None:
    event = ("message", "--chat", "c:1", "--role", "user", "--content", "-")
    assert memlog("append", *event, input=text.encode(), preexec_fn=limited).code == 0
    assert memlog("query", "tea", "--mode", "text", env=without_model, preexec_fn=limited).code == 0


def test_a_question_of_more_than_100_000_characters_is_answered_and_says_that_it_was_cut(
    memlog: Run, without_model: dict[str, str]
) -> None:
    memlog("append", "memory_saved", "--content", "green tea")
    asked = "tea " * 25_000
    for text, is_cut in ((asked, False), (asked + "tea", True)):
        # An argument of Linux has at most 128 KiB.
        answer = memlog("query", text, "--mode", "text", "--json", env=without_model).json
        assert [hit["content"] for hit in answer["hits"]] == ["green tea"]
        assert ("characters of the question were read" in answer["silent"].get("text", "")) == is_cut


def test_long_texts_are_counted_by_status_and_named_by_doctor(
    memlog: Run, without_model: dict[str, str]
) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message", "channel": "c", "chat_id": "1", "role": "user", "content": "tea " * 125_000},
        {
            "type": "message",
            "channel": "c",
            "chat_id": "1",
            "role": "user",
            "content": "tea " * 125_000 + "x",
        },
        {"type": "memory_saved", "title": "t" * 5_000, "content": "oolong " * 1_000},
        {"type": "memory_saved", "content": "oolong " * 1_000},
    ]
    done = memlog("append", "--json", input=b"".join(json.dumps(each).encode() + b"\n" for each in events))
    _, message, memory, _ = done.lines
    memlog("project", "--no-embed", env=without_model)
    assert memlog("status", "--json", env=without_model).json["plain_texts"] == 2
    findings = memlog("doctor", "--json", env=without_model).json["findings"]
    names, text = (each for each in findings if each["check"] == "long texts")
    for finding, position in ((text, message), (names, memory)):
        place = f"{position['stream']}/{position['segment']}:{position['offset']}"
        assert finding["state"] == "warning"
        assert finding["finding"].startswith("1 event with more than ")
        assert finding["finding"].endswith(place)
        assert finding["remedy"]


LOCALES = {
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "cp1251, strictly": {"PYTHONIOENCODING": "cp1251:strict"},
    "shift_jis": {"PYTHONIOENCODING": "shift_jis"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
CALLS: tuple[tuple[str, ...], ...] = (
    ("query", "tea", "--mode", "text"),
    ("query", "tea", "--mode", "text", "--format", "md"),
    ("query", "tea", "--mode", "text", "--json"),
    ("context", "tea"),
    ("window", "--chat", "c:1"),
    ("memory", "show", "m1"),
    ("memory", "list"),
    ("fact", "get", "city"),
    ("log", "cat"),
    ("--help",),
    ("forget", "--help"),
)


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_every_locale_prints_every_text(
    memlog: Run, environment: dict[str, str], locale: dict[str, str]
) -> None:
    event = {"channel": "c", "chat_id": "1", "role": "user", "name": "Łukasz", "content": "tea \U0001f375"}
    memory = {"type": "memory_saved", "memory_id": "m1", "content": "tea Ω", "title": "\u0f0b \ue000"}
    memlog("append", input="\n".join(map(json.dumps, ({"type": "message"} | event, memory))).encode())
    memlog("fact", "set", "city", "東京")
    # All commands write to one stream: the strictest locale sees each of them.
    for args in CALLS if locale is LOCALES["cp1251, strictly"] else CALLS[::4]:
        done = subprocess.run([MEMLOG, *args], env=environment | locale, capture_output=True, check=False)
        assert (done.returncode, b"Error" in done.stderr) == (0, False), (args, done.stderr)
        assert done.stdout, args
