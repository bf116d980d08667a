"""Reads files of seals as bytes: all that an append needs of them."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import check_regular
from memlog.eventlog.layout import seals_file

if TYPE_CHECKING:
    from memlog.eventlog.seals.index import SealIndex

_READ_BLOCK = 1024 * 1024


class SealWatch:
    """Answers whether a writer has sealed a segment of its own. Every append asks, so this looks at the
    status of the writer's file, and searches its bytes only where that has changed.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen: tuple[int, ...] = ()
        self._unsealed: set[tuple[str, str]] = set()
        self._index: SealIndex | None = None

    def is_sealed(self, stream: str, segment: str, writer: str) -> bool:
        """Whether a writer's segment gets no more lines. The caller holds its lock, so the answer stays true.

        Raises:
            OSError: the seals cannot be read.
        """
        name = seals_file(writer)
        try:
            # To join paths takes 2 of the 100 microseconds of an append.
            status = disk.look(f"{self._log}/{name}")
        except FileNotFoundError:
            return False
        if seen(status) != self._seen:
            self._unsealed.clear()
            self._seen, self._index = seen(status), None
        if (stream, segment) not in self._unsealed:
            if self._says(name, stream, segment):
                return True
            self._unsealed.add((stream, segment))
        return False

    def _says(self, name: str, stream: str, segment: str) -> bool:
        """Whether a file has a seal of `segment`. Where no line looks like one, none is decoded."""
        if self._index is None:
            data = bytes_of(self._log, name)
            if msgspec.json.encode({"stream": stream, "segment": segment})[:-1] not in data:
                return False
            # Imported here: most appends find no seal of their segment.
            from memlog.eventlog.seals.index import SealIndex

            self._index = SealIndex(data)
        return self._index.standing(stream, segment) is not None


def bytes_of(log: Path, name: str) -> bytes:
    """The bytes of one file of seals; nothing where there is no regular file of this name.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with opened(log, disk.READ, name) as fd:
            return all_of(fd)
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        return b""


def all_of(fd: int) -> bytes:
    """The bytes of the open file."""
    blocks, size = [], 0
    while block := disk.read(fd, _READ_BLOCK, size):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


@contextmanager
def opened(log: Path, flags: int, name: str) -> Iterator[int]:
    """A descriptor of a file of seals.

    Raises:
        FileExistsError: it is a link, a folder, a pipe or a device.
        OSError: it is not there, or cannot be opened.
    """
    fd = _open_file(log, flags, name)
    try:
        check_regular(fd)
        yield fd
    finally:
        disk.close(fd)


def seen(status: os.stat_result) -> tuple[int, ...]:
    """What changes with the file: as long as it does not, the bytes are those that were read.

    Not its mtime, which a scrub restores.
    """
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _open_file(log: Path, flags: int, name: str) -> int:
    try:
        return (permissions.open_file if flags & disk.CREATE else disk.open)(log / name, flags)
    except OSError as error:
        # A link, which is not followed; a socket; a folder that is to be written.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{name} is no regular file") from error
        raise
