"""The forms in which commands print: --format, its short forms, and colours on a terminal."""

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.output.answer import Answer, Table
from memlog.cli.process.main import memlog_command
from tests.support.command_tree import COMMANDS, called
from tests.support.sample_calls import BY_OPERATION, CALLED, PROJECTS, arguments_of, without_times

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


# `core get` prints a row for each key of a section.
PRINTING = [
    path
    for path, each in BY_OPERATION.items()
    if each.effect == "read" and path != ("core", "get") and each.name not in PROJECTS
    if any("--format" in option.opts for option in CALLED[path].params)
]


@pytest.mark.usefixtures("filled", "two_messages")
def test_every_form_holds_the_same_records(memlog_here: Run, tmp_path: Path) -> None:
    for path in PRINTING:
        call = (*path, *arguments_of(path, tmp_path))
        document = memlog_here(*call, "--format", "json").json
        records = memlog_here(*call, "--format", "jsonl").lines
        table = memlog_here(*call, "--format", "md").out.decode().splitlines()
        if [list(record) for record in records] == [list(document)]:
            rows = document.get("facts", table[2:])
            assert table[0] == "| name | value |" or "facts" in document, path
        else:
            rows = records
            assert without_times(records) in map(without_times, document.values()), path
        assert table[1].startswith("| ---"), path
        assert len(table) - 2 == len(rows), path
        names, *shown = ([cell.strip() for cell in row.split("|")[1:-1]] for row in (table[0], *table[2:]))
        if rows is records:
            for cells, record in zip(shown, records, strict=True):
                given = dict(zip(names, cells, strict=False))
                numbers = {name: each for name, each in record.items() if isinstance(each, float)}
                wrong = {
                    name
                    for name, each in numbers.items()
                    if name in given and float(given[name]) != round(each, 3)
                }
                assert wrong == set(), path


@pytest.mark.usefixtures("two_messages")
def test_short_forms_print_what_the_long_ones_print(memlog_here: Run) -> None:
    for args in (("window", "--chat", "x:1"), ("show", "m1"), ("core", "get")):
        for form in ("json", "jsonl"):
            assert memlog_here(*args, f"--{form}").out == memlog_here(*args, "--format", form).out, args
        assert memlog_here(*args).out == memlog_here(*args, "--format", "table").out, args


@pytest.mark.usefixtures("two_messages")
def test_what_the_document_says_beside_its_records_goes_to_stderr_in_json_lines(memlog: Run) -> None:
    args = ("query", "nothing-like-it", "--mode", "text")
    assert memlog(*args, "--jsonl").out == b""
    assert memlog(*args, "--jsonl").err == b"memlog: nothing found\n"
    assert memlog(*args, "--json").err == b""
    silent = memlog("query", "?!", "--mode", "text", "--jsonl")
    assert b"memlog: text: the question has no words to search for\n" in silent.err


def test_two_formats_at_once_are_refused(memlog_here: Run) -> None:
    for flags in (("--json", "--jsonl"), ("--json", "--format", "md"), ("--format", "jsonl", "--json")):
        done = memlog_here("status", *flags)
        assert (done.code, done.error["code"]) == (2, "usage"), flags
        assert "cannot be combined with" in done.error["message"], flags


@pytest.mark.usefixtures("empty_store")
def test_one_format_said_twice_is_one(memlog: Run) -> None:
    assert list(memlog("core", "get", "--json", "--format", "json").json) == ["user", "agent"]


def test_every_command_with_a_format_has_all_its_options() -> None:
    for path, command in COMMANDS.items():
        names = {name for param in command.params for name in param.opts}
        # A context is no list of records: it has forms of its own.
        form = {"--json"} if path == ("context",) else {"--json", "--jsonl"}
        assert names.isdisjoint({"--format", "--jsonl"}) or names >= {"--format", *form}, called(path)


# Cells


@pytest.mark.usefixtures("two_messages")
def test_markdown_cells_cannot_leave_their_row(memlog: Run) -> None:
    *_, first, _ = memlog("window", "--chat", "x:1", "--format", "md").out.decode().splitlines()
    assert first.endswith("| m1 | a\\|b \\\\\\| c<br>second \\<b> \\\\x1b[31m |")


def test_columns_stand_below_each_other_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("喝茶", 1, "x"), ("tea", 22, "y  z"), ("cafe\u0301", None, "")]
    context = memlog_command.make_context("memlog", ["status"])
    Answer(document=None, table=Table(("what", "n", "content"), rows)).print(context)
    assert capsys.readouterr().out.splitlines() == [
        "what  n   content",
        "喝茶  1   x",
        "tea   22  y z",
        "cafe\u0301",
    ]


LONG = "green tea and 喝茶 and trains that run late in the evening; " * 3


