"""Files that are valid in this copy of a store alone.

Their first line has their own inode. A copied file (cp, rsync, git, a restored backup) has another inode, and
is ignored.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.encoding import decoded
from memlog.eventlog.file_io import closing, drafted, open_regular, overwrite_all, read_all, write_all


class Origin(msgspec.Struct, frozen=True):
    """Identifies a file among its copies and earlier files with its inode; see `disk.generation`."""

    inode: int
    generation: int | None

    @classmethod
    def of(cls, fd: int) -> "Origin":
        """The origin of an open file."""
        return cls(disk.status(fd).st_ino, disk.generation(fd))


def lines_in(path: Path, most: int | None = None) -> bytes:
    """At most `most` bytes of a file; b"" if it is missing, a copy, or no regular file. Raises OSError."""
    try:
        fd = open_regular(path, disk.READ)
    except (FileNotFoundError, FileExistsError):
        return b""
    with closing(fd):
        data = read_all(fd) if most is None else disk.read(fd, most, 0)
        return data if decoded(data.split(b"\n", 1)[0], Origin) == Origin.of(fd) else b""


def replace(path: Path, lines: Iterable[msgspec.Struct]) -> bytes:
    """Replace a file by one with these lines, without a sync. Returns its bytes. Raises OSError."""
    with drafted(path, path.with_name(f"{path.name}.draft")) as fd:
        data = b"".join(map(line_of, [Origin.of(fd), *lines]))
        overwrite_all(fd, data, 0)
    return data


def append(path: Path, lines: Iterable[msgspec.Struct], *, is_torn: bool) -> bytes:
    """Append lines, after ending a torn last line. Returns the new bytes. Raises OSError."""
    added = b"\n" * is_torn + b"".join(map(line_of, lines))
    with closing(disk.open(path, disk.APPEND)) as fd:
        write_all(fd, added)
    return added


def line_of(value: msgspec.Struct) -> bytes:
    """The line of `value`."""
    return msgspec.json.encode(value) + b"\n"
