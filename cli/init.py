"""memlog init."""

import os
from pathlib import Path

import click

from memlog.cli.output import json_option, print_json, printable
from memlog.cli.settings import Settings
from memlog.cli.settings_file import text_with_defaults
from memlog.eventlog import disk, layout, log_format, permissions
from memlog.eventlog.errors import LogError
from memlog.eventlog.folders import make_path
from memlog.eventlog.streams import shown

_GITIGNORE = f"""\
# The log is the store; memlog makes the rest anew.
/{layout.MODEL}/
/{layout.CACHE}/
/{layout.WRITERS}/
/*.lock
/{layout.WATERMARKS}
"""
# Git's patterns cannot say "no writer" otherwise than by saying all that a plain name may hold.
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_GITATTRIBUTES = f"""\
# The log's checksums are of its bytes: no line ending may change.
/{layout.LOG}/** -text
# Segments without a writer's name, of an older memlog, are the only ones that two copies may both append to.
/{layout.LOG}/**/{_DAY}.jsonl merge=union
/{layout.LOG}/**/{_DAY}.[0-9][0-9][0-9][0-9].jsonl merge=union
"""
_OF_GIT = {layout.GITIGNORE: _GITIGNORE, layout.GITATTRIBUTES: _GITATTRIBUTES}


@click.command()
@json_option
@click.pass_context
def init(ctx: click.Context, as_json: bool) -> None:
    """Make a store's folder, with a memlog.toml in which every setting stands with its default.

    A .gitignore and a .gitattributes let git copy the log and nothing that memlog can make anew. Existing
    files stay as they are: of these two, the lines that they lack are named. A store needs no init: the first
    append makes it, too.
    """
    store = ctx.ensure_object(Settings).store
    try:
        made = _made(store)
        missing = {name: lines for name, text in _OF_GIT.items() if (lines := _missing(store / name, text))}
    except OSError as error:
        raise LogError(
            f"{shown(store)}: {error.strerror}",
            hint="name a folder that can be written with --store",
            code="cannot_create",
            retryable=False,
        ) from error
    if as_json:
        print_json({"store": shown(store.absolute()), "made": made, "missing": missing})
        return
    what = f"made {', '.join(made)}" if made else "it stands already: nothing was changed"
    click.echo(printable(f"{shown(store.absolute())}: {what}"))
    for name, lines in missing.items():
        click.echo(f"{name} was there before; add these lines to it, so that git copies what it should:")
        click.echo("\n".join(lines))


def _made(store: Path) -> list[str]:
    """Makes what is missing, and returns its names."""
    made = []
    if not (store / layout.LOG).is_dir():
        make_path(store / layout.LOG)
        made.append(layout.LOG)
    if log_format.claim(store / layout.LOG):
        made.append(f"{layout.LOG}/{layout.FORMAT}")
    files = {layout.SETTINGS: text_with_defaults(), **_OF_GIT}
    return made + [name for name, text in files.items() if _is_made(store / name, text)]


def _missing(path: Path, text: str) -> list[str]:
    """The lines of `text`, without comments, that the file lacks."""
    try:
        known = path.read_bytes().splitlines() if path.is_file() else []
    except PermissionError:
        known = []
    needed = (line for line in text.splitlines() if not line.startswith("#"))
    return [line for line in needed if line.encode() not in map(bytes.strip, known)]


def _is_made(path: Path, text: str) -> bool:
    """Make a file where there is none; whether it was made."""
    try:
        file = permissions.open_file(path, disk.WRITE | disk.NEW)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    return True
