"""`memlog context`: what it prints where, and how it goes on where something is missing."""

import json
import re
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memlog.query.context.escaping import FIRST_LINE, LAST_LINE

Run = Callable[..., Any]

LINES = [
    {"type": "core_memory_updated", "section": "user", "key": "name", "value": "Ann"},
    {"type": "memory_saved", "memory_id": "likes", "content": "likes black tea", "chat_id": "x:1"},
    {"type": "message", "id": "m1", "channel": "x", "chat_id": "1", "role": "user", "content": "green tea"},
    {"type": "message", "id": "m2", "channel": "x", "chat_id": "1", "role": "user", "content": "hello"},
]


@pytest.fixture(autouse=True)
def filled(memlog: Run, environment: dict[str, str], without_model: dict[str, str]) -> None:
    """A store with a read model; no test waits for the embedding model."""
    environment.update(without_model)
    assert memlog("append", input=b"".join(json.dumps(line).encode() + b"\n" for line in LINES)).code == 0
    assert memlog("project", "--no-embed").code == 0


def test_stdout_has_the_block_and_stderr_all_else(memlog: Run) -> None:
    done = memlog("context", "tea", "--chat", "x:1", "--explain")
    first, *lines, last = done.out.decode().splitlines()
    assert (done.code, first, last) == (0, FIRST_LINE, LAST_LINE)
    days = (re.sub(r"\d{4}-\S+ \d\d:\d\d", "TIME", line) for line in lines)
    assert [re.sub(r"\d{4}-\d\d-\d\d", "DAY", line) for line in days] == [
        "- user.name: Ann",
        "- [FACT] DAY: likes black tea [M1]",
        "- [RECENT] TIME user: green tea [M2]",
        "- [RECENT] TIME user: hello [M3]",
    ]
    said = done.err.decode()
    assert "memlog: vector: " in said
    score = r", score -?\d\.\d\d \(meaning none compared, words 1\.00\), floor -?\d\.\d\d"
    assert re.search(r"^memlog: core \S+, \d+ tokens$", said, re.MULTILINE)
    assert re.search(rf"^memlog: M1: memory likes, \d+ tokens{score}$", said, re.MULTILINE)
    assert re.search(r"^memlog: M3: window m2, \d+ tokens$", said, re.MULTILINE)


def test_explain_gives_the_score_of_what_was_left_out_too(memlog: Run) -> None:
    memlog("memory", "save", "--content", "the black kettle boils water", "--memory-id", "kettle")
    asked = partial(memlog, "context", "Which black kettle boils water?", "--explain")
    text = asked().err.decode()
    left = next(line for line in text.splitlines() if "left out: memory likes" in line)
    score = re.search(r"below the floor, score (\S+) \(.*\), floor (\S+)$", left)
    assert score, left
    explained = json.loads(asked("--json").err.splitlines()[-1])["explain"]
    (likes,) = (each for each in explained["left_out"] if each["id"] == "likes")
    assert list(likes["score"]) == [
        *("total", "floor", "meaning", "words", "multilingual", "nearer", "is_of_a_line", "is_of_time")
    ]
    assert (f"{likes['score']['total']:.2f}", f"{likes['score']['floor']:.2f}") == score.groups()
    taken = {each["id"]: each["score"] for each in explained["taken"]}
    assert taken["kettle"]["total"] > taken["kettle"]["floor"] > likes["score"]["total"]
    assert [each["score"] for each in explained["taken"] if each["part"] == "core"] == [None]


