"""The help of every command, as a user sees it: it is the reference, docs/cli.md."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner
from command_tree import COMMANDS, Path, called, does_something
from reference import PAGE, WIDTH, page, section

from memlog.cli.main import memlog_command

ROOT = PAGE.parents[1]

each_command = pytest.mark.parametrize("path", list(COMMANDS), ids=called)

_OUT_OF_DATE = f"{PAGE.name} is out of date: `make snapshots` writes it anew; read the difference"


@pytest.fixture(scope="module", autouse=True)
def _page(pytestconfig: pytest.Config) -> None:
    """`--snapshot-update` writes the page."""
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(page())


@each_command
def test_the_help_of_every_command_stands_in_the_reference(path: Path) -> None:
    assert section(path) in PAGE.read_text(), _OUT_OF_DATE


def test_the_reference_holds_nothing_else() -> None:
    assert PAGE.read_text() == page(), _OUT_OF_DATE


@each_command
def test_every_command_is_named_on_a_page_that_explains_it(path: Path) -> None:
    """`memlog core get`, or in a table of commands `core get`; an event type `message`."""
    pages = [ROOT / "README.md", *(found for found in (ROOT / "docs").rglob("*.md") if found != PAGE)]
    words = " ".join(path[1:] if path[:1] == ("append",) and path[1:] else path)
    named = re.compile(rf"(?:memlog |`){re.escape(words)}(?![\w-])" if path else "memlog")
    assert any(named.search(found.read_text()) for found in pages)


@each_command
def test_every_command_says_what_it_does(path: Path) -> None:
    first = (COMMANDS[path].help or "").partition("\n\n")[0].strip()
    assert first.endswith(".")
    assert first[0].isupper()


@each_command
def test_help_has_a_short_form(path: Path) -> None:
    assert CliRunner().invoke(memlog_command, [*path, "-h"]).exit_code == 0


@each_command
def test_every_command_that_prints_has_json(path: Path) -> None:
    """A group that only holds commands prints nothing; `append` answers in JSON whether asked or not."""
    names = [name for option in COMMANDS[path].params for name in option.opts]
    assert "--json" in names or not does_something(COMMANDS[path])


def _options() -> Iterator[Any]:
    for path, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                name = f"{called(path)} {option.opts[-1]}"
                yield pytest.param(option, id=name)


@pytest.mark.parametrize("option", list(_options()))
def test_every_option_says_what_it_is_for(option: click.Option) -> None:
    assert option.help
    assert option.help.endswith(".")


def test_the_exit_codes_are_named() -> None:
    text = CliRunner().invoke(memlog_command, ["--help"], terminal_width=WIDTH).output
    for code in ("0", "1", "2", "3", "65", "69", "70", "73", "74", "75", "130"):
        assert f" {code} " in text


def test_every_command_is_listed() -> None:
    listed = CliRunner().invoke(memlog_command, ["--help"], terminal_width=WIDTH).output
    for path in COMMANDS:
        assert len(path) != 1 or f"\n  {path[0]} " in listed
