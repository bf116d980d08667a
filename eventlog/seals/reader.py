"""Reads files of seals as bytes: all that an append needs of them."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import check_regular, file_version
from memlog.eventlog.layout import seals_file

if TYPE_CHECKING:
    from memlog.eventlog.seals.files import SealFiles

_READ_BLOCK = 1024 * 1024


class SealWatch:
    """Answers whether a writer has sealed a segment of its own.

    Every append asks, so this compares the status of the writer's seals file, and reads it after a change.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._version: tuple[int, ...] = ()
        self._unsealed: set[tuple[str, str]] = set()
        self._files: SealFiles | None = None

    def files(self, writer: str) -> "SealFiles":
        """The seals that `writer` adds to; indexed once for thousands of segments."""
        # Imported here: most appends seal nothing, and find no seal of their segment.
        from memlog.eventlog.seals.files import SealFiles

        if self._files is None or self._files.writer != writer:
            self._files = SealFiles(self._log, writer)
        return self._files

    def is_sealed(self, stream: str, segment: str, writer: str) -> bool:
        """Whether a writer's segment is sealed. The answer holds as long as the caller locks the segment.

        Raises OSError.
        """
        try:
            # Joining paths takes 2 of the 100 microseconds of an append.
            version = file_version(disk.look(f"{self._log}/{seals_file(writer)}"))
        except FileNotFoundError:
            return False
        if version != self._version:
            self._unsealed.clear()
            self._version = version
        if (stream, segment) not in self._unsealed:
            if self._has_seal(stream, segment, writer):
                return True
            self._unsealed.add((stream, segment))
        return False

    def _has_seal(self, stream: str, segment: str, writer: str) -> bool:
        if self._files is None:
            names = msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
            if names not in bytes_of(self._log, seals_file(writer)):
                return False
        own = self.files(writer).own
        own.refresh()
        return own.standing(stream, segment) is not None


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


def _open_file(log: Path, flags: int, name: str) -> int:
    try:
        return (permissions.open_file if flags & disk.CREATE else disk.open)(log / name, flags)
    except OSError as error:
        # A link, which is not followed; a socket; a folder that is to be written.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{name} is no regular file") from error
        raise