def test_json_says_on_stderr_what_explain_has(memlog: Run) -> None:
    asked = partial(memlog, "context", "tea", "--chat", "x:1", "--passages", "0", "--json", "--explain")
    whole = json.loads(asked().err.splitlines()[-1])["explain"]["tokens"]
    done = asked("--max-tokens", str(whole - 1))
    assert list(done.json) == ["entries", "silent", "synced", "answered"]
    assert list(done.json["silent"]) == ["vector"]
    memory = next(entry for entry in done.json["entries"] if entry["part"] == "memory")
    assert list(memory) == [
        *("citation", "part", "label", "memory_id", "title", "category", "content"),
        *("relevance_score", "importance", "chat", "ts", "position"),
    ]
    explained = json.loads(done.err.splitlines()[-1])["explain"]
    assert list(explained) == [
        *("tokens", "max_tokens", "frame", "counter", "scope", "scope_why", "time", "taken", "left_out")
    ]
    assert explained["tokens"] <= explained["max_tokens"] == whole - 1
    assert [each["citation"] for each in explained["taken"]] == ["", "M1", "M2"]
    assert [(each["id"], each["why"]) for each in explained["left_out"]] == [("m1", "no room")]


def test_explain_says_what_time_was_understood(memlog: Run) -> None:
    asked = partial(memlog, "context", "what did we say on 3 March 2026?", "--explain", "--timezone", "UTC")
    assert b"memlog: time 3 March 2026: from 2026-03-03 00:00 UTC to 2026-03-04 00:00\n" in asked().err
    time = json.loads(asked("--json").err.splitlines()[-1])["explain"]["time"]
    assert time == {
        "words": "3 March 2026",
        "since": "2026-03-03T00:00:00.000Z",
        "until": "2026-03-04T00:00:00.000Z",
    }


def test_a_new_chat_and_an_empty_store_are_no_error(memlog: Run, tmp_path: Path) -> None:
    done = memlog("context", "tea", "--chat", "x:2", "--json")
    assert (done.code, done.err.count(b"not_found")) == (0, 0)
    assert [entry["part"] for entry in done.json["entries"]] == ["core", "memory", "passage"]
    (tmp_path / "empty/log").mkdir(parents=True)
    empty = memlog("--store", tmp_path / "empty", "context", "tea", "--chat", "x:1")
    assert (empty.code, empty.out) == (0, b"")


def test_one_format_is_asked_for(memlog: Run) -> None:
    assert memlog("context", "tea", "--json", "--format", "json").code == 0
    assert memlog("context", "tea", "--json", "--format", "messages").code == 2
    assert memlog("context", " ").code == 2
    assert memlog("context", "--part", "turn").code == 2


def damage(store: Path) -> None:
    """Take the full text of the messages away."""
    (generation,) = store.glob("model/*.db")
    with sqlite3.connect(generation) as db:
        db.execute("DROP TABLE messages_fts")
    db.close()


def test_where_the_search_fails_core_memory_and_window_are_given(
    memlog: Run, store: Path, read_only: Run, bound_by_modes: dict[str, Any]
) -> None:
    damage(store)
    read_only()
    done = partial(memlog, **bound_by_modes)("context", "tea", "--chat", "x:1", "--json")
    assert done.code == 0
    assert [(each["part"], each["content"]) for each in done.json["entries"]] == [
        ("core", "Ann"),
        ("window", "green tea"),
        ("window", "hello"),
    ]
    assert "messages_fts" in done.json["silent"]["search"]


def test_where_nothing_can_be_appended_the_context_is_given_and_says_so(
    memlog: Run, store: Path, bound_by_modes: dict[str, Any]
) -> None:
    for segment in store.glob("log/memory/*.jsonl"):
        segment.chmod(0o400)
    done = partial(memlog, **bound_by_modes)("context", "tea", "--chat", "x:1")
    assert done.code == 0
    assert b"likes black tea" in done.out
    assert b"the context was not recorded: " in done.err


def test_entries_are_dated_and_of_one_topic_the_newer_comes_first(memlog: Run) -> None:
    for day, city in (("2026-03-02", "moved to Oulu"), ("2026-02-01", "lives in Helsinki")):
        saved = {"type": "memory_saved", "memory_id": day, "content": f"Ann {city}", "topic": "home"}
        memlog("append", input=json.dumps(saved | {"ts": f"{day}T23:30:00Z"}).encode())
    given = memlog("context", "Where is Ann", env={"MEMLOG_TIMEZONE": "Europe/Helsinki"}).out.decode()
    homes = [line.partition("] ")[2].partition(" [")[0] for line in given.splitlines() if "-0" in line]
    assert homes == [
        "2026-03-03: Ann moved to Oulu",
        "2026-02-02: Ann lives in Helsinki (a later entry may change this)",
    ]
    document = memlog("context", "Where is Ann", "--json").json
    marks = [entry.get("changed_by") for entry in document["entries"] if entry["part"] == "memory"]
    assert marks[:2] == [None, "2026-03-02"]


