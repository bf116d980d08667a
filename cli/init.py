"""memlog init."""

import click

from memlog.cli.output import json_option, print_json, printable
from memlog.cli.settings import Settings, file_with_defaults
from memlog.service.create import create_store


@click.command()
@json_option
@click.pass_context
def init(ctx: click.Context, as_json: bool) -> None:
    """Make a store's folder, with a memlog.toml in which every setting stands with its default.

    A .gitignore and a .gitattributes let git copy the log and nothing that memlog can make anew. Existing
    files stay as they are: of these two, the lines that they lack are named. A store needs no init: the first
    append makes it, too.
    """
    done = create_store(ctx.ensure_object(Settings).store, file_with_defaults())
    if as_json:
        print_json(done)
        return
    what = f"made {', '.join(done.made)}" if done.made else "it exists already: nothing was changed"
    click.echo(printable(f"{done.store}: {what}"))
    for name, lines in done.missing.items():
        click.echo(f"{name} was there before; add these lines to it, so that git copies what it should:")
        click.echo("\n".join(lines))
