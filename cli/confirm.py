"""BuildContext a person before something is done that cannot be undone."""

import sys

import click


def check_can_ask(ctx: click.Context, *, is_yes: bool) -> None:
    """Refuse to go on where a question is due, and nobody is there to answer.

    Raises:
        UsageError: stdin is no terminal, and --yes is not given.
    """
    if not is_yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise click.UsageError(
            f"{ctx.info_name} asks first, and stdin is no terminal: --yes goes on without asking", ctx
        )


def agrees(question: str) -> bool:
    """Whether a person says yes. Asked on stderr: stdout is for the answer."""
    return click.confirm(question, err=True)


def counted(count: int, thing: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {thing}" + ("" if count == 1 else "s")
