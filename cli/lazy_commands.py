"""Groups that make a command when it is called."""

from collections.abc import Iterable

import click

from memlog.cli.standard_options import Group


class LazyCommands(Group):
    """Suggests the nearest commands for an unknown name; knows them from `list_commands` alone."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`, which suggests only commands that exist already."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise no_such_command(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


def no_such_command(name: str, known: Iterable[str], ctx: click.Context) -> click.UsageError:
    """Make the error for an unknown command, with the nearest known ones."""
    from difflib import get_close_matches

    last = name.rpartition(" ")[2]
    nearest = " or ".join(repr(each) for each in get_close_matches(last, list(known)))
    suggestion = f" Did you mean {nearest}?" if nearest else ""
    return click.UsageError(f"No such command {name!r}.{suggestion}", ctx)
