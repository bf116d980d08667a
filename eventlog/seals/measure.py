"""What a segment holds, which a seal is made of and compared with."""

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.file_io import check_regular
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.seals.format import Held, Seal
from memlog.eventlog.segment import Line, read_blanked

_READ_BLOCK = 1024 * 1024


def measured(log: Path, stream: str, segment: str) -> Held:
    """What a segment holds now.

    Raises:
        OSError: it is gone, or cannot be read.
    """
    with _opened_segment(log, stream, segment) as (fd, _):
        return held_in(fd)


def made_durable(log: Path, stream: str, segment: str) -> Held:
    """What a segment holds, once that and its name are durable."""
    with _opened_segment(log, stream, segment) as (fd, folders):
        disk.sync_data(fd)
        for folder in reversed(folders):
            disk.sync(folder)
        sync_folder(log.parent)
        return held_in(fd)


def held_by(log: Path, stream: str, segment: str) -> Held | None:
    """What a segment holds; None where none stands, or what stands there is a link."""
    if size_of(log, stream, segment) is None:
        return None
    with suppress(FileNotFoundError):
        return measured(log, stream, segment)
    return None


def has_grown(log: Path, old: Seal) -> bool:
    """Whether a segment has all that it was sealed with, and more."""
    with suppress(FileNotFoundError), _opened_segment(log, old.stream, old.segment) as (fd, _):
        return disk.status(fd).st_size > old.bytes and old.is_of(held_in(fd, old.bytes))
    return False


def size_of(log: Path, stream: str, segment: str) -> int | None:
    """How long a segment is; None where none stands."""
    try:
        # A text: there are many, and making a path takes longer than looking.
        status = disk.look(f"{log}/{stream}/{segment}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def _opened_segment(log: Path, stream: str, segment: str) -> Iterator[tuple[int, list[int]]]:
    """A descriptor of a segment, and those of the folders on the way to it."""
    with entered(log, stream) as folders:
        fd = disk.open(segment, disk.READ, folder=folders[-1])
        try:
            yield fd, folders
        finally:
            disk.close(fd)


def held_in(fd: int, end: int | None = None, blanked: Sequence[Line] = ()) -> Held:
    """What the open file holds, or its first `end` bytes; as it is when the lines `blanked` are erased.

    blanked: in order.

    Raises:
        FileExistsError: it is no regular file. OSError: it cannot be read.
    """
    from hashlib import sha256

    check_regular(fd)
    found, size, lines, last = sha256(), 0, 0, b"\n"
    while block := read_blanked(
        fd, _READ_BLOCK if end is None else min(_READ_BLOCK, end - size), size, blanked
    ):
        found.update(block)
        size += len(block)
        lines += block.count(b"\n")
        last = block[-1:]
    return Held(size, lines + (last != b"\n"), found.hexdigest())
