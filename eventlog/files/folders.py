"""Opens and creates a store's folders one component at a time; paths below the log never follow links."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.errors import NotFound
from memlog.eventlog.escapes import decode_json
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.file_io import (
    closing_descriptor,
    open_regular_file,
    overwrite_all,
    read_all,
    replacing_file,
    status_at,
    write_all,
)
from memlog.eventlog.log.layout import LOG, MODEL, SETTINGS, WRITERS
from memlog.eventlog.log.streams import escape_invalid_utf8


def check_store_exists(folder: Path) -> None:
    """Raise NotFound unless `folder` has a log, settings or writers; only a write may create a store."""
    try:
        is_store = any(status_at(folder / name) is not None for name in (LOG, SETTINGS, WRITERS))
    except OSError:
        return  # the path exists; reading it reports the error
    if not is_store:
        raise NotFound(
            f"there is no store at {escape_invalid_utf8(folder)}",
            hint="check the path of the store, or create one with memlog.open(PATH, create=True)",
            code="store_not_found",
        )


def unwritable_folder(store: Path) -> Path | None:
    """Return the folder (the store's or `model/`) that keeps read models from being written, or None."""
    if disk.is_folder(store) and not os.access(store, os.W_OK):
        return store
    return store / MODEL if is_kept_read_only(store / MODEL) else None


def is_kept_read_only(folder: Path) -> bool:
    """Whether `folder` is read-only on purpose: on a read-only mount, or owned by this user.

    A folder of another user does not count: `retry_without_unusable` moves it out of the way.
    """
    try:
        # Check existence first: a folder that another thread creates after a failed access check is not
        # read-only.
        if not disk.is_folder(folder) or os.access(folder, os.W_OK):
            return False
        is_own = disk.status_of_path(folder, follow=True).st_uid == os.geteuid()
        return is_own or disk.is_mounted_read_only(folder)
    except OSError:  # it was removed meanwhile
        return False


@contextmanager
def opening_folders_of_stream(log: Path, stream: str, *, make: bool = False) -> Iterator[list[int]]:
    """Yield descriptors for the log folder and the folders below it, down to the one for `stream`.

    make: create missing folders and sync their names. Raises OSError if a folder is missing or a link.
    """
    names: list[Path | str] = [log, *stream.split("/")]
    folders: list[int] = []
    try:
        for name in names:
            folders.append(_open_folder(name, folders[-1] if folders else None, make=make))
        yield folders
    finally:
        _close_all(folders)


def make_folder_and_parents(folder: Path) -> None:
    """Create a folder and its missing parents, and sync their names to disk."""
    if disk.is_folder(folder):
        return
    make_folder_and_parents(folder.parent)
    try:
        file_io.make_folder(folder)
    except FileExistsError:
        if not disk.is_folder(folder):
            raise
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    with closing_descriptor(disk.open(folder, disk.FOLDER, follow=True)) as fd:
        disk.sync(fd)


def _close_all(folders: list[int]) -> None:
    """Close all folders, even if one fails to close. ExitStack would take 2 of the 70 µs of an append."""
    if folders:
        try:
            disk.close(folders[-1])
        finally:
            _close_all(folders[:-1])


def _open_folder(path: Path | str, parent: int | None, *, make: bool) -> int:
    """Open the log's folder, which may be a symbolic link, or a folder below `parent`."""
    is_log = parent is None
    try:
        return disk.open(path, disk.FOLDER, folder=parent, follow=is_log)
    except FileNotFoundError:
        if not make:
            raise
    if parent is None:
        make_folder_and_parents(Path(path))
    else:
        # Another process may have created it first, and its name may not be durable yet.
        with suppress(FileExistsError):
            file_io.make_folder(path, folder=parent)
        disk.sync(parent)
    return disk.open(path, disk.FOLDER, folder=parent, follow=is_log)


# Copy files: their first line holds their own inode. A copied file (cp, rsync, git, a restored backup) has
# another inode, and is ignored.


class Origin(msgspec.Struct, frozen=True):
    """Distinguishes a file from copies and from earlier files with its inode; see `disk.inode_generation`."""

    inode: int
    generation: int | None

    @classmethod
    def of_open_file(cls, fd: int) -> "Origin":
        """Return the origin of an open file."""
        return cls(disk.status_of_descriptor(fd).st_ino, disk.inode_generation(fd))


def read_unless_copied(path: Path, most: int | None = None) -> bytes:
    """Read up to `most` bytes; return b"" if the file is missing, a copy or not regular. Raises OSError."""
    try:
        fd = open_regular_file(path, disk.READ)
    except (FileNotFoundError, FileExistsError):
        return b""
    with closing_descriptor(fd):
        data = read_all(fd) if most is None else disk.read(fd, most, 0)
        return data if decode_json(data.split(b"\n", 1)[0], Origin) == Origin.of_open_file(fd) else b""


def replace_lines(path: Path, lines: Iterable[msgspec.Struct]) -> bytes:
    """Replace a file with its `Origin` and `lines`, without syncing; return its bytes. Raises OSError."""
    with replacing_file(path, path.with_name(f"{path.name}.draft")) as fd:
        data = b"".join(map(encode_line, [Origin.of_open_file(fd), *lines]))
        overwrite_all(fd, data, 0)
    return data


def append_lines(path: Path, lines: Iterable[msgspec.Struct], *, is_torn: bool) -> bytes:
    """Append `lines`, after a newline if `is_torn`, and return the bytes written. Raises OSError."""
    added = b"\n" * is_torn + b"".join(map(encode_line, lines))
    with closing_descriptor(disk.open(path, disk.APPEND)) as fd:
        write_all(fd, added)
    return added


def encode_line(value: msgspec.Struct) -> bytes:
    """Encode `value` as a line of JSON, including the newline."""
    return msgspec.json.encode(value) + b"\n"
