"""The installed `memlog`, and every command of it, found by asking it."""

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from memlog.cli.process.main import memlog_command

MEMLOG = pathlib.Path(sys.executable).parent / "memlog"
"""The program."""

Path = tuple[str, ...]
"""The words that call a command, without `memlog`."""


def _commands(command: click.Command, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, (*path, name))


COMMANDS: dict[Path, click.Command] = dict(_commands(memlog_command))
"""Every command and group, `memlog` itself first."""


def called(path: Path) -> str:
    """`memlog core get`."""
    return " ".join(("memlog", *path))


def does_something(command: click.Command) -> bool:
    """Whether it can be run by itself: a group that only holds commands cannot."""
    return not isinstance(command, click.Group) or command.invoke_without_command
