"""Measures a segment: size, lines and hash, for its seal."""

import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.file_io import check_regular, closing, status_at
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.hashing import sha256
from memlog.eventlog.seals.format import Held, Seal
from memlog.eventlog.segment import Line, opened, read_blanked

_READ_BLOCK = 1024 * 1024


def measured(log: Path, stream: str, segment: str) -> Held:
    """The size and hash of a segment. Raises OSError."""
    with opened(log, stream, segment) as fd:
        return held_in(fd)


def made_durable(log: Path, stream: str, segment: str) -> Held:
    """As `measured`, after making the segment and its name durable."""
    with entered(log, stream) as folders, closing(disk.open(segment, disk.READ, folder=folders[-1])) as fd:
        disk.sync_data(fd)
        for folder in reversed(folders):
            disk.sync(folder)
        sync_folder(log.parent)
        return held_in(fd)


def held_by(log: Path, stream: str, segment: str) -> Held | None:
    """As `measured`; None if the segment is missing or a link."""
    if size_of(log, stream, segment) is None:
        return None
    with suppress(FileNotFoundError):
        return measured(log, stream, segment)
    return None


def has_grown(log: Path, old: Seal) -> bool:
    """Whether a segment has all of its sealed bytes, and more."""
    with suppress(FileNotFoundError), opened(log, *old.name) as fd:
        return disk.status(fd).st_size > old.bytes and old.is_of(held_in(fd, old.bytes))
    return False


def size_of(log: Path, stream: str, segment: str) -> int | None:
    """The size of a segment in bytes; None if it is missing or no regular file."""
    # A text: making a path takes longer than the system call.
    status = status_at(f"{log}/{stream}/{segment}")
    return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None


def held_in(fd: int, end: int | None = None, blanked: Sequence[Line] = ()) -> Held:
    """The size and hash of an open file, or of its first `end` bytes, as if the lines `blanked` were erased.

    blanked: sorted.

    Raises FileExistsError if it is no regular file, OSError if it cannot be read.
    """
    check_regular(fd)
    digest, size, lines, last = sha256(), 0, 0, b"\n"
    while block := read_blanked(
        fd, _READ_BLOCK if end is None else min(_READ_BLOCK, end - size), size, blanked
    ):
        digest.update(block)
        size += len(block)
        lines += block.count(b"\n")
        last = block[-1:]
    return Held(size, lines + (last != b"\n"), digest.hexdigest())
