"""Small files that are replaced as a whole, so that neither a kill nor a power cut leaves half of one."""

from contextlib import suppress
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import closing, drafted, open_regular, read_all, write_all


def replace(path: Path, data: bytes) -> None:
    """Replace the file at `path`, durably, for its owner alone."""
    with drafted(path, path.with_name(f"{path.name}.new")) as fd:
        write_all(fd, data)
        disk.sync(fd)
    sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """Write a new file in the place of `path`, synced, for its owner alone."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
    with closing(permissions.open_file(path, disk.WRITE | disk.NEW)) as fd:
        write_all(fd, data)
        disk.sync(fd)


def read(path: Path) -> bytes | None:
    """The bytes of a file; None if it is missing. A link is not followed, a pipe not waited for.

    Raises:
        OSError: it cannot be read; FileExistsError: something else than a file has its name.
    """
    try:
        with closing(open_regular(path, disk.READ)) as fd:
            return read_all(fd)
    except FileNotFoundError:
        return None


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    with closing(disk.open(path, disk.READ, follow=True)) as fd:
        disk.sync(fd)
