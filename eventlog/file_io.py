"""Adding whole lines to a file of the log, whatever stands at its end."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memlog.eventlog import disk

_FRUITLESS_WRITES = 16
"""So many writes in a row that end no line are no accident; each leaves a fragment."""


def write_lines(fd: int, lines: list[bytes]) -> list[int]:
    """Append `lines`, each whole, and return their offsets.

    A line that was cut short, or that a writer without the lock got in front of, is written again on a
    line of its own: the fragment is left for the quarantine, since nothing is ever truncated.

    Raises:
        OSError: the disk does not take them; those that it took stay.
    """
    offsets: list[int] = []
    fruitless = 0
    while len(offsets) < len(lines):
        lead = b"" if ends_with_newline(fd, disk.status(fd).st_size) else b"\n"
        data = lead + b"".join(lines[len(offsets) :])
        written = disk.write(fd, data)
        # With O_APPEND the kernel has just set the descriptor's offset to the end of what it wrote.
        start = disk.position(fd) - written
        if not lead and not ends_with_newline(fd, start):
            continue
        offset, end, whole = start + len(lead), start + written, len(offsets)
        for line in lines[len(offsets) :]:
            if offset + len(line) > end:
                break
            offsets.append(offset)
            offset += len(line)
        fruitless = 0 if len(offsets) > whole else fruitless + 1
        if fruitless == _FRUITLESS_WRITES:
            raise OSError(errno.EIO, "the disk takes no whole line")
    return offsets


def ends_with_newline(fd: int, offset: int) -> bool:
    """Whether a line begins at `offset`."""
    return offset == 0 or disk.read(fd, 1, offset - 1) == b"\n"


def is_regular(fd: int) -> bool:
    """Whether it is a file: a pipe or device would block, or swallow what is written to it."""
    return stat.S_ISREG(disk.status(fd).st_mode)


def check_regular(fd: int) -> None:
    """Raises FileExistsError where no file is open; see `is_regular`."""
    if not is_regular(fd):
        raise FileExistsError(errno.EEXIST, "something that is no regular file has the name of one")


def identity(status: os.stat_result) -> tuple[int, int]:
    """The device and inode of a file of this status."""
    return status.st_dev, status.st_ino


def overwrite_all(fd: int, data: bytes, offset: int) -> None:
    """Write over what stands at `offset`, whole, however little the disk takes at once."""
    left = memoryview(data)
    while left:
        done = disk.overwrite(fd, left, offset)
        left, offset = left[done:], offset + done


@contextmanager
def keeping_time(fd: int, keeps: bool) -> Iterator[None]:
    """Give a file that changes in the context the mtime that it had, where it `keeps` that.

    A file sync takes the file with the later mtime for the newer one. What is erased in this copy of another
    writer's file must not take the place of the original, to which lines may have come.
    """
    before = disk.status(fd)
    yield
    if keeps:
        # Only the file's owner may set its times.
        with suppress(PermissionError):
            disk.set_times(fd, before.st_atime_ns, before.st_mtime_ns)
