"""Files in a store that speak of this copy of it alone.

Their first line names the inode of the file itself. A copied one (cp, rsync, git, a restored backup) has
another inode, and counts for nothing.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import is_regular

_BLOCK = 1024 * 1024

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Origin(msgspec.Struct, frozen=True):
    """Tells a file from its copies, and from an earlier one that had its inode; see `disk.generation`."""

    inode: int
    generation: int | None

    @classmethod
    def of(cls, fd: int) -> "Origin":
        """That of an open file."""
        return cls(disk.status(fd).st_ino, disk.generation(fd))


def lines_in(path: Path, most: int | None = None) -> bytes:
    """The lines of a file; none where it is missing or a copy, or no regular file has its name.

    most: so many bytes are enough.

    Raises:
        OSError: it cannot be read.
    """
    try:
        fd = disk.open(path, disk.READ)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        return b""
    try:
        if not is_regular(fd):
            return b""
        blocks, size = [], 0
        while size != most and (block := disk.read(fd, most or _BLOCK, size)):
            blocks.append(block)
            size += len(block)
        here = Origin.of(fd)
    finally:
        disk.close(fd)
    data = b"".join(blocks)
    return data if decoded(data.split(b"\n", 1)[0], Origin) == here else b""


def replace(path: Path, lines: Iterable[msgspec.Struct]) -> bytes:
    """Put a file with these lines in the place of one that may be there, and return what it holds.

    Nothing is synced: a file that a power cut takes counts for nothing.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f"{path.name}.draft")
    with suppress(FileNotFoundError):
        disk.unlink(draft)
    fd = permissions.open_file(draft, disk.APPEND | disk.NEW)
    try:
        data = b"".join(map(line_of, [Origin.of(fd), *lines]))
        write_all(fd, data)
    finally:
        disk.close(fd)
    disk.rename(draft, path)
    return data


def append(path: Path, lines: Iterable[msgspec.Struct], *, is_torn: bool) -> bytes:
    """Add lines to a file, and return what was added; a torn last line is ended first.

    Raises:
        OSError: it cannot be written.
    """
    added = b"\n" * is_torn + b"".join(map(line_of, lines))
    fd = disk.open(path, disk.APPEND)
    try:
        write_all(fd, added)
    finally:
        disk.close(fd)
    return added


def lines_about(data: bytes, stream: str, segment: str) -> Iterator[tuple[int, bytes]]:
    """The lines about one segment with their offsets, the last one first.

    Most stores have thousands of lines, of which one is asked for: they are searched, not decoded.
    """
    names = b"\n" + msgspec.json.encode({"stream": stream, "segment": segment})[:-1] + b","
    end = len(data)
    while (start := data.rfind(names, 0, end)) >= 0:
        newline = data.find(b"\n", start + 1)
        yield start + 1, data[start + 1 : None if newline < 0 else newline]
        end = start


def line_of(value: msgspec.Struct) -> bytes:
    """A line that says `value`."""
    return msgspec.json.encode(value) + b"\n"


def decoded(line: bytes, kind: type[_Struct]) -> _Struct | None:
    """What a line says; None where it is torn, or says something else."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_all(fd: int, data: bytes) -> None:
    """Append `data`, however little the disk takes at once."""
    left = memoryview(data)
    while left:
        left = left[disk.write(fd, left) :]
