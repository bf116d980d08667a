"""Opens folders name by name, so that nothing below the log is reached through a link."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import closing


@contextmanager
def entered(log: Path, stream: str, *, make: bool = False) -> Iterator[list[int]]:
    """A context with descriptors of the log's folder and of each folder below it, down to that of `stream`.

    make: create missing folders, and make their names durable.

    Raises:
        OSError: a folder is missing, a link, or no folder.
    """
    folders: list[int] = []
    try:
        folders.append(_opened(log, make=make))
        for name in stream.split("/"):
            folders.append(_entered(folders[-1], name, make=make))
        yield folders
    finally:
        _close_all(folders)


def make_path(folder: Path) -> None:
    """Create a folder and its missing parents, and make their names durable."""
    if disk.is_folder(folder):
        return
    make_path(folder.parent)
    try:
        permissions.make_folder(folder)
    except FileExistsError:
        if not disk.is_folder(folder):
            raise
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with closing(disk.open(folder, disk.FOLDER, follow=True)) as fd:
        disk.sync(fd)


def _close_all(folders: list[int]) -> None:
    """Close each, even if closing another fails."""
    if folders:
        try:
            disk.close(folders[-1])
        finally:
            _close_all(folders[:-1])


def _opened(log: Path, *, make: bool) -> int:
    try:
        return disk.open(log, disk.FOLDER, follow=True)
    except FileNotFoundError:
        if not make:
            raise
    make_path(log)
    return disk.open(log, disk.FOLDER, follow=True)


def _entered(parent: int, name: str, *, make: bool) -> int:
    try:
        return disk.open(name, disk.FOLDER, folder=parent)
    except FileNotFoundError:
        if not make:
            raise
    # Another process may be faster, and its name may not be durable yet.
    with suppress(FileExistsError):
        permissions.make_folder(name, folder=parent)
    disk.sync(parent)
    return disk.open(name, disk.FOLDER, folder=parent)
