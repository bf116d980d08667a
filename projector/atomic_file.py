"""Small files that are replaced as a whole, so that neither a kill nor a power cut leaves half of one."""

from contextlib import suppress
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import check_regular

_BLOCK = 1024 * 1024


def replace(path: Path, data: bytes) -> None:
    """Make `path` say `data`, for its owner alone. What is done after it is so after a power cut, too."""
    fresh = path.with_name(f"{path.name}.new")
    write(fresh, data)
    disk.rename(fresh, path)
    sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """A new file in the place of `path`, synced, for its owner alone."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
    fd = permissions.open_file(path, disk.WRITE | disk.NEW)
    try:
        left = memoryview(data)
        while left:
            left = left[disk.write(fd, left) :]
        disk.sync(fd)
    finally:
        disk.close(fd)


def read(path: Path) -> bytes | None:
    """What `path` says; None where nothing stands there. A link is not followed, a pipe not waited for.

    Raises:
        OSError: it cannot be read; FileExistsError: something else than a file has its name.
    """
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        return None
    try:
        check_regular(fd)
        found = b""
        while block := disk.read(fd, _BLOCK, len(found)):
            found += block
        return found
    finally:
        disk.close(fd)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    fd = disk.open(path, disk.READ, follow=True)
    try:
        disk.sync(fd)
    finally:
        disk.close(fd)
