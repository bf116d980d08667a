"""Which lines of a segment are erased, and which are to be: what two versions of it may differ by."""

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memlog.eventlog import disk
from memlog.eventlog.decode import ERASING
from memlog.eventlog.quarantine import DAMAGE, BadLine
from memlog.eventlog.reader import Key, entry_of, is_redacted
from memlog.eventlog.segment import Line, read_lines
from memlog.eventlog.streams import Segment

_BLOCK = 1024 * 1024

Span = tuple[int, int]
"""Where adjacent lines begin, and where they end."""


class Erasures(NamedTuple):
    """The lines that are erased or to be erased; without their bytes.

    blank: erased. begun: an erasure has reached their first byte. due: redacted, and still to be read.
    is_whole: no other line is damaged. is_proven: each of them is memlog's, and has its crc.
    """

    blank: list[Line]
    begun: list[Line]
    due: list[Line]
    is_whole: bool = True
    is_proven: bool = True

    @property
    def standing(self) -> list[Line]:
        """What an erasure has still to overwrite, in the order of the segment."""
        return sorted([*self.begun, *self.due], key=lambda line: line.offset)


def erasures_in(segment: Segment, fd: int, end: int, redacted: Container[Key]) -> Erasures:
    """Those of the first `end` bytes of an open segment.

    Raises:
        OSError: it cannot be read.
    """
    found = Erasures([], [], [])
    for line in read_lines(fd, end=end, tail_is_a_line=True):
        bare = replace(line, data=None)
        if is_begun(fd, line):
            found.begun.append(bare)
        elif is_erased(fd, line):
            found.blank.append(bare)
        elif (entry := entry_of(segment, line)) is not None:
            if is_redacted(entry, redacted):
                found.due.append(bare)
            elif isinstance(entry.event, BadLine):
                is_whole = found.is_whole and entry.event.reason not in DAMAGE
                found = found._replace(is_whole=is_whole, is_proven=False)
            elif not entry.at:
                found = found._replace(is_proven=False)
    return found


def erased_lines(fd: int, start: int, end: int) -> list[Line]:
    """The erased lines between two offsets, without their bytes. Ordinary lines end with no space."""
    for offset in range(start, end, _BLOCK):
        # With the byte before: a line may end at the beginning of a block.
        first = max(start, offset - 1)
        block = disk.read(fd, min(end, offset + _BLOCK) - first, first)
        if b" \n" in block or (first + len(block) == end and block.endswith(b" ")):
            lines = read_lines(fd, start, end=end, tail_is_a_line=True)
            return [replace(line, data=None) for line in lines if is_erased(fd, line)]
    return []


def is_due(fd: int, segment: Segment, line: Line, redacted: Container[Key]) -> bool:
    """Whether a line is to be gone and still says something, or is being erased."""
    if is_begun(fd, line):
        return True
    entry = entry_of(segment, line)
    return entry is not None and is_redacted(entry, redacted) and not is_erased(fd, line)


def is_begun(fd: int, line: Line) -> bool:
    """Whether an erasure of a line has begun and not ended."""
    return line.length > 0 and (line.data or disk.read(fd, 1, line.offset)).startswith(ERASING)


def is_erased(fd: int, line: Line) -> bool:
    """Whether nothing but spaces stands in a line."""
    if line.data is not None:
        return line.length > 0 and not line.data.strip(b" ")
    end = line.offset + line.length
    blocks = (disk.read(fd, min(_BLOCK, end - start), start) for start in range(line.offset, end, _BLOCK))
    return not any(block.strip(b" ") for block in blocks)


def spans_of(lines: Iterable[Line]) -> tuple[Span, ...]:
    """Where `lines` are, adjacent ones as one span."""
    spans: list[Span] = []
    for line in sorted(lines, key=lambda each: each.offset):
        start = line.offset
        if spans and spans[-1][1] == start:
            start, _ = spans.pop()
        spans.append((start, line.end))
    return tuple(spans)


def split_by(lines: Iterable[Line], spans: Sequence[Span]) -> tuple[list[Line], list[Line]]:
    """Those of `lines` within `spans`, and the others."""
    from bisect import bisect_right

    inside: list[Line] = []
    outside: list[Line] = []
    for line in lines:
        place = bisect_right(spans, line.offset, key=lambda span: span[0]) - 1
        is_inside = place >= 0 and line.offset < spans[place][1]
        (inside if is_inside else outside).append(line)
    return inside, outside
