"""memlog memory: every command as a process, and what it prints."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]

POSITION = ["id", "stream", "segment", "offset", "durability"]
OF_MEMORY = [*POSITION, "memory_id"]
MEMORY = [
    *("memory_id", "title", "content", "category", "kind", "importance", "salience", "age_days"),
    *(
        "freshness",
        "relevance",
        "access_count",
        "last_accessed",
        "source",
        "topic",
        "chat",
        "tags",
        "created_at",
        "updated_at",
        "archived_at",
    ),
    *("event_id", "position"),
]
HOSTILE = "tea \x1b[31mred\x1b]0;title\x07 \x9b31m \x7f \u202ereversed\u2066\n\x1b[2Jsecond line"


@pytest.fixture
def save(memlog: Run) -> Callable[..., str]:
    """Saves a memory and returns its id."""

    def run(content: str, *options: str) -> str:
        memory_id: str = memlog("memory", "save", "--content", content, *options).json["memory_id"]
        return memory_id

    return run


def listed(memlog: Run, *options: str) -> list[str]:
    return [each["memory_id"] for each in memlog("memory", "list", "--json", *options).json["memories"]]


# Saving


def test_a_save_says_what_became_of_it(memlog: Run) -> None:
    done = memlog("memory", "save", "--content", "Anna drinks green tea", "--memory-id", "tea")
    assert (done.code, done.err) == (0, b"")
    assert list(done.json) == ["memory_id", "event_id", "decision", "position"]
    assert list(done.json["position"]) == OF_MEMORY
    assert (done.json["memory_id"], done.json["decision"]) == ("tea", "saved")
    assert done.json["event_id"] == done.json["position"]["id"]
    assert done.json["position"]["stream"] == "memory"


def test_a_saved_memory_has_all_that_was_given(memlog: Run) -> None:
    memlog(
        *("memory", "save", "--content", "Anna drinks green tea", "--title", "Tea", "--chat", "telegram:7"),
        *("--category", "identity", "--kind", "preference", "--importance", "0.7", "--topic", "drinks"),
        *("--source", "conversation", "--tag", "tea", "--tag", "food", "--memory-id", "m", "--id", "e1"),
        *("--ts", "2026-02-24T10:15:00Z", "--json"),
    )
    found = memlog("memory", "show", "m", "--json").json
    assert list(found) == MEMORY
    assert found == {
        "memory_id": "m",
        "title": "Tea",
        "content": "Anna drinks green tea",
        "category": "identity",
        "kind": "preference",
        "importance": 0.7,
        "salience": 1.0,
        "age_days": found["age_days"],
        "freshness": found["freshness"],
        "relevance": found["relevance"],
        "access_count": 0,
        "last_accessed": None,
        "source": "conversation",
        "topic": "drinks",
        "chat": "telegram:7",
        "tags": ["tea", "food"],
        "created_at": "2026-02-24T10:15:00.000Z",
        "updated_at": "2026-02-24T10:15:00.000Z",
        "archived_at": None,
        "event_id": "e1",
        "position": found["position"],
    }
    assert list(found["position"]) == ["stream", "segment", "offset", "line"]


def test_a_content_can_come_from_stdin(memlog: Run) -> None:
    done = memlog("memory", "save", "--content", "-", input="grüner Tee\n\n第二行\n".encode())
    found = memlog("memory", "show", done.json["memory_id"], "--json").json
    assert found["content"] == "grüner Tee\n\n第二行"


def test_one_text_saved_twice_is_one_memory(memlog: Run, save: Run) -> None:
    assert save("Anna drinks green tea") == save(" anna DRINKS  green tea")
    assert save("Anna drinks green tea", "--chat", "x:1") != save("Anna drinks green tea")
    assert len(listed(memlog)) == 2


def test_a_save_says_what_was_decided_and_of_which_memory(memlog: Run, save: Run) -> None:
    first = save("Anna drinks green tea before work", "--chat", "x:1", "--importance", "0.7")
    decisions = []
    for content, *options in (
        ("anna drinks green tea before work",),
        ("Anna drinks hot green tea before work", "--tag", "tea"),
        ("Anna never drinks green tea before work",),
        ("Anna drinks hot green tea before work", "--no-dedup"),
    ):
        done = memlog("memory", "save", "--content", content, "--chat", "x:1", *options)
        assert list(done.json) == ["memory_id", "event_id", "decision", "position"]
        decisions.append((done.json["memory_id"] == first, done.json["decision"]))
    merged = f"merged into {first}"
    assert decisions == [(True, "already known"), (True, merged), (False, "saved"), (False, "saved")]
    found = memlog("memory", "show", first, "--json").json
    assert (found["content"], found["importance"]) == ("Anna drinks hot green tea before work", 0.8)
    assert (found["tags"], found["access_count"]) == (["tea"], 1)


def test_another_chat_is_looked_at_where_it_is_asked_for(memlog: Run, save: Run) -> None:
    first = save("Anna drinks green tea", "--chat", "x:1")
    assert save("Anna drinks green tea", "--chat", "x:2", "--any-chat") == first
    assert save("Anna drinks green tea", "--chat", "x:2") != first


@pytest.mark.parametrize("more", [("--no-dedup",), ("--memory-id", "m")], ids=" ".join)
def test_any_chat_is_wrong_usage_where_no_duplicate_is_looked_for(memlog: Run, more: tuple[str, ...]) -> None:
    done = memlog("memory", "save", "--content", "tea", "--any-chat", "--json", *more)
    assert (done.code, done.error["code"]) == (2, "usage")


def test_a_save_that_looks_for_no_duplicates_makes_no_read_model(store: Path, save: Run) -> None:
    save("tea", "--no-dedup")
    save("tea", "--memory-id", "m")
    assert not (store / "model").exists()


def test_what_cannot_be_saved_is_refused(memlog_here: Run, store: Path) -> None:
    for options, code in (
        ((), 2),
        (("--content", ""), 65),
        (("--content", "tea", "--importance", "2"), 2),
        (("--content", "tea", "--kind", "opinion"), 2),
        (("--content", "tea", "--chat", "telegram"), 2),
        (("--content", "tea", "--memory-id", ""), 65),
        (("--content", "tea", "--ts", "yesterday"), 65),
    ):
        done = memlog_here("memory", "save", "--json", *options)
        assert done.code == code, options
        assert done.error["hint"], options
        assert not (store / "log").exists(), options


def test_a_content_that_is_not_utf_8_is_refused(memlog: Run) -> None:
    done = memlog("memory", "save", "--content", "-", "--json", input=b"caf\xe9")
    assert (done.code, done.error["code"]) == (65, "bad_input")


# Listing


def test_a_list_is_ordered_by_salience_then_by_change(memlog: Run, save: Run) -> None:
    for name, day in (("old", 1), ("new", 2), ("faded", 3)):
        save(name, "--memory-id", name, "--ts", f"2026-02-0{day}T08:00:00Z")
    memlog("memory", "update", "faded", "--salience", "0.25", "--title", "faded")
    assert listed(memlog) == ["new", "old", "faded"]
    assert listed(memlog, "--limit", "1") == ["new"]
    assert listed(memlog, "--min-salience", "0.5") == ["new", "old"]


def test_a_list_has_what_is_asked_for(memlog: Run, save: Run) -> None:
    save("a", "--memory-id", "a", "--category", "identity", "--chat", "x:1", "--tag", "tea", "--tag", "food")
    save("b", "--memory-id", "b", "--kind", "insight", "--chat", "x:1", "--topic", "drinks")
    save("c", "--memory-id", "c", "--topic", "drinks", "--tag", "tea")
    save("z", "--memory-id", "z")
    memlog("memory", "archive", "z")
    expected: dict[tuple[str, ...], set[str]] = {
        (): {"a", "b", "c"},
        ("--category", "identity"): {"a"},
        ("--kind", "insight"): {"b"},
        ("--chat", "x:1"): {"a", "b"},
        ("--topic", "drinks"): {"b", "c"},
        ("--tag", "tea"): {"a", "c"},
        ("--archived",): {"z"},
    }
    assert {options: set(listed(memlog, *options)) for options in expected} == expected


def test_a_list_for_people_shows_salience_and_age_apart_with_counts_times_and_importance(
    memlog: Run, save: Run
) -> None:
    save("green tea", "--memory-id", "tea", "--importance", "0.7", "--ts", "2026-02-24T10:15:00Z")
    memlog("memory", "touch", "tea")
    (head, row) = memlog("memory", "list").out.decode().splitlines()
    assert head.split()[:4] == ["salience", "freshness", "importance", "relevance"]
    assert re.fullmatch(
        r"1\.000 +\d\.\d{3} +0\.70 +\d\.\d{3} +other +1 +\d{4}-\d\d-\d\d \d\d:\d\d UTC +2026-02-24 10:15"
        r" +tea +green tea",
        row,
    )


@pytest.mark.usefixtures("empty_store")
def test_a_store_without_memories_says_so(memlog: Run) -> None:
    assert memlog("memory", "list", "--json").json == {"memories": []}
    done = memlog("memory", "list")
    assert (done.code, done.out) == (0, b"")
    assert b"memlog: no memories" in done.err


# Changing


def test_an_update_changes_what_is_given_and_nothing_else(memlog: Run, save: Run) -> None:
    save("green tea", "--memory-id", "m", "--title", "Tea", "--topic", "drinks", "--tag", "a")
    before = memlog("memory", "show", "m", "--json").json
    done = memlog("memory", "update", "m", "--importance", "0.9", "--topic", "", "--no-tags", "--chat", "x:1")
    assert list(done.json) == OF_MEMORY
    after = memlog("memory", "show", "m", "--json").json
    changed = {"importance": 0.9, "relevance": 0.9, "topic": None, "tags": [], "chat": "x:1"}
    assert after == before | changed | {"updated_at": after["updated_at"]}


def test_the_content_of_an_update_can_come_from_stdin(memlog: Run, save: Run) -> None:
    save("green tea", "--memory-id", "m")
    memlog("memory", "update", "m", "--content", "-", input=b"black tea\n")
    found = memlog("memory", "show", "m", "--json").json
    assert (found["content"], found["title"]) == ("black tea", "black tea")


def test_an_update_that_says_nothing_is_refused(memlog: Run, save: Run) -> None:
    save("green tea", "--memory-id", "m")
    for options in ((), ("--id", "e1", "--ts", "2026-02-24T10:15:00Z")):
        done = memlog("memory", "update", "m", "--json", *options)
        assert (done.code, done.error["code"]) == (65, "bad_input"), options
    done = memlog("memory", "update", "m", "--json", "--tag", "a", "--no-tags")
    assert (done.code, done.error["code"]) == (2, "usage")


def test_an_archived_memory_is_not_found_and_a_save_revives_it(memlog: Run, save: Run) -> None:
    save("green tea", "--memory-id", "m", "--ts", "2026-02-24T10:15:00Z")
    assert list(memlog("memory", "archive", "m").json) == OF_MEMORY
    assert memlog("query", "tea", "--mode", "text", "--json").json["hits"] == []
    assert listed(memlog, "--archived") == ["m"]
    save("green tea", "--memory-id", "m")
    (hit,) = memlog("query", "tea", "--mode", "text", "--json").json["hits"]
    assert hit["id"] == "m"
    assert memlog("memory", "show", "m", "--json").json["created_at"] == "2026-02-24T10:15:00.000Z"


def test_a_deletion_asks_nothing_and_a_save_begins_anew(memlog: Run, save: Run) -> None:
    save("green tea", "--memory-id", "m", "--ts", "2026-02-24T10:15:00Z")
    done = memlog("memory", "delete", "m")
    assert list(done.json) == OF_MEMORY
    assert memlog("memory", "show", "m", "--json").error["code"] == "memory_not_found"
    save("green tea", "--memory-id", "m", "--ts", "2030-01-01T00:00:00Z")
    assert memlog("memory", "show", "m", "--json").json["created_at"] == "2030-01-01T00:00:00.000Z"


def test_a_touch_counts(memlog: Run, save: Run) -> None:
    for name in ("a", "b"):
        save(name, "--memory-id", name)
    assert list(memlog("memory", "touch", "a", "b").json) == POSITION
    memlog("memory", "touch", "a", "--json")
    counts = {each["memory_id"]: each["access_count"] for each in memlog("memory", "list", "--jsonl").lines}
    assert counts == {"a": 2, "b": 1}


def test_an_unknown_memory_is_named(memlog: Run, save: Run) -> None:
    save("tea", "--memory-id", "m")
    for args in (
        ("show", "x"),
        ("history", "x"),
        ("update", "x", "--content", "tea"),
        ("archive", "x"),
        ("delete", "x"),
        ("touch", "m", "x", "y"),
    ):
        done = memlog("memory", *args, "--json")
        assert (done.code, done.error["code"]) == (1, "memory_not_found"), args
        assert done.error["retryable"] is False, args
        assert done.error["message"] == ("no memory 'x', 'y'" if "touch" in args else "no memory 'x'")
        assert done.error["hint"] == "memlog memory list", args
    assert len(memlog("memory", "history", "m", "--json").json["events"]) == 1


def test_of_two_processes_that_update_one_memory_at_once_the_later_wins(
    memlog: Run, save: Run, environment: dict[str, str]
) -> None:
    save("tea", "--memory-id", "m")
    updates = [
        subprocess.Popen(
            [MEMLOG, "memory", "update", "m", "--content", f"tea {number}"],
            env=environment,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    answers = [json.loads(update.communicate(timeout=60)[0]) for update in updates]
    assert [update.returncode for update in updates] == [0] * 4
    *_, last = events = memlog("memory", "history", "m", "--json").json["events"]
    assert {event["id"] for event in events[1:]} == {answer["id"] for answer in answers}
    found = memlog("memory", "show", "m", "--json").json
    assert found["event_id"] == last["id"]
    assert found["content"] == json.loads(last["raw"])["content"]


# What a person sees


def test_a_history_shows_each_event_and_its_line(memlog: Run, save: Run, store: Path) -> None:
    save("green tea", "--memory-id", "m")
    memlog("memory", "update", "m", "--content", "black tea")
    memlog("memory", "delete", "m")
    document = memlog("memory", "history", "m", "--json").json
    assert list(document) == ["memory_id", "events"]
    assert list(document["events"][0]) == ["id", "type", "ts", "at", "raw", "position"]
    (segment,) = (store / "log/memory").iterdir()
    lines = segment.read_text().splitlines()
    assert [event["raw"] for event in document["events"]] == lines
    assert memlog("memory", "history", "m", "--jsonl").lines == document["events"]
    text = memlog("memory", "history", "m").out.decode().splitlines()
    assert [line.split()[-1] for line in text[::3]] == ["memory_saved", "memory_updated", "memory_deleted"]
    assert [line.removeprefix("    ") for line in text[2::3]] == lines


def test_what_would_drive_a_terminal_is_escaped(memlog: Run) -> None:
    hostile = ("--title", HOSTILE, "--category", HOSTILE, "--topic", HOSTILE, "--source", HOSTILE)
    # A log may hold any category; `memory save` does not.
    memlog("append", "memory_saved", "--memory-id", "m", "--content", HOSTILE, "--tag", HOSTILE, *hostile)
    for args in (("list",), ("list", "--format", "md"), ("show", "m"), ("history", "m")):
        done = memlog("memory", *args)
        assert done.code == 0, args
        controls = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
        assert re.search(controls, done.out.decode()) is None, args
        assert re.search(rb"\\(x|u00)1b", done.out), args


def test_no_line_of_a_content_can_pass_for_one_of_memlogs(memlog: Run, save: Run) -> None:
    save("green tea\n\nsalience       1.0", "--memory-id", "m")
    head, _, content = memlog("memory", "show", "m").out.decode().partition("\n\n")
    assert head.startswith("memory id      m\n")
    assert content == "    green tea\n\n    salience       1.0\n"


def test_a_memory_is_got_as_it_is_shown(memlog: Run) -> None:
    memlog("append", "memory_saved", "--memory-id", "m1", "--content", "green tea")
    for options in ((), ("--json",), ("--format", "md")):
        got, shown = (memlog("memory", name, "m1", *options) for name in ("get", "show"))
        assert (got.code, got.out) == (0, shown.out)
    got, shown = (memlog("memory", name, "none") for name in ("get", "show"))
    assert (got.code, got.out, got.err) == (1, b"", shown.err)
    assert b"Usage: memlog memory get [OPTIONS] ID" in memlog("memory", "get", "--help").out
