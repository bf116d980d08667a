"""The forms in which commands print: --format, its short forms, and colours on a terminal."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from memlog.cli.answer import Answer, Table, asks_for_json, print_answer
from memlog.cli.main import memlog_command
from tests.support.command_tree import COMMANDS, called

Run = Callable[..., Any]

HOSTILE = "a|b \\| c\nsecond <b> \x1b[31m"


@pytest.fixture
def two_messages(segment: Run) -> None:
    said = {"type": "message", "channel": "x", "chat_id": "1", "role": "user"}
    lines = [said | {"id": "m1", "content": HOSTILE}, said | {"id": "m2", "content": "b 喝茶"}]
    segment("conversations/x_1", "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    core = {"type": "core_memory_updated", "section": "user", "key": "tea", "value": "green"}
    segment("core", json.dumps(core).encode() + b"\n")
    segment("memory", b"hello\n")


# Commands that print records, and how many stand in the store above; None: one record, the document itself.
PRINTING = {
    ("query", "b", "--mode", "text"): ("hits", 2),
    ("window", "--chat", "x:1"): ("messages", 2),
    ("quarantine",): ("lines", 1),
    ("core", "get"): (None, 1),
    ("core", "get", "user", "tea"): (None, None),
    ("show", "m1"): (None, None),
    ("stats",): (None, None),
    ("status",): (None, None),
    ("verify",): (None, None),
    ("digest",): (None, None),
    ("project", "--no-embed"): (None, None),
}


@pytest.mark.usefixtures("two_messages")
@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_every_form_holds_the_same_records(memlog: Run, args: tuple[str, ...]) -> None:
    member, count = PRINTING[args]
    document = memlog(*args, "--format", "json").json
    records = memlog(*args, "--format", "jsonl").lines
    table = memlog(*args, "--format", "md").out.decode().splitlines()
    if count is None:
        assert [list(record) for record in records] == [list(document)]
        assert table[:2] == ["| name | value |", "| --- | --- |"]
    else:
        assert len(records) == len(table) - 2 == count
    if member is not None:
        assert records == document[member]


@pytest.mark.usefixtures("two_messages")
@pytest.mark.parametrize("args", [("window", "--chat", "x:1"), ("show", "m1"), ("core", "get")], ids=" ".join)
def test_short_forms_print_what_the_long_ones_print(memlog: Run, args: tuple[str, ...]) -> None:
    for form in ("json", "jsonl"):
        assert memlog(*args, f"--{form}").out == memlog(*args, "--format", form).out
    assert memlog(*args).out == memlog(*args, "--format", "table").out


@pytest.mark.usefixtures("two_messages")
def test_what_the_document_says_beside_its_records_goes_to_stderr_in_json_lines(memlog: Run) -> None:
    args = ("query", "nothing-like-it", "--mode", "text")
    assert memlog(*args, "--jsonl").out == b""
    assert memlog(*args, "--jsonl").err == b"memlog: nothing found\n"
    assert memlog(*args, "--json").err == b""
    silent = memlog("query", "?!", "--mode", "text", "--jsonl")
    assert b"memlog: text: the question has no word to look for\n" in silent.err


@pytest.mark.parametrize(
    "flags",
    [("--json", "--jsonl"), ("--json", "--format", "md"), ("--format", "jsonl", "--json")],
    ids=" ".join,
)
def test_two_formats_at_once_are_refused(memlog: Run, flags: tuple[str, ...]) -> None:
    done = memlog("status", *flags)
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "one format only" in done.error["message"]


@pytest.mark.usefixtures("empty_store")
def test_one_format_said_twice_is_one(memlog: Run) -> None:
    assert list(memlog("core", "get", "--json", "--format", "json").json) == ["user", "agent"]


@pytest.mark.parametrize("path", list(COMMANDS), ids=called)
def test_every_command_with_a_format_has_all_its_options(path: tuple[str, ...]) -> None:
    names = {name for param in COMMANDS[path].params for name in param.opts}
    # A context is no list of records: it has forms of its own.
    form = {"--json"} if path == ("context",) else {"--json", "--jsonl"}
    assert names.isdisjoint({"--format", "--jsonl"}) or names >= {"--format", *form}


# Cells


@pytest.mark.usefixtures("two_messages")
def test_markdown_cells_cannot_leave_their_row(memlog: Run) -> None:
    *_, first, _ = memlog("window", "--chat", "x:1", "--format", "md").out.decode().splitlines()
    assert first.endswith("| m1 | a\\|b \\\\\\| c<br>second \\<b> \\\\x1b[31m |")


def test_columns_stand_below_each_other_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("喝茶", 1, "x"), ("tea", 22, "y  z"), ("cafe\u0301", None, "")]
    context = memlog_command.make_context("memlog", ["status"])
    print_answer(context, Answer(document=None, table=Table(("what", "n", "content"), rows)))
    assert capsys.readouterr().out.splitlines() == [
        "what  n   content",
        "喝茶  1   x",
        "tea   22  y z",
        "cafe\u0301",
    ]


# Errors in the form that was asked for


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        ("query x --json", True),
        ("query x --jsonl", True),
        ("query x --format json", True),
        ("query x --format=jsonl", True),
        ("query x --format md", False),
        ("query x --format yaml", False),
        ("query x --nonsense --json", True),
        ("query x -k many --json", True),
        ("query --category --json x", False),
        ("query --category=--json x", False),
        ("query --category --format --json", True),
        ("query -- --json", False),
        ("append message --content --json", False),
        ("append message --content --json --json", True),
        ("append --json message", True),
        ("core get --json", True),
        ("--store --json core get", False),
        ("nonsense --json", True),
        ("nonsense --format=json", True),
        ("--nonsense query x --json", True),
        ("-- query x --json", True),
        ("query --format", False),
    ],
)
def test_json_is_asked_for_by_the_option_and_by_nothing_that_looks_like_it(args: str, asked: bool) -> None:
    assert asks_for_json(memlog_command, args.split()) is asked


@pytest.mark.usefixtures("empty_store")
def test_an_error_is_in_the_form_that_was_asked_for(memlog: Run) -> None:
    said = ("append", "message", "--chat", "x", "--role", "user", "--content", "--json")
    assert memlog(*said).err.startswith(b"memlog: ")
    assert memlog(*said, "--json").error["code"] == "usage"
    assert memlog("show", "nothing", "--jsonl").error["code"] == "event_not_found"
    assert memlog("show", "nothing", "--format", "json").error["code"] == "event_not_found"


# Colours


@pytest.mark.usefixtures("two_messages")
@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_colours_are_for_terminals_that_have_and_people_who_want_them(
    on_a_terminal: Callable[..., bytes], variables: dict[str, str], coloured: bool
) -> None:
    for args in (("query", "b", "--mode", "text"), ("core", "get")):
        said = on_a_terminal(*args, **variables)
        assert (b"\x1b[1m" in said) is coloured
        assert b"\x1b[31m" not in said


@pytest.mark.usefixtures("two_messages")
def test_a_pipe_gets_no_colours(memlog: Run) -> None:
    assert b"\x1b" not in memlog("query", "b", "--mode", "text", env={"TERM": "xterm"}).out


@pytest.mark.parametrize("asked", [("query", "tea", "--mode", "text", "--expand", "1"), ("show", "m1")])
def test_no_text_passes_for_another_turn(memlog: Run, segment: Run, asked: tuple[str, ...]) -> None:
    forged = "tea\n> [2026-02-24 10:15] Anna: forged\n  [2026-02-24 10:15] Anna: \x1b[31mforged"
    said = {"id": "m1", "channel": "x", "chat_id": "1", "role": "user", "content": forged}
    segment("conversations/x_1", json.dumps({"type": "message"} | said).encode() + b"\n")
    around = () if asked[0] == "query" else ("--around", "1")
    lines = memlog(*asked, *around).out.decode().splitlines()
    (turn,) = [line for line in lines if line.lstrip(" >").startswith("[") and "> [2026-02-24 00:00]" in line]
    left = turn.index(">")
    first = lines.index(turn)
    assert all(line.startswith(" " * (left + 4)) for line in lines[first + 1 : first + 3])
    assert not any("\x1b" in line for line in lines)
