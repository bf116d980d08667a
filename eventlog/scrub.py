"""Erasing: the bytes of redacted lines are overwritten in place, so that nothing else of the log moves.

A segment goes in three steps, each synced before the next: the first byte of every line that is to go
becomes `ERASING` (one byte is written, or it is not), then all behind it spaces, then that byte, too. A kill
or a power cut at any moment leaves lines that are whole, that begin with that byte, or that are blank. No
reader takes the second for anything, and the next run finishes them; the redactions say what is to go.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog import disk, locks
from memlog.eventlog.decode import ERASING
from memlog.eventlog.erasures import is_due
from memlog.eventlog.errors import LogError
from memlog.eventlog.file_io import check_regular, identity, keeping_time, overwrite_all
from memlog.eventlog.folders import entered
from memlog.eventlog.quarantine import MAX_LINE
from memlog.eventlog.reader import Key, reading
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.files import SealFiles
from memlog.eventlog.seals.format import Seal
from memlog.eventlog.seals.losses import differing
from memlog.eventlog.seals.measure import held_in
from memlog.eventlog.seals.sealing import blank, reseal
from memlog.eventlog.segment import Line, read_lines
from memlog.eventlog.streams import Segment

_BLOCK = 1024 * 1024
_SPACE = b" "

SealState = Literal[
    "none",  # the segment has none
    "renewed",  # a new one stands in the place of the old one, whose hash is blank
    "arriving",  # bytes are still to come from its writer: the seal is blank until they are here
    "unlike",  # the segment was not as it was sealed before it was erased: the seal stays, and says so
]


class Erased(msgspec.Struct, frozen=True):
    """What was erased of a segment, in lines and bytes, and what became of its seal."""

    segment: Segment
    lines: int
    bytes: int
    seal: SealState


def due_lines(segments: Iterable[Segment], redacted: set[Key]) -> Iterator[tuple[Segment, list[Line]]]:
    """The lines that are to be erased, of each segment that has some; without their bytes.

    redacted: what the redactions of their streams name.

    Raises:
        OSError: a segment cannot be read.
    """
    streams = {stream for stream, _ in redacted}
    for segment in segments:
        if segment.stream not in streams:
            continue
        with reading(segment) as fd:
            lines = read_lines(fd, tail_is_a_line=not segment.is_newest)
            found = [replace(line, data=None) for line in lines if is_due(fd, segment, line, redacted)]
        if found:
            yield segment, found


def erase(
    segment: Segment,
    lines: Iterable[Line],
    redacted: Container[Key],
    *,
    seals: SealFiles,
    lock_timeout: float,
    around: Callable[[int], AbstractContextManager[None]],
) -> Erased:
    """Overwrite `lines` of a segment with spaces, under its lock; those that are not due any more stay.

    around: makes the context in which the bytes of the open segment change.

    Raises:
        Busy: another process held the segment for too long.
        LogError: it was replaced meanwhile. OSError: it cannot be written. The next run finishes it.
    """
    is_foreign = segment.name.writer not in ("", seals.writer)
    with _locked(segment, lock_timeout) as fd:
        due = [line for line in lines if is_due(fd, segment, _again(fd, line), redacted)]
        state = _before(seals, segment, fd, due, lock_timeout, is_foreign=is_foreign) if due else "none"
        with around(fd), keeping_time(fd, is_foreign):
            _overwrite(fd, due)
    if state == "renewed":
        renew_seal(seals, segment, lock_timeout)
    return Erased(segment, len(due), sum(line.length for line in due), state)


def unfinished(segments: Iterable[Segment]) -> list[Segment]:
    """The segments whose seals an erasure has not reached: it was killed between the two, or the seal came
    from another writer after its segment was erased here.

    Raises:
        OSError: the seals or a segment cannot be read.
    """
    found = list(segments)
    if not found:
        return []
    log = found[0].log
    due = {name for name, seal in read_seals(log).standing.items() if seal.is_blank}
    due |= {each.seal.name for each in differing(log) if each.state == "erased here"}
    return [segment for segment in found if _name(segment) in due]


def renew_seal(seals: SealFiles, segment: Segment, lock_timeout: float) -> None:
    """Have the seal of an erased segment say what it holds now. Nothing, where that is so already.

    Raises:
        Busy, OSError: the seals cannot be written.
    """
    reseal(seals, *_name(segment), lock_timeout=lock_timeout)


def _before(
    seals: SealFiles, segment: Segment, fd: int, due: list[Line], lock_timeout: float, *, is_foreign: bool
) -> SealState:
    """Take the hash out of the seals, where the segment is what one of them says, with the lines `due` or
    without, or has only grown since: another hash must never be made for what somebody else has changed."""
    seals.refresh()
    seal = seals.standing(*_name(segment))
    if seal is None:
        return "none"
    if is_foreign and disk.status(fd).st_size < seal.bytes:
        blank(seals, *_name(segment), lock_timeout=lock_timeout)
        return "arriving"
    last = seals.last(*_name(segment))
    if not (seal.is_blank or any(_is_sealed(fd, each, due) for each in last)):
        return "unlike"
    blank(seals, *_name(segment), lock_timeout=lock_timeout)
    return "renewed"


def _is_sealed(fd: int, seal: Seal, due: list[Line]) -> bool:
    """Whether the open segment begins with what a seal says, with the lines `due` or without."""
    return any(seal.sha256 == held_in(fd, seal.bytes, erased).sha256 for erased in ([], due))


@contextmanager
def _locked(segment: Segment, timeout: float) -> Iterator[int]:
    """A segment, open to be written over, and locked."""
    filename = segment.name.filename
    with entered(segment.log, segment.stream) as folders:
        fd = disk.open(filename, disk.WRITE, folder=folders[-1])
        try:
            check_regular(fd)
            locks.acquire(fd, f"{segment.stream}/{filename}", timeout)
            standing = disk.look(filename, folder=folders[-1])
            if identity(standing) != identity(disk.status(fd)):
                raise LogError(f"{segment.stream}/{filename} was replaced meanwhile", hint="memlog scrub")
            yield fd
        finally:
            disk.close(fd)


def _overwrite(fd: int, lines: list[Line]) -> None:
    if not lines:
        return
    for line in lines:
        overwrite_all(fd, ERASING, line.offset)
    disk.sync_data(fd)
    for line in lines:
        for start in range(line.offset + 1, line.offset + line.length, _BLOCK):
            overwrite_all(fd, _SPACE * min(_BLOCK, line.offset + line.length - start), start)
    disk.sync_data(fd)
    for line in lines:
        overwrite_all(fd, _SPACE, line.offset)
    disk.sync_data(fd)


def _again(fd: int, line: Line) -> Line:
    """`line` with the bytes that stand there now; without, where it is too long to be an event."""
    return line if line.length > MAX_LINE else replace(line, data=disk.read(fd, line.length, line.offset))


def _name(segment: Segment) -> tuple[str, str]:
    return segment.stream, segment.name.filename
