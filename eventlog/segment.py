"""Reading one segment: its lines, and the fingerprint of what was read."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.decode import is_whole
from memlog.eventlog.folders import entered
from memlog.eventlog.quarantine import MAX_LINE

_READ_BLOCK = 1024 * 1024
_CHAIN_BLOCK = 64 * 1024
_TAIL = 4 * 1024


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a segment.

    data: its bytes without the newline; None where it has more than 16 MiB and was not loaded.
    length: in bytes, without the newline.
    number: 1 for the segment's first line.
    end: where the next line begins.
    nuls_before, nuls_behind: NUL bytes that stood around it, which are none of its own.
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
    """A descriptor that reads a segment.

    Raises:
        OSError: it is gone; or it, or a folder on the way from `log`, is a link.
    """
    with entered(log, stream) as folders:
        fd = disk.open(filename, disk.READ, folder=folders[-1])
    try:
        yield fd
    finally:
        disk.close(fd)


def read_lines(
    fd: int, start: int = 0, *, end: int | None = None, number: int = 1, tail_is_a_line: bool = False
) -> Iterator[Line]:
    r"""The lines from `start`, where a line begins, to `end` (None: as far as the file goes).

    Lines end at b"\n" and nothing else. Bytes behind the last newline are a line where `tail_is_a_line`, or
    where they are a whole one of memlog's; others a writer may still be at. NUL bytes around a line are left
    out of it.
    """
    offset = position = start
    has_nuls = False
    pending: list[bytes] = []
    pending_length = 0
    while block := disk.read(fd, _READ_BLOCK if end is None else min(_READ_BLOCK, end - position), position):
        position += len(block)
        # A look at the whole block: ordinary lines are not asked one by one.
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
    """`line` without the NUL bytes around it, which a file system leaves where a power cut found data that
    was not written yet. A line of nothing else is blank."""
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
    """As `disk.read`, with spaces in the place of the lines `blanked`, which are in order."""
    data = disk.read(fd, length, offset)
    if not blanked:
        return data
    found = bytearray(data)
    first = bisect_right(blanked, offset, key=lambda line: line.end)
    last = bisect_left(blanked, offset + len(data), key=lambda line: line.offset)
    for line in blanked[first:last]:
        start = max(0, line.offset - offset)
        end = max(start, min(len(data), line.offset + line.length - offset))
        found[start:end] = b" " * (end - start)
    return bytes(found)


class Fingerprint(msgspec.Struct, frozen=True):
    """What a segment's first `offset` bytes were.

    offset: in bytes.
    tail: sha256 of the 4 KiB before `offset`: a cheap look whether a grown file still is the same one.
    chain: a hash over all whole blocks of 64 KiB, each with the hash before it, so that reading on costs
        the new bytes and not the segment.
    rest: sha256 of what stands between the last whole block and `offset`.
    """

    offset: int
    tail: bytes
    chain: bytes
    rest: bytes

    def matches_tail(self, fd: int) -> bool:
        """Whether the 4 KiB before the offset are what they were."""
        return _tail_hash(fd, self.offset) == self.tail

    def matches(self, fd: int) -> bool:
        """Whether all bytes before the offset are what they were."""
        return fingerprint(fd, self.offset) == self

    def matches_rest(self, fd: int) -> bool:
        """Whether the bytes between the last whole block and the offset are what they were."""
        start = self.offset // _CHAIN_BLOCK * _CHAIN_BLOCK
        return sha256(disk.read(fd, self.offset - start, start)).digest() == self.rest

    def extended(self, fd: int, offset: int, blanked: Sequence[Line] = ()) -> "Fingerprint":
        """The fingerprint of a longer prefix of the same file, as it is when the lines `blanked` are erased.

        blanked: in order.
        """
        chain = self.chain
        whole_before, whole = self.offset // _CHAIN_BLOCK, offset // _CHAIN_BLOCK
        for block in range(whole_before, whole):
            chain = sha256(chain + read_blanked(fd, _CHAIN_BLOCK, block * _CHAIN_BLOCK, blanked)).digest()
        rest = read_blanked(fd, offset - whole * _CHAIN_BLOCK, whole * _CHAIN_BLOCK, blanked)
        return Fingerprint(offset, _tail_hash(fd, offset, blanked), chain, sha256(rest).digest())


def fingerprint(fd: int, offset: int, blanked: Sequence[Line] = ()) -> Fingerprint:
    """The fingerprint of the first `offset` bytes of the open file, as it is when the lines `blanked` are
    erased."""
    return UNREAD.extended(fd, offset, blanked)


def _tail_hash(fd: int, offset: int, blanked: Sequence[Line] = ()) -> bytes:
    start = max(0, offset - _TAIL)
    return sha256(read_blanked(fd, offset - start, start, blanked)).digest()


UNREAD = Fingerprint(0, sha256().digest(), b"", sha256().digest())
"""The fingerprint of nothing."""
