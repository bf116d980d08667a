"""Erases redacted lines by overwriting them in place, so that no other byte of the log moves.

Each segment takes three steps, each synced before the next: the first byte of every line becomes `ERASING` (a
single byte is either written or not), the rest of the line becomes spaces, and finally the first byte becomes
a space. So after a kill or a power cut, a line is intact, starts with `ERASING`, or is blank. Readers
skip lines that start with `ERASING`, and the next run finishes them.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.decode import ERASING
from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import (
    closing_descriptor,
    is_same_file_at,
    keeping_mtime,
    open_regular_file,
    overwrite_all,
)
from memlog.eventlog.files.folders import opening_folders_of_stream
from memlog.eventlog.integrity.erasures import is_line_due_for_erasure
from memlog.eventlog.integrity.seal_file import SealFiles, measure_open_file, read_seals
from memlog.eventlog.integrity.seal_losses import find_differing_segments
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.reader import Key, Line, open_segment, read_lines
from memlog.eventlog.log.streams import Segment

_BLOCK = 1024 * 1024
_SPACE = b" "

SealState = Literal[
    "none",  # the segment has no seal
    "renewed",  # sealed again; the old seal's hash is blank
    "arriving",  # its writer's bytes have not all arrived: the seal stays blank until then
    "unlike",  # the segment differed from its seal before the erasure; the seal stays as evidence
]


class Erased(msgspec.Struct, frozen=True):
    """The number of lines and bytes erased in a segment, and the state of its seal."""

    segment: Segment
    lines: int
    bytes: int
    seal: SealState


def find_lines_to_erase(
    segments: Iterable[Segment], redacted: set[Key]
) -> Iterator[tuple[Segment, list[Line]]]:
    """Yield each segment with lines to erase, and those lines, without their bytes. Raises OSError.

    redacted: the targets of all redactions, as (stream, id).
    """
    streams = {stream for stream, _ in redacted}
    for segment in (each for each in segments if each.stream in streams):
        with open_segment(segment) as fd:
            lines = read_lines(fd, tail_is_a_line=not segment.is_newest)
            due = [
                replace(line, data=None)
                for line in lines
                if is_line_due_for_erasure(fd, segment, line, redacted)
            ]
        if due:
            yield segment, due


def erase_lines(
    segment: Segment,
    lines: Iterable[Line],
    redacted: Container[Key],
    *,
    seals: SealFiles,
    lock_timeout: float,
    around: Callable[[int], AbstractContextManager[None]],
) -> Erased:
    """Overwrite the `lines` that still need erasing with spaces, while holding the segment's lock.

    around: returns the context manager for the write, given the segment's descriptor.

    Raises Busy; LogError if the segment was replaced; OSError. The next run then completes the erasure.
    """
    is_foreign = segment.name.writer not in ("", seals.writer)
    with _locking_segment(segment, lock_timeout) as fd:
        due = [
            line for line in lines if is_line_due_for_erasure(fd, segment, _reload_line(fd, line), redacted)
        ]
        state = _blank_seals(seals, segment, fd, due, lock_timeout, is_foreign=is_foreign) if due else "none"
        with around(fd), keeping_mtime(fd, is_foreign):
            _overwrite_lines(fd, due)
    if state == "renewed":
        seals.reseal(*segment.stream_and_filename, lock_timeout=lock_timeout)
    return Erased(segment, len(due), sum(line.length for line in due), state)


def find_unfinished_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Return the erased segments whose seals are out of date. Raises OSError.

    Either the erasure was killed before it resealed them, or another writer's seal arrived later.
    """
    segments = list(segments)
    if not segments:
        return []
    log = segments[0].log
    due = {name for name, seal in read_seals(log).valid_seals.items() if seal.is_blank}
    due |= {segment.seal.name for segment in find_differing_segments(log) if segment.state == "erased here"}
    return [segment for segment in segments if segment.stream_and_filename in due]


def _blank_seals(
    seals: SealFiles, segment: Segment, fd: int, due: list[Line], lock_timeout: float, *, is_foreign: bool
) -> SealState:
    """Blank a segment's seals if its bytes match one of them, with or without the lines `due`.

    Returns the state of the seals. A segment that matches no seal was altered, and a new hash would hide
    that. Bytes beyond the sealed ones are ignored.
    """
    seals.refresh()
    seal = seals.find_valid_seal(*segment.stream_and_filename)
    if seal is None:
        return "none"
    if is_foreign and disk.status_of_descriptor(fd).st_size < seal.bytes:
        seals.blank_seals(*segment.stream_and_filename, lock_timeout=lock_timeout)
        return "arriving"
    held = (
        (old, measure_open_file(fd, old.bytes, gone))
        for old in seals.find_last_seals(*segment.stream_and_filename)
        for gone in ([], due)
    )
    if not (seal.is_blank or any(old.sha256 == now.sha256 for old, now in held)):
        return "unlike"
    seals.blank_seals(*segment.stream_and_filename, lock_timeout=lock_timeout)
    return "renewed"


@contextmanager
def _locking_segment(segment: Segment, timeout: float) -> Iterator[int]:
    """Lock a segment and yield a descriptor for overwriting it."""
    filename = segment.name.filename
    with (
        opening_folders_of_stream(segment.log, segment.stream) as folders,
        closing_descriptor(open_regular_file(filename, disk.WRITE, folder=folders[-1])) as fd,
    ):
        locks.lock_file(fd, f"{segment.stream}/{filename}", timeout)
        if not is_same_file_at(filename, disk.status_of_descriptor(fd), folder=folders[-1]):
            raise LogError(
                f"{segment.stream}/{filename} was replaced in the meantime",
                hint="run store.erasure.scrub() again",
            )
        yield fd


def _overwrite_lines(fd: int, lines: list[Line]) -> None:
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


def _reload_line(fd: int, line: Line) -> Line:
    """Return `line` with its current bytes; a line too long for an event is returned as it is."""
    return line if line.length > MAX_LINE else replace(line, data=disk.read(fd, line.length, line.offset))
