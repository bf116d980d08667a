"""Reads `log/seals.jsonl` as bytes: all that an append needs of it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memlog.eventlog import disk, privacy
from memlog.eventlog.streams import SEALS
from memlog.eventlog.writing import check_regular

_READ_BLOCK = 1024 * 1024


class SealWatch:
    """Says whether a segment is sealed, to who asks at each append: a look at the file's status, and where
    that has changed one search of its bytes.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen: tuple[int, ...] = ()
        self._unsealed: set[tuple[str, str]] = set()

    def is_sealed(self, stream: str, segment: str) -> bool:
        """Whether `segment` gets no more lines. Who asks holds its lock, so that the answer stays true.

        Raises:
            OSError: the seals cannot be read.
        """
        try:
            status = disk.look(self._log / SEALS)
        except FileNotFoundError:
            return False
        if seen(status) != self._seen:
            self._unsealed.clear()
            self._seen = seen(status)
        if (stream, segment) not in self._unsealed:
            if _says(self._log, stream, segment):
                return True
            self._unsealed.add((stream, segment))
        return False


def read_bytes(log: Path) -> bytes:
    """The bytes of the seals; nothing, too, where the file is none: `read_seals` tells of it.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with opened(log, disk.READ) as fd:
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
def opened(log: Path, flags: int) -> Iterator[int]:
    """A descriptor of seals.jsonl.

    Raises:
        FileExistsError: it is a link, a folder, a pipe or a device.
        OSError: it is not there, or cannot be opened.
    """
    fd = _open_file(log, flags)
    try:
        check_regular(fd)
        yield fd
    finally:
        disk.close(fd)


def seen(status: os.stat_result) -> tuple[int, ...]:
    """What changes with the file: as long as it does not, the bytes are those that were read."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _says(log: Path, stream: str, segment: str) -> bool:
    """Whether there is a seal of `segment`. Where no line looks like one, none is decoded."""
    data = read_bytes(log)
    beginning = msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
    if beginning not in data:
        return False
    # Imported here: most appends find no seal of their segment.
    from memlog.eventlog.seals.index import SealIndex

    return SealIndex(data).standing(stream, segment) is not None


def _open_file(log: Path, flags: int) -> int:
    try:
        return (privacy.open_file if flags & disk.CREATE else disk.open)(log / SEALS, flags)
    except OSError as error:
        # A link, which is not followed; a socket; a folder that is to be written.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{SEALS} is no regular file") from error
        raise
