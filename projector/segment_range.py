"""What a projector reads of a segment, what becomes of it, and how it finds that it must read it anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from memlog.eventlog.reader import reading
from memlog.eventlog.streams import Segment


class Stretch(NamedTuple):
    """What is to be read of a segment.

    end: in bytes, and no further; None for all that stands there.
    tail_is_a_line: whether bytes behind the last newline are one; elsewhere a writer may still be at them.
    """

    segment: Segment
    end: int | None
    tail_is_a_line: bool

    def end_behind(self, offset: int) -> int | None:
        """Where to stop reading that begins at `offset`: another projector may have passed `end` since."""
        return None if self.end is None else max(self.end, offset)


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
        self.events += other.events
        self.duplicates += other.duplicates
        self.conflicts += other.conflicts
        self.quarantined += other.quarantined
        self.nul_runs += other.nul_runs
        self.bytes += other.bytes


def as_it_stands(segment: Segment, size: int) -> Stretch:
    """What a segment of `size` bytes holds now.

    No more of the newest: a reader that followed its writers would end after them. An older one is read to
    its end, since only there a tail without newline is a line.
    """
    return Stretch(segment, size, False) if segment.is_newest else Stretch(segment, None, True)


class HistoryChanged(Exception):
    """What was projected of a stream is no longer what a replay would give: it must be replayed."""

    def __init__(self, stream: str, why: str) -> None:
        super().__init__(why)
        self.stream = stream
        self.why = why


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
        raise HistoryChanged(segment.stream, f"{segment.name.filename} is gone") from error
