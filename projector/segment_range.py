"""What a projector reads of a segment, what becomes of it, and why it must read it anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from memlog.eventlog.reader import reading
from memlog.eventlog.segment import Line, read_lines
from memlog.eventlog.streams import Segment
from memlog.projector.checkpoints import Checkpoint


class Stretch(NamedTuple):
    """What is to be read of a segment.

    end: the byte to stop at; None for the end of the file.
    tail_is_a_line: whether bytes behind the last newline are a line, which a writer does not still write.
    """

    segment: Segment
    end: int | None
    tail_is_a_line: bool

    def end_behind(self, offset: int) -> int | None:
        """Where to stop reading that begins at `offset`: another projector may have passed `end` since."""
        return None if self.end is None else max(self.end, offset)

    def unread(self, fd: int, checkpoint: Checkpoint) -> Iterator[Line]:
        """The lines behind a checkpoint, of the open segment."""
        offset, number = checkpoint.offset, checkpoint.lines + 1
        end, tail_is_a_line = self.end_behind(offset), self.tail_is_a_line
        return read_lines(fd, offset, end=end, number=number, tail_is_a_line=tail_is_a_line)


class Tally(msgspec.Struct):
    """What became of the lines that were read."""

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    quarantined: int = 0
    nul_runs: int = 0
    bytes: int = 0

    def add(self, other: "Tally") -> None:
        """Count what `other` counted."""
        for count in Tally.__struct_fields__:
            setattr(self, count, getattr(self, count) + getattr(other, count))


def as_it_stands(segment: Segment, size: int) -> Stretch:
    """What a segment of `size` bytes holds now.

    No more of the newest: a reader that followed its writers would end after them. An older one is read to
    its end, since only there a tail without newline is a line.
    """
    return Stretch(segment, size, False) if segment.is_newest else Stretch(segment, None, True)


class HistoryChanged(Exception):
    """What was projected of a stream is no longer what a replay would give: it must be replayed."""


@contextmanager
def opened_segment(segment: Segment) -> Iterator[int]:
    """A descriptor that reads a segment.

    Raises:
        HistoryChanged: it is gone.
    """
    try:
        with reading(segment) as fd:
            yield fd
    except FileNotFoundError as error:
        raise HistoryChanged(f"{segment.name.filename} is gone") from error
