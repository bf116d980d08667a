"""Reads a segment: its lines and fingerprints of its bytes."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.decode import is_whole
from memlog.eventlog.file_io import blocks, closing, missing_or, open_regular
from memlog.eventlog.folders import entered
from memlog.eventlog.hashing import sha256, short_sha256
from memlog.eventlog.quarantine import MAX_LINE

_CHAIN_BLOCK = 64 * 1024
_TAIL = 4 * 1024


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a segment.

    data: its bytes without the newline; None for a line over 16 MiB, which is not loaded.
    length: in bytes, without the newline.
    number: 1 for the segment's first line.
    end: the offset of the next line.
    nuls_before, nuls_behind: NUL bytes around it, not part of it.
    """

    offset: int
    number: int
    length: int
    end: int
    data: bytes | None
    nuls_before: int = 0
    nuls_behind: int = 0

    @property
    def is_open(self) -> bool:
        """Whether no newline ends it."""
        return self.end == self.offset + self.length + self.nuls_behind


@contextmanager
def opened(log: Path, stream: str, filename: str) -> Iterator[int]:
    """A context with a descriptor that reads a segment, through no link below `log`.

    Raises FileNotFoundError if it is gone, or something else has its name or that of its folder; OSError.
    """
    try:
        with entered(log, stream) as folders:
            fd = open_regular(filename, disk.READ, folder=folders[-1])
    except OSError as error:
        error.filename = f"{log}/{stream}/{filename}"
        raise missing_or(error) from None
    with closing(fd):
        yield fd


def read_lines(
    fd: int, start: int = 0, *, end: int | None = None, number: int = 1, tail_is_a_line: bool = False
) -> Iterator[Line]:
    r"""The lines from `start`, where a line begins, to `end` (None: the end of the file).

    Only b"\n" ends a line. Bytes after the last newline are a line if `tail_is_a_line`, or if memlog wrote
    them and they are whole; otherwise a writer may not have finished. NUL bytes around a line are not part of
    it.
    """
    offset = start
    has_nuls = False
    pending: list[bytes] = []
    pending_length = 0
    for block in blocks(fd, start, end):
        # One search per block is faster than one per line.
        has_nuls = has_nuls or b"\0" in block
        first, *others = block.split(b"\n")
        pending_length += len(first)
        # A line too long to be an event is measured, not kept.
        pending = [*pending, first] if pending_length <= MAX_LINE else []
        for next_first in others:
            data = b"".join(pending) if pending_length <= MAX_LINE else None
            line = Line(offset, number, pending_length, offset + pending_length + 1, data)
            yield _without_nuls(line) if has_nuls else line
            offset += pending_length + 1
            number += 1
            pending, pending_length = [next_first], len(next_first)
    data = b"".join(pending) if pending_length <= MAX_LINE else None
    if pending_length and (tail_is_a_line or (data is not None and is_whole(data))):
        yield _without_nuls(Line(offset, number, pending_length, offset + pending_length, data))


def _without_nuls(line: Line) -> Line:
    """`line` without the NUL bytes around it, which a file system leaves for data that was not written before
    a power cut. A line of NUL bytes alone is blank.
    """
    if line.data is None:
        return line
    rest = line.data.lstrip(b"\0")
    data = rest.rstrip(b"\0")
    before, behind = line.length - len(rest), len(rest) - len(data)
    return Line(line.offset + before, line.number, len(data), line.end, data, before, behind)


def line_at(log: Path, stream: str, filename: str, offset: int, length: int) -> bytes:
    """The bytes of one line."""
    with opened(log, stream, filename) as fd:
        return disk.read(fd, length, offset)


def read_blanked(fd: int, length: int, offset: int, blanked: Sequence[Line]) -> bytes:
    """As `disk.read`, with spaces in place of the lines `blanked`, which are sorted."""
    data = disk.read(fd, length, offset)
    if not blanked:
        return data
    masked = bytearray(data)
    first = bisect_right(blanked, offset, key=lambda line: line.end)
    last = bisect_left(blanked, offset + len(data), key=lambda line: line.offset)
    for line in blanked[first:last]:
        start = max(0, line.offset - offset)
        end = max(start, min(len(data), line.offset + line.length - offset))
        masked[start:end] = b" " * (end - start)
    return bytes(masked)


class Fingerprint(msgspec.Struct, frozen=True):
    """Hashes of a segment's first `offset` bytes.

    tail: sha256 of the 4 KiB before `offset`: a cheap test whether a grown file is still the same.
    chain: chained sha256 of all whole blocks of 64 KiB, so that extending it hashes only new bytes.
    rest: sha256 of the bytes between the last whole block and `offset`.
    """

    offset: int
    tail: bytes
    chain: bytes
    rest: bytes

    def matches_tail(self, fd: int) -> bool:
        """Whether the 4 KiB before the offset are unchanged."""
        return _tail_hash(fd, self.offset) == self.tail

    def matches(self, fd: int) -> bool:
        """Whether all bytes before the offset are unchanged."""
        return fingerprint(fd, self.offset) == self

    def matches_rest(self, fd: int) -> bool:
        """Whether the bytes between the last whole block and the offset are unchanged."""
        start = self.offset // _CHAIN_BLOCK * _CHAIN_BLOCK
        return sha256(disk.read(fd, self.offset - start, start)).digest() == self.rest

    def extended(self, fd: int, offset: int, blanked: Sequence[Line] = ()) -> "Fingerprint":
        """The fingerprint of a longer prefix of the file, as if the lines `blanked` (sorted) were erased."""
        chain = self.chain
        whole_before, whole = self.offset // _CHAIN_BLOCK, offset // _CHAIN_BLOCK
        for block in range(whole_before, whole):
            chain = sha256(chain + read_blanked(fd, _CHAIN_BLOCK, block * _CHAIN_BLOCK, blanked)).digest()
        rest = read_blanked(fd, offset - whole * _CHAIN_BLOCK, whole * _CHAIN_BLOCK, blanked)
        return Fingerprint(offset, _tail_hash(fd, offset, blanked), chain, sha256(rest).digest())


def fingerprint(fd: int, offset: int, blanked: Sequence[Line] = ()) -> Fingerprint:
    """The fingerprint of a file's first `offset` bytes, as if the lines `blanked` (sorted) were erased."""
    return UNREAD.extended(fd, offset, blanked)


def _tail_hash(fd: int, offset: int, blanked: Sequence[Line] = ()) -> bytes:
    start = max(0, offset - _TAIL)
    return sha256(read_blanked(fd, offset - start, start, blanked)).digest()


UNREAD = Fingerprint(0, short_sha256().digest(), b"", short_sha256().digest())
"""The fingerprint of nothing."""
