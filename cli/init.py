"""memlog init."""

import os
from pathlib import Path

import click

from memlog.cli.output import json_option, print_json, printable
from memlog.cli.settings import Settings
from memlog.cli.settings_file import text_with_defaults
from memlog.eventlog import disk, privacy
from memlog.eventlog.errors import LogError
from memlog.eventlog.folders import make_path
from memlog.eventlog.store_folder import LOG, SETTINGS_FILE
from memlog.eventlog.streams import shown


@click.command()
@json_option
@click.pass_context
def init(ctx: click.Context, as_json: bool) -> None:
    """Make a store's folder, with a memlog.toml in which every setting stands with its default.

    What stands already is left as it is. A store needs no init: the first append makes it, too.
    """
    store = ctx.ensure_object(Settings).store
    try:
        made = _made(store)
    except OSError as error:
        raise LogError(
            f"{shown(store)}: {error.strerror}",
            hint="name a folder that can be written with --store",
            code="cannot_create",
            retryable=False,
        ) from error
    if as_json:
        print_json({"store": shown(store.absolute()), "made": made})
        return
    what = f"made {', '.join(made)}" if made else "it stands already: nothing was changed"
    click.echo(printable(f"{shown(store.absolute())}: {what}"))


def _made(store: Path) -> list[str]:
    """Makes what is missing, and returns its names."""
    made = []
    if not (store / LOG).is_dir():
        make_path(store / LOG)
        made.append(LOG)
    try:
        file = privacy.open_file(store / SETTINGS_FILE, disk.WRITE | disk.NEW)
    except FileExistsError:
        return made
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text_with_defaults())
    return [*made, SETTINGS_FILE]
