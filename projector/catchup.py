"""Brings one read model up to the log: what is new is read on, what was rewritten is replayed.

A rebuild is the same on an empty file, so that both give the same rows.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.errors import Busy
from memlog.eventlog.seals.losses import Loss, losses
from memlog.eventlog.segment import opened
from memlog.eventlog.streams import Segment, SegmentName, segments_in, segments_of, shown
from memlog.projector import checkpoints, handlers
from memlog.projector.checkpoints import NOTHING_READ, Checkpoint, FileHints
from memlog.projector.chunking import ChunkSizes
from memlog.projector.sqlite import Connection
from memlog.projector.stretches import HistoryChanged, Stretch, Tally, as_it_stands

Bounds = dict[tuple[str, str], int]
"""How far to read in each (stream, segment), in bytes."""

Turn = Callable[[], AbstractContextManager[None]]
"""Makes the context of one write: the lock and a transaction, or nothing for a file that nobody sees."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


_READING = "bytes read"
_BLOCK = 1024 * 1024
_ATTEMPTS = 3
_SMALL_SHARE = 16


class CatchUp(Tally):
    """What became of the lines that a catch-up read.

    notes: what a person should know: streams whose history was rewritten, files that are no segments.
    losses: why streams stop, of which the read model has no rows.
    is_whole: whether all was read that stood there.
    """

    notes: list[str] = msgspec.field(default_factory=list)
    losses: list[Loss] = msgspec.field(default_factory=list)
    is_whole: bool = True


def catch_up(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    turn: Turn = nullcontext,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> CatchUp:
    """Bring the read model in `db` up to what stands in `log` now, or to `bounds`, each batch in a `turn`.

    seconds: come back after so long, in small batches, though there is more to read.

    A stream that has lost what was sealed stops: it has no rows, here as in a replay from scratch, until what
    is missing is back or the loss is accepted.

    Raises:
        Busy: a turn was not to be had in time, or the log was rewritten again and again. What was done so
            far stays.
    """
    segments, strangers = segments_of(log)
    report = CatchUp(
        notes=[f"{shown(path.relative_to(log.parent))} is no segment: not read" for path in strangers]
    )
    report.losses = losses(log)
    stopped = {loss.stream for loss in report.losses}
    _stop(db, stopped, turn)
    work = _unread(db, log, segments, bounds)
    tell = _teller(progress, report, db, log, bounds)
    pace = _Pace(seconds)
    # Documents come last: they alone come by the thousand while somebody waits for what was said.
    for stream in sorted(work.keys() - stopped, key=lambda name: (name == "documents", name)):
        try:
            for stretch in work[stream]:
                if not _read_on(db, stretch, sizes, turn, report, tell, pace):
                    return report
        except HistoryChanged as change:
            report.notes.append(f"{stream}: {change.why}; the stream was replayed")
            report.add(_replayed(db, log, stream, sizes, turn, bounds))
            tell()
    return report


def _stop(db: Connection, streams: set[str], turn: Turn) -> None:
    """Forget the rows of streams that stop."""
    for stream in sorted(streams & {stream for stream, _ in checkpoints.load_all(db)}):
        with turn():
            handlers.clear_stream(db, stream)


def unread_bytes(db: Connection, log: Path) -> int:
    """How far the read model is behind the log."""
    known = checkpoints.load_all(db)
    return sum(
        max(0, disk.look(segment.path).st_size - known.get(_key(segment), NOTHING_READ).offset)
        for segment in segments_of(log)[0]
    )


def unread_lines(db: Connection, log: Path) -> int:
    """How many lines of the log the read model is behind; one that has no end yet is none."""
    known = checkpoints.load_all(db)
    count = 0
    for segment in segments_of(log)[0]:
        with opened(log, segment.stream, segment.name.filename) as fd:
            offset = known.get(_key(segment), NOTHING_READ).offset
            while block := disk.read(fd, _BLOCK, offset):
                offset += len(block)
                count += block.count(b"\n")
    return count


def _teller(
    progress: Progress | None, report: CatchUp, db: Connection, log: Path, bounds: Bounds | None
) -> Callable[[], None]:
    """What tells `progress` how much has been read of what was there at the beginning."""
    if progress is None:
        return lambda: None
    total = unread_bytes(db, log) if bounds is None else sum(bounds.values())
    # A stream that is replayed is read twice.
    return lambda: progress(_READING, min(report.bytes, total), total)


def _read_on(
    db: Connection,
    stretch: Stretch,
    sizes: ChunkSizes,
    turn: Turn,
    report: CatchUp,
    tell: Callable[[], None],
    pace: "_Pace",
) -> bool:
    """Read a stretch; whether there is time for more."""
    # Imported here, as below: most reads find nothing new in the log.
    from memlog.projector.fold import fold_segment

    # An error closes the segment at once, not when the generator is collected.
    with closing(fold_segment(db, stretch, sizes, share=pace.share)) as batches:
        while not pace.is_over():
            with turn():
                tally = next(batches, None)
            if tally is None:
                return True
            report.add(tally)
            tell()
    report.is_whole = False
    return False


class _Pace:
    """How long a catch-up may take; for ever where `seconds` is None."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self.share = 1 if seconds is None else _SMALL_SHARE

    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


def _replayed(
    db: Connection, log: Path, stream: str, sizes: ChunkSizes, turn: Turn, bounds: Bounds | None
) -> Tally:
    from memlog.projector.replay import replay_stream

    for _ in range(_ATTEMPTS):
        try:
            with turn():
                stretches = [_whole(segment, bounds) for segment in segments_in(log, stream)]
                return replay_stream(db, stream, stretches, sizes)
        except (HistoryChanged, FileNotFoundError):
            continue
    raise Busy(f"{stream} is being rewritten", hint="try again when it no longer changes")


def _whole(segment: Segment, bounds: Bounds | None) -> Stretch:
    """All that is to be read of a segment."""
    if bounds is not None:
        return Stretch(segment, bounds.get(_key(segment), 0), True)
    return as_it_stands(segment, disk.look(segment.path).st_size)


def _unread(
    db: Connection, log: Path, segments: list[Segment], bounds: Bounds | None
) -> dict[str, list[Stretch]]:
    """What is new, or gone, by stream."""
    known = checkpoints.load_all(db)
    work: defaultdict[str, list[Stretch]] = defaultdict(list)
    for segment in segments:
        stretch = _new_in(segment, known.pop(_key(segment), NOTHING_READ), bounds)
        if stretch is not None:
            work[segment.stream].append(stretch)
    for stream, filename in known:
        name = SegmentName.parse(filename)
        if name is not None:
            work[stream].insert(0, _gone(Segment(log, stream, name, is_newest=False)))
    return work


def _new_in(segment: Segment, checkpoint: Checkpoint, bounds: Bounds | None) -> Stretch | None:
    """What is to be read of a segment; None where a look at its status shows that nothing is."""
    if bounds is not None:
        stretch = _whole(segment, bounds)
        return stretch if checkpoint.offset < (stretch.end or 0) else None
    try:
        hints = FileHints.of(disk.look(segment.path))
    except FileNotFoundError:
        return _gone(segment)
    return None if checkpoint.has_nothing_new(segment, hints) else as_it_stands(segment, hints.size)


def _gone(segment: Segment) -> Stretch:
    """Reading it finds that it is gone, and has its stream replayed."""
    return Stretch(segment, None, True)


def _key(segment: Segment) -> tuple[str, str]:
    return segment.stream, segment.name.filename
