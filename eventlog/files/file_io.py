"""Reads and writes files: appends complete lines, overwrites bytes in place, and replaces small files."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memlog.eventlog.files import disk

# The umask only removes bits from the mode at creation, so others have no access even for a moment.

_FOLDER = 0o700
_FILE = 0o600


def make_folder(path: Path | str, *, folder: int | None = None) -> None:
    """Create a folder with full access for its owner, whatever the umask."""
    disk.make_folder(path, folder=folder)
    if disk.status_of_path(path, folder=folder).st_mode & _FOLDER != _FOLDER:
        disk.set_mode(path, _FOLDER, folder=folder)


def open_file(path: Path | str, flags: int, *, folder: int | None = None) -> int:
    """Open a file; its owner can read and write a new one, whatever the umask. See `disk.open`."""
    fd = disk.open(path, flags, folder=folder)
    try:
        made = disk.status_of_descriptor(fd)
        if made.st_size == 0 and stat.S_ISREG(made.st_mode) and made.st_mode & _FILE != _FILE:
            disk.set_mode(fd, _FILE)
    except BaseException:
        disk.close(fd)
        raise
    return fd


_BLOCK = 1024 * 1024
_TAIL_BLOCK = 64 * 1024
_GROWTH = 8
_FRUITLESS_WRITES = 16
"""After this many writes in a row that stored no whole line, the disk counts as broken."""


def write_lines(fd: int, lines: list[bytes]) -> list[int]:
    """Append `lines`, each in one piece, and return their offsets.

    A line that was cut short, or that ran into a line from a writer that ignored the lock, is written again
    on a new line. The fragment stays in the file and is quarantined, since nothing is ever truncated.

    Raises OSError if the disk does not accept all lines; those already written stay.
    """
    offsets: list[int] = []
    fruitless = 0
    while len(offsets) < len(lines):
        lead = b"" if is_line_start(fd, disk.status_of_descriptor(fd).st_size) else b"\n"
        data = lead + b"".join(lines[len(offsets) :])
        written = disk.write(fd, data)
        # With O_APPEND the kernel has just set the descriptor's offset to the end of what it wrote.
        start = disk.position_of_descriptor(fd) - written
        if not lead and not is_line_start(fd, start):
            continue
        offset, end, whole = start + len(lead), start + written, len(offsets)
        for line in lines[len(offsets) :]:
            if offset + len(line) > end:
                break
            offsets.append(offset)
            offset += len(line)
        fruitless = 0 if len(offsets) > whole else fruitless + 1
        if fruitless == _FRUITLESS_WRITES:
            raise OSError(errno.EIO, "cannot write a whole line to the disk")
    return offsets


@contextmanager
def closing_descriptor(fd: int) -> Iterator[int]:
    """Close the descriptor on leaving the context."""
    try:
        yield fd
    finally:
        disk.close(fd)


def is_line_start(fd: int, offset: int) -> bool:
    """Whether a line starts at `offset`."""
    return offset == 0 or disk.read(fd, 1, offset - 1) == b"\n"


def read_blocks(fd: int, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of an open file from `start` to `end` (None: the end of the file) in 1 MiB blocks."""
    while end is None or start < end:
        block = disk.read(fd, _BLOCK if end is None else min(_BLOCK, end - start), start)
        if not block:
            return
        yield block
        start += len(block)


def read_all(fd: int) -> bytes:
    """Read all bytes of an open file."""
    return b"".join(read_blocks(fd))