def test_a_table_fits_into_the_terminal_and_loses_no_word(
    memlog: Run, on_a_terminal: Callable[..., bytes]
) -> None:
    memlog("core", "set", "user", "evening", LONG)
    told: list[tuple[dict[str, Any], int]] = [
        ({"COLUMNS": "70"}, 70),
        ({"width": 90}, 90),
        ({"width": 90, "COLUMNS": "70"}, 70),
        ({"width": 90, "COLUMNS": "wide"}, 90),
        ({}, 80),
    ]
    for options, width in told:
        said = on_a_terminal("core", "get", TERM="dumb", **options).decode()
        assert max(map(_shown_width, said.splitlines())) <= width, options
        assert len(said.splitlines()) > 2, options
        assert said.split() == ["section", "key", "value", "user", "evening", *LONG.split()], options


def _shown_width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) == "W" else 1 for character in line)


def test_a_table_in_a_pipe_has_a_line_a_row(memlog: Run) -> None:
    memlog("core", "set", "user", "evening", LONG)
    assert len(memlog("core", "get", env={"COLUMNS": "70"}).out.splitlines()) == 2


def test_an_id_is_never_folded(memlog: Run, on_a_terminal: Callable[..., bytes]) -> None:
    long_id = "daily-event-of-a-long-name-" * 2
    memlog("daily", "record", "--summary", LONG, "--id", long_id)
    assert long_id in on_a_terminal("daily", "list", COLUMNS="60").decode()


# Errors in the form that was asked for


IS_JSON = {
    "query x --json": True,
    "query x --jsonl": True,
    "query x --format json": True,
    "query x --format=jsonl": True,
    "query x --format md": False,
    "query x --format yaml": False,
    "query x --nonsense --json": True,
    "query x -k many --json": True,
    "query --category --json x": False,
    "query --category=--json x": False,
    "query --category --format --json": True,
    "query -- --json": False,
    "append message --content --json": False,
    "append message --content --json --json": True,
    "append --json message": True,
    "append message --nonsense --format json": True,
    "core get --json": True,
    "context x --json": True,
    "--store --json core get": False,
    "nonsense --json": True,
    "nonsense --format=json": True,
    "--nonsense query x --json": True,
    "-- query x --json": True,
    "query --format": False,
}


def test_an_error_is_json_where_json_is_asked_for(memlog_here: Run) -> None:
    """Read as the command reads it; where the command line cannot be read, by its words."""
    for args, asked in IS_JSON.items():
        done = memlog_here(*args.split())
        assert done.code, args
        assert done.err.startswith(b'{"error":' if asked else b"memlog: "), args


@pytest.mark.usefixtures("empty_store")
def test_an_error_is_in_the_form_that_was_asked_for(memlog: Run) -> None:
    said = ("append", "message", "--chat", "x", "--role", "user", "--content", "--json")
    assert memlog(*said).err.startswith(b"memlog: ")
    assert memlog(*said, "--json").error["code"] == "usage"
    assert memlog("show", "nothing", "--jsonl").error["code"] == "event_not_found"
    assert memlog("show", "nothing", "--format", "json").error["code"] == "event_not_found"


# Colours


@pytest.mark.usefixtures("two_messages")
def test_colours_are_for_terminals_that_have_and_people_who_want_them(
    on_a_terminal: Callable[..., bytes],
) -> None:
    for variables, coloured in (
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ):
        said = on_a_terminal("core", "get", **variables)
        assert (b"\x1b[1m" in said) is coloured, variables
    assert b"\x1b[31m" not in on_a_terminal("query", "b", "--mode", "text", TERM="xterm")


@pytest.mark.usefixtures("two_messages")
def test_a_pipe_gets_no_colours(memlog: Run) -> None:
    assert b"\x1b" not in memlog("query", "b", "--mode", "text", env={"TERM": "xterm"}).out


@pytest.mark.usefixtures("two_messages")
def test_a_pipe_gets_colours_where_they_are_forced(memlog: Run) -> None:
    query = ("query", "b", "--mode", "text")
    assert b"\x1b[1m" in memlog(*query, env={"FORCE_COLOR": "1"}).out
    assert b"\x1b" not in memlog(*query, env={"FORCE_COLOR": ""}).out
    assert b"\x1b" not in memlog(*query, "--json", env={"FORCE_COLOR": "1"}).out


def test_matches_are_highlighted_on_a_terminal_and_nowhere_else(
    memlog: Run, on_a_terminal: Callable[..., bytes]
) -> None:
    memlog("append", "message", "--chat", "x:1", "--role", "user", "--content", "喝绿茶: Teas, not technical")
    query = ("query", "tea 绿茶", "--mode", "text")
    shown = on_a_terminal(*query, TERM="xterm").decode()
    marked = re.findall("\x1b\\[33m\x1b\\[1m(.*?)\x1b\\[0m", shown)
    assert marked == ["绿茶", "Teas"]
    assert b"\x1b" not in memlog(*query).out
    (hit,) = memlog(*query, "--json", env={"FORCE_COLOR": "1"}).json["hits"]
    assert hit["snippet"] == "喝绿茶: Teas, not technical"
    assert b"\x1b[33m" not in on_a_terminal("query", "tea", "--mode", "vector", TERM="xterm")


