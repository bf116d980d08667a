"""memlog memory: what its commands add to the operations, and what they print."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
HOSTILE = "tea \x1b[31mred\x1b]0;title\x07 \x9b31m \x7f \u202ereversed\u2066\n\x1b[2Jsecond line"


@pytest.fixture
def save(memlog: Run) -> Callable[..., str]:
    """Saves a memory and returns its id."""

    def run(content: str, *options: str) -> str:
        memory_id: str = memlog("memory", "save", "--content", content, *options).json["memory_id"]
        return memory_id

    return run


def test_a_content_can_come_from_stdin(memlog: Run) -> None:
    given = ("--content", "-", "--tag", "a")
    memory_id = memlog("memory", "save", *given, input="grüner Tee\n\n第二行\n".encode()).json["memory_id"]
    found = memlog("memory", "show", memory_id, "--json").json
    assert (found["content"], found["tags"]) == ("grüner Tee\n\n第二行", ["a"])
    memlog("memory", "update", memory_id, "--content", "-", "--no-tags", input=b"black tea\n")
    found = memlog("memory", "show", memory_id, "--json").json
    assert (found["content"], found["tags"]) == ("black tea", [])


def test_a_save_that_looks_for_no_duplicates_makes_no_read_model(memlog: Run, store: Path, save: Run) -> None:
    save("tea", "--no-dedup")
    save("tea", "--memory-id", "m", "--topic", "drinks", "--tag", "a")
    assert not (store / "model").exists()
    found = memlog("memory", "show", "m", "--json").json
    assert (found["topic"], found["tags"]) == ("drinks", ["a"])


def test_a_list_for_people_has_the_text_first_and_the_id_last(
    memlog: Run, save: Run, on_a_terminal: Callable[..., bytes]
) -> None:
    long = "green tea " * 12
    save(long, "--memory-id", "tea", "--chat", "telegram:7", "--ts", "2026-02-24T10:15:00Z")
    about = "    other  telegram:7  salience 1.000  2026-02-24  tea"
    assert memlog("memory", "list").out.decode().splitlines() == [long.strip(), about]
    told = on_a_terminal("memory", "list", COLUMNS="80", TERM="dumb").decode().splitlines()
    assert told == ["green tea " * 7 + "green tea", ("green tea " * 4).strip(), about]
    assert "| 1.000 |" in memlog("memory", "list", "--format", "md").out.decode()


def test_tags_are_given_or_taken_away(memlog: Run) -> None:
    memlog("init")
    done = memlog("memory", "update", "m", "--json", "--tag", "a", "--no-tags")
    assert (done.code, done.error["code"]) == (2, "usage")


def test_a_history_shows_each_event_and_its_line(memlog: Run, save: Run, store: Path) -> None:
    save("green tea", "--memory-id", "m")
    memlog("memory", "update", "m", "--content", "black tea")
    memlog("memory", "delete", "m")
    document = memlog("memory", "history", "m", "--json").json
    assert list(document) == ["memory_id", "events"]
    (segment,) = (store / "log/memory").iterdir()
    lines = segment.read_text().splitlines()
    assert [event["raw"] for event in document["events"]] == lines
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