def read_lines_backwards(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes after the last newline before `end`, then the preceding lines, last to first."""
    rest, size = b"", _TAIL_BLOCK
    while end > start:
        begin = max(start, end - size)
        rest, *lines = (disk.read(fd, end - begin, begin) + rest).split(b"\n")
        yield from reversed(lines)
        end, size = begin, size * _GROWTH
    yield rest


def open_regular_file(path: Path | str, flags: int, *, folder: int | None = None) -> int:
    """Open a regular file; see `open_file`. Raises OSError; FileExistsError if it is not a regular file."""
    try:
        fd = (disk.open if flags == disk.READ else open_file)(path, flags, folder=folder)
    except OSError as error:
        # It is a link, a socket, or a folder opened for writing.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"not a regular file: {Path(path).name}") from error
        raise
    try:
        check_is_regular_file(fd)
    except BaseException:
        disk.close(fd)
        raise
    return fd


def check_is_regular_file(fd: int) -> None:
    """Raise FileExistsError unless `fd` is a regular file; pipes and devices may block or lose bytes."""
    if not stat.S_ISREG(disk.status_of_descriptor(fd).st_mode):
        raise FileExistsError(errno.EEXIST, "something other than a regular file has its name")


def file_identity(status: os.stat_result) -> tuple[int, int]:
    """Return the device and inode of a file."""
    return status.st_dev, status.st_ino


def as_file_not_found(error: OSError) -> OSError:
    """Return FileNotFoundError if `error` means that the expected file is missing, otherwise `error` itself.

    A file counts as missing if a link or a file replaced one of its folders, if something else replaced the
    file itself, or if its name is too long.
    """
    if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.ENAMETOOLONG):
        return FileNotFoundError(errno.ENOENT, error.strerror, error.filename)
    return error


def status_at(path: Path | str, *, folder: int | None = None) -> os.stat_result | None:
    """Return the status of `path` without following links; None if it does not exist. Raises OSError."""
    try:
        return disk.status_of_path(path, folder=folder)
    except OSError as error:
        if isinstance(as_file_not_found(error), FileNotFoundError):
            return None
        raise


def is_regular_file(path: Path) -> bool:
    """Whether `path` is a regular file. Raises OSError."""
    status = status_at(path)
    return status is not None and stat.S_ISREG(status.st_mode)


def is_same_file_at(path: Path | str, status: os.stat_result, *, folder: int | None = None) -> bool:
    """Whether `path` is still the file with this status. Raises OSError."""
    there = status_at(path, folder=folder)
    return there is not None and file_identity(there) == file_identity(status)


def file_version(status: os.stat_result | None) -> tuple[int, ...]:
    """Return a value that changes with the file's contents; it ignores the mtime, which a scrub restores."""
    return () if status is None else (*file_identity(status), status.st_size, status.st_ctime_ns)


@contextmanager
def replacing_file(path: Path, draft: Path) -> Iterator[int]:
    """Yield a descriptor for the new file `draft`, then rename it to `path`. Does not sync."""
    with suppress(FileNotFoundError):
        disk.unlink(draft)
    with closing_descriptor(open_file(draft, disk.WRITE | disk.NEW)) as fd:
        yield fd
    disk.rename(draft, path)


def replace_file(path: Path, data: bytes) -> None:
    """Replace the file at `path` durably; only its owner may read it."""
    with replacing_file(path, path.with_name(f"{path.name}.new")) as fd:
        write_all(fd, data)
        disk.sync(fd)
    sync_path(path.parent)


def write_new_file(path: Path, data: bytes) -> None:
    """Write and sync a new file at `path`, replacing an old one; only its owner may read it."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
    with closing_descriptor(open_file(path, disk.WRITE | disk.NEW)) as fd:
        write_all(fd, data)
        disk.sync(fd)


def read_file(path: Path) -> bytes | None:
    """Read a file; return None if it is missing. Never follows links or blocks on a pipe.

    Raises OSError; FileExistsError if it is not a regular file.
    """
    try:
        with closing_descriptor(open_regular_file(path, disk.READ)) as fd:
            return read_all(fd)
    except FileNotFoundError:
        return None


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    with closing_descriptor(disk.open(path, disk.READ, follow=True)) as fd:
        disk.sync(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, even if single writes are short."""
    left = memoryview(data)
    while left:
        left = left[disk.write(fd, left) :]


def overwrite_all(fd: int, data: bytes, offset: int) -> None:
    """Overwrite the bytes from `offset` with all of `data`."""
    left = memoryview(data)
    while left:
        done = disk.overwrite(fd, left, offset)
        left, offset = left[done:], offset + done


@contextmanager
def keeping_mtime(fd: int, keeps: bool) -> Iterator[None]:
    """Restore the file's mtime on leaving the context, if `keeps`.

    File sync prefers the later mtime: after an erasure on this machine, our copy of another writer's file
    must not replace the original, which may have grown.
    """
    before = disk.status_of_descriptor(fd)
    yield
    if keeps:
        # Only the file's owner may set its times.
        with suppress(PermissionError):
            disk.set_times(fd, before.st_atime_ns, before.st_mtime_ns)
