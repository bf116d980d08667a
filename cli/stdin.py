"""Reads stdin: bytes, a text, or the answer to a question."""

import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO, TypeVar

import click
from msgspec.structs import replace

from memlog.cli.output import one_line
from memlog.eventlog.errors import BadInput
from memlog.eventlog.quarantine import HINTS, MAX_LINE, TOO_LONG
from memlog.service.requests.scope import Tried

T = TypeVar("T")
Q = TypeVar("Q", bound=Tried)


def stdin() -> BinaryIO:
    """Stdin as a stream of bytes.

    Raises:
        BadInput: stdin is closed.
    """
    # None if Python was started with stdin closed.
    if sys.stdin is None:
        raise BadInput("stdin is closed", hint="give events on stdin, or an event by options")
    return sys.stdin.buffer


def stdin_text() -> str:
    """Read stdin to its end, without the newline that `echo` adds, and without a byte order mark.

    Raises:
        BadInput: stdin is closed, not UTF-8, or longer than an event may be.
    """
    data = stdin().read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise TOO_LONG
    try:
        return data.decode().removeprefix("\ufeff").removesuffix("\n")
    except UnicodeDecodeError as error:
        message = f"the content is not UTF-8: byte {error.start}: {error.reason}"
        raise BadInput(message, hint=HINTS["not_utf8"]) from error


def check_can_ask(*, is_yes: bool) -> None:
    """Check that there is somebody to ask, or that --yes was given.

    Raises:
        UsageError: stdin is no terminal, and --yes is not given.
    """
    if not is_yes and (sys.stdin is None or not sys.stdin.isatty()):
        command = click.get_current_context().info_name
        raise click.UsageError(
            f"{command} needs a confirmation, and stdin is not a terminal: pass --yes to go on without one"
        )


def confirmed(operation: Callable[[Q], T], asked: Q, agreed: Callable[[T], bool], *, is_yes: bool) -> T:
    """What an operation answers, done once a person has agreed to what a dry run of it answers.

    Raises:
        UsageError: nobody can be asked.
    """
    is_dry = asked.dry_run
    check_can_ask(is_yes=is_yes or is_dry)
    if is_dry or is_yes:
        return operation(asked)
    found = operation(replace(asked, dry_run=True))
    return operation(asked) if agreed(found) else found


def agrees(question: str, about: Iterable[str] = ()) -> bool:
    """Ask a yes-or-no question below lines about it, on stderr: stdout is for the answer of the command."""
    for line in about:
        click.echo(one_line(line), err=True)
    return click.confirm(question, err=True)
