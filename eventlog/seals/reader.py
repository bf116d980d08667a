"""Reads seals files as bytes: all that an append needs."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.file_io import check_regular, closing, read_all


def bytes_of(log: Path, name: str) -> bytes:
    """The bytes of a seals file; b"" if it is missing or no regular file. Raises OSError."""
    try:
        with opened(log, disk.READ, name) as fd:
            return read_all(fd)
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        return b""


@contextmanager
def opened(log: Path, flags: int, name: str) -> Iterator[int]:
    """A context with a descriptor of a seals file.

    Raises:
        FileExistsError: it is no regular file. OSError: it is missing or cannot be opened.
    """
    with closing(_open_file(log, flags, name)) as fd:
        check_regular(fd)
        yield fd


def _open_file(log: Path, flags: int, name: str) -> int:
    try:
        return (permissions.open_file if flags & disk.CREATE else disk.open)(log / name, flags)
    except OSError as error:
        # A link; a socket; a folder opened for writing.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{name} is no regular file") from error
        raise
