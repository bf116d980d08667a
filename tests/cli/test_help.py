"""The help of every command, as a user sees it: the snapshot is the reference."""

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from memlog.cli.main import memlog_command

WIDTH = 100


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, (*path, name))


COMMANDS = dict(_commands(memlog_command))
each_command = pytest.mark.parametrize("path", list(COMMANDS), ids=lambda path: " ".join(("memlog", *path)))


@each_command
def test_help(path: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    done = CliRunner().invoke(
        memlog_command, [*path, "--help"], prog_name="memlog", terminal_width=WIDTH, color=False
    )
    assert done.exit_code == 0
    assert done.output == snapshot


@each_command
def test_every_command_says_what_it_does(path: tuple[str, ...]) -> None:
    first = (COMMANDS[path].help or "").partition("\n\n")[0].strip()
    assert first.endswith(".")
    assert first[0].isupper()


@each_command
def test_help_has_a_short_form(path: tuple[str, ...]) -> None:
    assert CliRunner().invoke(memlog_command, [*path, "-h"]).exit_code == 0


@each_command
def test_every_command_that_prints_has_json(path: tuple[str, ...]) -> None:
    """A group that only holds commands prints nothing; `append` answers in JSON whether asked or not."""
    command = COMMANDS[path]
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return
    assert "--json" in [name for option in command.params for name in option.opts]


def _options() -> Iterator[Any]:
    for path, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                name = " ".join(("memlog", *path, option.opts[-1]))
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