def test_no_text_passes_for_another_turn(memlog: Run, segment: Run) -> None:
    forged = "tea\n> [2026-02-24 10:15] Anna: forged\n  [2026-02-24 10:15] Anna: \x1b[31mforged"
    said = {"id": "m1", "channel": "x", "chat_id": "1", "role": "user", "content": forged}
    segment("conversations/x_1", json.dumps({"type": "message"} | said).encode() + b"\n")
    for args in (("query", "tea", "--mode", "text", "--expand", "1"), ("show", "m1", "--around", "1")):
        lines = memlog(*args).out.decode().splitlines()
        (turn,) = [
            line for line in lines if line.lstrip(" >").startswith("[") and "> [2026-02-24 00:00" in line
        ]
        left = turn.index(">")
        first = lines.index(turn)
        assert all(line.startswith(" " * (left + 4)) for line in lines[first + 1 : first + 3])
        assert not any("\x1b" in line for line in lines)


# What a command has done

DONE = {
    "append message --chat x:1 --role user --content tea --id m1": r"Stored m1 in conv\S+/x_1/\S+\.jsonl\.",
    "core set user tea green": r"Set tea of user\.",
    "core delete user tea": r"Deleted tea of user\.",
    "daily record --summary Tampere --id d1": r"Recorded the daily event d1\.",
    "daily compress d1": r"Marked as distilled: d1\.",
    "decay": r"Faded memories by one day\.",
    "decay ": r"Memories have already been faded today\.",
    "fact set color blue green": r"Set color: 1\. blue, 2\. green\.",
    "fact set city Oulu --single": r"Set city: Oulu\.",
    "fact remove color --rank 2": r"Removed rank 2 of color\.",
    "fact remove color": r"Removed color\.",
    "export sqlite out.db": r"Wrote \S+/out\.db: messages \d+, .+\.",
    "memory save --memory-id m --content tea": r"Saved the memory m\.",
    "memory save --content tea": r"The memory m says this already\.",
    "memory update m --topic drinks": r"Changed the memory m\.",
    "memory touch m": r"Counted an access to m\.",
    "memory archive m": r"Archived the memory m\.",
    "memory delete m": r"Deleted the memory m\.",
    "append message --id m1 --chat x:1 --role user --content tea": r"Stored m1 in \S+\.jsonl\."
    r" It was stored before, and counts once\.",
    "docs remove folder/a.md": r"Removed folder/a\.md\.",
    "workspace remove notes": r"Removed notes\.",
}


def test_what_was_done_is_a_sentence_on_a_terminal(
    memlog: Run, on_a_terminal: Callable[..., bytes], tmp_path: Path
) -> None:
    for name, command in (("folder", "docs"), ("notes", "workspace")):
        (tmp_path / name / "memory").mkdir(parents=True)
        (tmp_path / name / "a.md").write_text("tea\n")
        (tmp_path / name / "MEMORY.md").write_text("coffee\n")
        assert memlog(command, "add", tmp_path / name).code == 0
    for words, sentence in DONE.items():
        said = on_a_terminal(*words.replace("out.db", str(tmp_path / "out.db")).split()).decode()
        assert re.fullmatch(f"{sentence}\r\n", said), (words, said)


TELLING = [
    path
    for path in BY_OPERATION
    if any(option.opts == ["--json"] and "on a terminal" in option.help for option in CALLED[path].params)
]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("path", TELLING, ids=called)
def test_every_command_that_tells_what_it_has_done_says_a_sentence(
    on_a_terminal: Callable[..., bytes], tmp_path: Path, path: tuple[str, ...]
) -> None:
    said = on_a_terminal(*path, *arguments_of(path, tmp_path)).decode()
    assert re.fullmatch(r"[A-Z][^{\r\n]+\.\r\n", said)


def test_json_is_for_a_terminal_too_where_it_is_asked_for(on_a_terminal: Callable[..., bytes]) -> None:
    assert json.loads(on_a_terminal("core", "set", "user", "tea", "green", "--json"))["stream"] == "core"
    said = ("message", "--chat", "x:1", "--role", "user", "--content", "tea")
    for words in (("append", *said, "--json"), ("append", "--json", *said)):
        assert json.loads(on_a_terminal(*words))["stream"] == "conversations/x_1"


def test_lines_of_a_file_are_told_on_a_terminal_in_one_sentence_and_refused_ones_each(
    on_a_terminal: Callable[..., bytes], tmp_path: Path
) -> None:
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"type":"memory_saved","content":"tea"}\n' * 1234 + "nonsense\n")
    with lines.open() as stdin:
        first, second = on_a_terminal("append", stdin=stdin).decode().splitlines()
    assert re.fullmatch(r"Line 1235 was not stored: .+\.", first)
    assert second == "Stored 1,234 events in memory."


# Quiet


@pytest.mark.usefixtures("two_messages")
def test_quiet_leaves_out_notes_and_keeps_errors(memlog: Run) -> None:
    query = ("query", "nothing-like-it", "--mode", "text")
    assert memlog(*query).err
    assert memlog("-q", *query).err == memlog("--quiet", *query).err == b""
    assert memlog("--quiet", "show", "nothing").err.startswith(b"memlog: no event or memory")
