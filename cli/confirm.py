"""Asks for confirmation before work that cannot be undone."""

import sys

import click


def check_can_ask(*, is_yes: bool) -> None:
    """Check that there is somebody to ask, or that --yes was given.

    Raises:
        UsageError: stdin is no terminal, and --yes is not given.
    """
    if not is_yes and (sys.stdin is None or not sys.stdin.isatty()):
        command = click.get_current_context().info_name
        raise click.UsageError(
            f"{command} asks first, and stdin is no terminal: --yes goes on without asking"
        )


def agrees(question: str) -> bool:
    """Ask a yes-or-no question, on stderr: stdout is for the answer of the command."""
    return click.confirm(question, err=True)


def counted(count: int, thing: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {thing}" + ("" if count == 1 else "s")
