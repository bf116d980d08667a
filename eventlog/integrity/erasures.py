"""Finds lines that are or should be erased. Two copies of a segment may differ in these lines."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.decode import ERASING
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import read_blocks
from memlog.eventlog.log.quarantine import DAMAGE, BadLine
from memlog.eventlog.log.reader import Key, Line, decode_entry, is_redacted, read_lines
from memlog.eventlog.log.streams import Segment

_BLOCK = 1024 * 1024

Span = tuple[int, int]
"""The start and end offsets, in bytes, of a run of adjacent lines."""


class Erasures(msgspec.Struct):
    """The lines of a segment that are erased or should be, without their bytes.

    blank: erased lines. begun: partly erased lines. due: lines that are redacted but still readable.
    is_whole: whether no other line is damaged.
    is_proven: whether memlog wrote every other line, and every crc is correct.
    """

    blank: list[Line] = []
    begun: list[Line] = []
    due: list[Line] = []
    is_whole: bool = True
    is_proven: bool = True

    @property
    def unfinished_lines(self) -> list[Line]:
        """The lines that an erasure still has to overwrite, in order."""
        return sorted([*self.begun, *self.due], key=lambda line: line.offset)


def find_erasures(segment: Segment, fd: int, end: int, redacted: Container[Key]) -> Erasures:
    """Find the erasures in the first `end` bytes of an open segment. Raises OSError."""
    erasures = Erasures()
    for line in read_lines(fd, end=end, tail_is_a_line=True):
        bare = replace(line, data=None)
        if is_line_partly_erased(fd, line):
            erasures.begun.append(bare)
        elif is_line_erased(fd, line):
            erasures.blank.append(bare)
        elif (entry := decode_entry(segment, line)) is not None:
            if is_redacted(entry, redacted):
                erasures.due.append(bare)
            elif isinstance(entry.event, BadLine):
                erasures.is_whole &= entry.event.reason not in DAMAGE
                erasures.is_proven = False
            elif not entry.append_time:
                erasures.is_proven = False
    return erasures


def find_erased_lines(fd: int, start: int, end: int) -> list[Line]:
    """Return the erased lines between two offsets, without their bytes. No other line ends with a space."""
    for offset in range(start, end, _BLOCK):
        # Include the byte before the block, since a line may end there.
        first = max(start, offset - 1)
        block = disk.read(fd, min(end, offset + _BLOCK) - first, first)
        if b" \n" in block or (first + len(block) == end and block.endswith(b" ")):
            lines = read_lines(fd, start, end=end, tail_is_a_line=True)
            return [replace(line, data=None) for line in lines if is_line_erased(fd, line)]
    return []


def is_line_due_for_erasure(fd: int, segment: Segment, line: Line, redacted: Container[Key]) -> bool:
    """Whether a line is partly erased, or redacted but still readable."""
    if is_line_partly_erased(fd, line):
        return True
    entry = decode_entry(segment, line)
    return entry is not None and is_redacted(entry, redacted) and not is_line_erased(fd, line)


def is_line_partly_erased(fd: int, line: Line) -> bool:
    """Whether a line is partly erased."""
    return line.length > 0 and (line.data or disk.read(fd, 1, line.offset)).startswith(ERASING)


def is_line_erased(fd: int, line: Line) -> bool:
    """Whether a line consists only of spaces; an empty line does not count."""
    if line.data is not None:
        return line.length > 0 and not line.data.strip(b" ")
    return not any(block.strip(b" ") for block in read_blocks(fd, line.offset, line.offset + line.length))


def merge_into_spans(lines: Iterable[Line]) -> tuple[Span, ...]:
    """Return the spans of `lines` in order, merging adjacent lines."""
    spans: list[Span] = []
    for line in sorted(lines, key=lambda line: line.offset):
        start = line.offset
        if spans and spans[-1][1] == start:
            start, _ = spans.pop()
        spans.append((start, line.end))
    return tuple(spans)


def split_lines_by_spans(lines: Iterable[Line], spans: Sequence[Span]) -> tuple[list[Line], list[Line]]:
    """Split `lines` into those inside and those outside `spans`."""
    inside: list[Line] = []
    outside: list[Line] = []
    for line in lines:
        index = bisect_right(spans, line.offset, key=lambda span: span[0]) - 1
        is_inside = index >= 0 and line.offset < spans[index][1]
        (inside if is_inside else outside).append(line)
    return inside, outside