def test_one_person_has_one_memory_across_chats_and_two_have_two(memlog: Run) -> None:
    memlog("memory", "save", "--content", "likes peanuts", "--chat", "x:1")

    def asked(*options: str) -> tuple[bool, bytes]:
        given = memlog("context", "peanuts?", "--chat", "x:9", "--explain", "--no-record", *options)
        assert given.code == 0
        return b"likes peanuts (x:1)" in given.out, given.err

    def say(name: str) -> None:
        said = ("--chat", "x:1", "--role", "user", "--name", name, "--content", "hi")
        assert memlog("append", "message", *said).code == 0

    assert asked()[0]
    assert not asked("--no-sync")[0], "a second person may be in what was not read yet"
    say("Ann")
    assert asked()[0]
    say("Bo")
    is_told, why = asked()
    assert (is_told, b"scope chat: several people talk to the agent, such as Ann and Bo" in why) == (
        False,
        True,
    )
    asked_for = {"MEMLOG_CONTEXT_SCOPE": "store"}
    assert b"likes peanuts" in memlog("context", "peanuts?", "--chat", "x:9", env=asked_for).out


def test_a_question_to_a_document_is_answered_with_file_and_lines(memlog: Run, tmp_path: Path) -> None:
    manual = tmp_path / "manual"
    manual.mkdir()
    pages = [f"# Part {n}\n\nPart {n} of the stove has a door.\n" for n in range(30)]
    (manual / "boiler.md").write_text("# Boiler\n\nBleed the boiler at 1.5 bar.\n\n" + "\n".join(pages))
    assert memlog("docs", "add", manual, "--source", "manual").code == 0
    given = memlog("context", "At what pressure do I bleed the boiler?", "--json").json["entries"]
    documents = [entry for entry in given if entry["part"] == "document"]
    assert "Bleed the boiler at 1.5 bar." in documents[0]["content"]
    assert documents[0]["title"].startswith("manual/boiler.md:1")
    text = memlog("context", "At what pressure do I bleed the boiler?", "--chat", "x:1").out.decode()
    assert re.search(r"- \[DOCUMENT\] \d{4}-\d\d-\d\d: manual/boiler\.md:1-?\d*: .*1\.5 bar", text)
    assert "[DOCUMENT]" not in memlog("context", "boiler?", "--documents", "0").out.decode()


LONG = (
    "We talked about the weather, and it was fine. " * 200
    + "The wifi code is 4711. "
    + "It rained then. " * 200
)


@pytest.mark.parametrize("chat", ["x:1", "x:2"])
def test_a_long_paste_gives_the_sentence_that_answers(memlog: Run, chat: str) -> None:
    said = ("--chat", "x:1", "--role", "user", "--content", LONG)
    memlog("append", "message", *said)
    given = memlog("context", "What is the wifi code?", "--chat", chat, "--max-tokens", "500").out.decode()
    (line,) = (line for line in given.splitlines() if "4711" in line)
    assert "…" in line
    assert len(line) < 600
    messages = memlog("context", "wifi code?", "--chat", "x:1", "--max-tokens", "500", "--format", "messages")
    turns = [each["content"] for each in messages.json["messages"] if each["role"] != "system"]
    assert all("…" in turn or turn in ("green tea", "hello", "wifi code?") for turn in turns)
    memlog("memory", "save", "--content", f"{LONG} Ann is allergic to nuts", "--memory-id", "long")
    alone = ("--max-tokens", "200", "--passages", "0", "--limit", "1", "--exclude", "likes")
    assert b"4711" in memlog("context", "wifi code?", *alone).out
