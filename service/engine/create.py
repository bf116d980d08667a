"""Creates a store's folder, with files that let git copy the log and nothing that memlog can rebuild."""

import os
from pathlib import Path

import msgspec

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.folders import make_path
from memlog.eventlog.log import layout, log_format
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.streams import shown

_GITIGNORE = f"""\
# The log is the store; memlog rebuilds the rest.
/{layout.MODEL}/
/{layout.CACHE}/
/{layout.WRITERS}/
/*.lock
/{layout.WATERMARKS}
/{layout.STORE_KEY}
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
_FOR_GIT = {layout.GITIGNORE: _GITIGNORE, layout.GITATTRIBUTES: _GITATTRIBUTES}


class Creation(msgspec.Struct, frozen=True):
    """Reports which files were made.

    store: the absolute path of its folder.
    made: the names of new files and folders; empty where the store was complete.
    missing: by the name of an existing file for git, the lines that it lacks.
    """

    store: str
    made: list[str]
    missing: dict[str, list[str]]


def create_store(store: Path, settings: str) -> Creation:
    """Make each missing part of the store in the folder `store`; existing files stay as they are.

    settings: the text of a new memlog.toml.

    Raises:
        LogError: a file could not be made.
    """
    try:
        made = _make_missing(store, {layout.SETTINGS: settings, **_FOR_GIT})
        missing = {name: lines for name, text in _FOR_GIT.items() if (lines := _lacking(store / name, text))}
    except OSError as error:
        raise cannot_create(store, error.strerror) from error
    return Creation(shown(store.absolute()), made, missing)


def cannot_create(store: Path, why: str | None) -> LogError:
    """Return the error for a store that cannot be made, or written."""
    return LogError(
        f"{shown(store)}: {why}",
        hint="name a folder that can be written with memlog.open(PATH)",
        code="cannot_create",
        retryable=False,
    )


def _make_missing(store: Path, files: dict[str, str]) -> list[str]:
    made = []
    if not (store / layout.LOG).is_dir():
        make_path(store / layout.LOG)
        made.append(layout.LOG)
    if log_format.claim(store / layout.LOG):
        made.append(f"{layout.LOG}/{layout.FORMAT}")
    return made + [name for name, text in files.items() if _made(store / name, text)]


def _made(path: Path, text: str) -> bool:
    """Make a file unless it exists. Returns whether it was made."""
    try:
        file = file_io.open_file(path, disk.WRITE | disk.NEW)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    return True


def _lacking(path: Path, text: str) -> list[str]:
    """Return the lines of `text`, without comments, that the file lacks."""
    try:
        known = path.read_bytes().splitlines() if path.is_file() else []
    except PermissionError:
        known = []
    needed = (line for line in text.splitlines() if not line.startswith("#"))
    return [line for line in needed if line.encode() not in map(bytes.strip, known)]


_NOTES = "MEMORY.md"


def notes_beside(store: Path) -> Path | None:
    """Return the folder with a MEMORY.md in which an empty store lies; None without one."""
    folder = store.absolute().parent
    is_empty = next((store / LOG).rglob("*.jsonl"), None) is None
    return folder if is_empty and (folder / _NOTES).is_file() else None
