"""`--help` and `--version`, without click's translations.

For these, gettext would import `locale`: 2 ms of the 60 that an append takes.
"""

import sys
from collections.abc import Callable

import click

import memlog
from memlog.cli.output.output import columns_of

HELP_NAMES = ["-h", "--help"]

_NARROWEST, _WIDEST, _MARGIN = 50, 80, 2
"""Columns of a help text, as of click."""


def _flag(*names: str, help: str, text: Callable[[click.Context], str]) -> click.Option:
    def print_text(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
        if is_given and not ctx.resilient_parsing:
            click.echo(text(ctx), color=ctx.color)
            ctx.exit()

    return click.Option(
        names, is_flag=True, expose_value=False, is_eager=True, callback=print_text, help=help
    )


HELP_OPTION = _flag(*HELP_NAMES, help="Show this message and exit.", text=click.Context.get_help)
"""Of every command."""


class Command(click.Command):
    """A command with `HELP_OPTION` in place of click's."""

    def get_help_option(self, ctx: click.Context) -> click.Option:  # noqa: ARG002
        """See `click.Command`."""
        return HELP_OPTION

    def get_help(self, ctx: click.Context) -> str:
        """See `click.Command`. It would import `shutil` for the width of the terminal, which takes 2 ms."""
        if ctx.terminal_width is None:
            ctx.terminal_width = max(_NARROWEST, min(columns_of(sys.stdout) or _WIDEST, _WIDEST) - _MARGIN)
        return super().get_help(ctx)


class Group(Command, click.Group):
    """A group with `HELP_OPTION` in place of click's."""


VERSION_OPTION = _flag(
    "--version", help="Show the version and exit.", text=lambda _: f"memlog, version {memlog.__version__}"
)
"""Of the program."""
