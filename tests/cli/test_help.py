"""The help of every command, as a user sees it: it is the reference, docs/cli.md."""

import json
import re
from typing import Any

import click
import pytest
from click.testing import CliRunner

import memlog
from memlog.cli.process.main import memlog_command
from tests.cli.reference import PAGE, WIDTH, help_of, page, section
from tests.support.command_tree import COMMANDS, Path, called, does_something
from tests.support.sample_calls import BY_OPERATION

ROOT = PAGE.parents[1]

_OUT_OF_DATE = f"{PAGE.name} is out of date: `make snapshots` writes it anew; read the difference"


@pytest.fixture(scope="module", autouse=True)
def _page(pytestconfig: pytest.Config) -> None:
    """`--snapshot-update` writes the page."""
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(page())


def test_the_reference_is_the_help_of_every_command() -> None:
    written = PAGE.read_text()
    assert [called(path) for path in COMMANDS if section(path) not in written] == [], _OUT_OF_DATE
    assert written == page(), _OUT_OF_DATE


def test_every_command_is_named_on_a_page_that_explains_it() -> None:
    """`memlog core get`, or in a table of commands `core get`; an event type `message`.

    docs/operations.md, which is generated, names those of operations.
    """
    paths = [ROOT / "README.md", *(found for found in (ROOT / "docs").rglob("*.md") if found != PAGE)]
    pages = "\n".join(path.read_text() for path in paths)

    def is_named(path: Path) -> bool:
        words = " ".join(path[1:] if path[:1] == ("append",) and path[1:] else path)
        return bool(re.search(rf"(?:memlog |`){re.escape(words)}(?![\w-])" if path else "memlog", pages))

    assert [called(path) for path in COMMANDS if path not in BY_OPERATION and not is_named(path)] == []


def test_every_command_and_option_says_what_it_does() -> None:
    for path, command in COMMANDS.items():
        first = (command.help or "").partition("\n\n")[0].strip()
        assert first.endswith("."), called(path)
        assert first[0].isupper(), called(path)
        for option in command.params:
            if isinstance(option, click.Option):
                assert (option.help or "").endswith("."), (called(path), option.opts)


def test_every_command_that_prints_has_json() -> None:
    """A group without an action of its own prints nothing; `append` and `hook` always answer in JSON."""
    for path, command in COMMANDS.items():
        names = [name for option in command.params for name in option.opts]
        assert "--json" in names or not does_something(command) or path == ("hook",), called(path)


def test_the_exit_codes_are_named() -> None:
    text = CliRunner().invoke(memlog_command, ["--help"], terminal_width=WIDTH).output
    for code in ("0", "1", "2", "3", "65", "69", "70", "71", "73", "74", "75", "130"):
        assert f" {code} " in " ".join(text.split())


def test_every_command_is_listed() -> None:
    listed = CliRunner().invoke(memlog_command, ["--help"], terminal_width=WIDTH).output
    for path in COMMANDS:
        assert len(path) != 1 or f"\n  {path[0]} " in listed


def test_commands_are_listed_in_groups_by_what_they_do() -> None:
    listed = CliRunner().invoke(memlog_command, ["--help"], terminal_width=WIDTH).output
    headings = re.findall(r"^(\w+):\n(?=  [a-z]+  )", listed, re.MULTILINE)
    assert headings == ["Write", "Read", "Memory", "Documents", "Maintain"]
    names = re.findall(r"^  ([a-z]+)  +[A-Z]", listed, re.MULTILINE)
    assert sorted(names) == sorted(path[0] for path in COMMANDS if len(path) == 1)


# `memlog help`


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    done = CliRunner().invoke(memlog_command, ["help", "--json"], prog_name="memlog")
    description: dict[str, Any] = json.loads(done.output)
    return description


def test_help_describes_every_command_and_option_to_programs(described: dict[str, Any]) -> None:
    assert list(described) == ["version", "commands", "exit_codes"]
    assert described["version"] == memlog.__version__
    assert [each["name"] for each in described["commands"]] == [called(path) for path in COMMANDS]
    for each, command in zip(described["commands"], COMMANDS.values(), strict=True):
        assert list(each) == ["name", "help", "arguments", "options"]
        options = [
            [*option.opts, *option.secondary_opts]
            for option in command.params
            if isinstance(option, click.Option)
        ]
        names = [option["names"] for option in each["options"]]
        # click makes the --help of most commands when it is asked for.
        assert [opts for opts in options if "--help" not in opts] == [
            name for name in names if "--help" not in name
        ]
        assert ["-h", "--help"] in names


def test_help_describes_the_values_of_options(described: dict[str, Any]) -> None:
    commands = {each["name"]: each for each in described["commands"]}
    options = {name: each for each in commands["memlog query"]["options"] for name in each["names"]}
    assert options["-k"] == {
        "names": ["-k"],
        "is_flag": False,
        "type": "integer range",
        "choices": None,
        "min": 1,
        "max": 1_000_000,
        "required": False,
        "multiple": False,
        "default": None,
        "env": "MEMLOG_SEARCH_LIMIT",
        "help": "The most hits of a query.",
    }
    assert options["--mode"]["choices"] == ["hybrid", "text", "vector"]
    assert options["--exclude"]["multiple"] is True
    assert (options["--no-sync"]["is_flag"], options["--no-sync"]["default"]) == (True, None)
    (store,) = [each for each in commands["memlog"]["options"] if each["names"] == ["--store"]]
    assert (store["type"], store["env"]) == ("path", "MEMLOG_STORE")
    (text,) = commands["memlog query"]["arguments"]
    assert (text["name"], text["required"], text["multiple"]) == ("TEXT...", True, True)


def test_the_exit_codes_are_those_of_the_page(described: dict[str, Any]) -> None:
    table = (ROOT / "docs/json-output.md").read_text().partition("| exit code |")[2]
    assert [each["code"] for each in described["exit_codes"]] == [
        int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)
    ]


def test_help_and_the_short_option_print_a_commands_help() -> None:
    for path in COMMANDS:
        for asked in (["help", *path], [*path, "-h"]):
            done = CliRunner().invoke(memlog_command, asked, prog_name="memlog", terminal_width=WIDTH)
            assert done.output == help_of(path), asked


def test_help_of_a_group_describes_what_is_below_it() -> None:
    done = CliRunner().invoke(memlog_command, ["help", "core", "--json"], prog_name="memlog")
    names = [each["name"] for each in json.loads(done.output)["commands"]]
    assert names == [called(path) for path in COMMANDS if path[:1] == ("core",)]


def test_help_of_no_command_is_an_error() -> None:
    done = CliRunner().invoke(memlog_command, ["help", "core", "nonsense"], prog_name="memlog")
    assert done.exit_code == 2
    assert "core nonsense" in done.output
