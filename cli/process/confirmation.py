"""Asks for confirmation before something irreversible."""

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click
from msgspec.structs import replace

from memlog.cli.options.request_options import Given
from memlog.cli.output.output import one_line

T = TypeVar("T")


def run_if_confirmed(
    operation: Callable[[Given], T], request: Given, agreed: Callable[[T], bool], *, is_yes: bool
) -> T:
    """Run an operation if the user agrees to the result of a dry run; return the last run's result.

    Raises:
        UsageError: stdin is not a terminal, so nobody can be asked.
    """
    if request.dry_run or is_yes:
        return operation(request)
    if sys.stdin is None or not sys.stdin.isatty():
        command = click.get_current_context().info_name
        raise click.UsageError(
            f"{command} needs confirmation, but stdin is not a terminal: use --yes to skip it"
        )
    found = operation(replace(request, dry_run=True))
    return operation(request) if agreed(found) else found


def ask_yes_or_no(question: str, about: Iterable[str] = ()) -> bool:
    """Print lines and ask a yes-or-no question on stderr; return whether the answer is yes."""
    for line in about:
        click.echo(one_line(line), err=True)
    return click.confirm(question, err=True)
