"""Creates a store's folder, and reads its log without a read model, even while others write."""

import os
from pathlib import Path

import msgspec

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.folders import make_folder_and_parents, sync_folder
from memlog.eventlog.log import layout, log_format
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.reader import LogEntry as LogEntry
from memlog.eventlog.log.streams import escape_invalid_utf8

_GITIGNORE = f"""\
# The log is the store; memlog rebuilds the rest.
/{layout.MODEL}/
/{layout.CACHE}/
/{layout.WRITERS}/
/*.lock
/{layout.WATERMARKS}
/{layout.STORE_KEY}
"""
# Git's patterns cannot express "no writer" except by spelling out every character of a plain name.
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
    """The files that were created.

    store: the absolute path of the store's folder.
    made: the names of new files and folders; empty if the store was complete.
    missing: the lines that existing git files should have but lack, keyed by file name.
    """

    store: str
    made: list[str]
    missing: dict[str, list[str]]


def create_store(store: Path, settings: str) -> Creation:
    """Create the missing files of a store, leaving existing files unchanged.

    settings: the text of a new memlog.toml.

    Raises:
        LogError: a file could not be created.
    """
    try:
        made = _make_missing_files(store, {layout.SETTINGS: settings, **_FOR_GIT})
        missing = {
            name: lines for name, text in _FOR_GIT.items() if (lines := _missing_lines(store / name, text))
        }
    except OSError as error:
        raise cannot_create_error(store, error.strerror) from error
    return Creation(escape_invalid_utf8(store.absolute()), made, missing)


def replace_settings_file(path: Path, text: str) -> None:
    """Replace a settings file, creating its folder if it is missing.

    Raises:
        LogError: the file could not be written.
    """
    try:
        make_folder_and_parents(path.parent)
        file = path.resolve()  # it may be a link into a folder of such files
        with file_io.replacing_file(file, file.with_name(f".{file.name}.draft")) as fd:
            file_io.write_all(fd, text.encode())
            disk.sync(fd)
        sync_folder(file.parent)
    except OSError as error:
        raise cannot_create_error(path, error.strerror) from error


def identify_files_of_store(store: Path) -> list[object]:
    """Return what identifies a store's folder and read model, which changes if they are replaced."""
    # Imported here: only a server keeps stores open.
    from memlog.projector.lifecycle import Generations

    live = Generations(store).find_live_file()
    found = [file_io.status_at(path) for path in (store, live) if path is not None]
    return [None if each is None else (each.st_dev, each.st_ino) for each in found]


def cannot_create_error(store: Path, why: str | None) -> LogError:
    """Return the error for a store that cannot be created or written."""
    return LogError(
        f"{escape_invalid_utf8(store)}: {why}",
        hint="use a writable folder: memlog.open(PATH)",
        code="cannot_create",
        retryable=False,
    )


def _make_missing_files(store: Path, files: dict[str, str]) -> list[str]:
    made = []
    if not (store / layout.LOG).is_dir():
        make_folder_and_parents(store / layout.LOG)
        made.append(layout.LOG)
    if log_format.claim_format(store / layout.LOG):
        made.append(f"{layout.LOG}/{layout.FORMAT}")
    return made + [name for name, text in files.items() if _write_new_file(store / name, text)]


def _write_new_file(path: Path, text: str) -> bool:
    """Create a file unless it already exists; return whether it was created."""
    try:
        file = file_io.open_file(path, disk.WRITE | disk.NEW)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    return True


def _missing_lines(path: Path, text: str) -> list[str]:
    """Return the lines of `text`, except comments, that the file lacks."""
    try:
        known = path.read_bytes().splitlines() if path.is_file() else []
    except PermissionError:
        known = []
    needed = (line for line in text.splitlines() if not line.startswith("#"))
    return [line for line in needed if line.encode() not in map(bytes.strip, known)]


_NOTES = "MEMORY.md"


def find_notes_beside(store: Path) -> Path | None:
    """Return the parent folder of an empty store if it contains a MEMORY.md; otherwise None."""
    folder = store.absolute().parent
    has_notes = (folder / _NOTES).is_file()
    return folder if has_notes and next((store / LOG).rglob("*.jsonl"), None) is None else None
