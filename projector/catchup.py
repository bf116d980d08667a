"""Brings a read model up to date with the log: reads new lines, replays streams that were rewritten.

A rebuild does the same in an empty file, so both give the same rows.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.errors import Busy
from memlog.eventlog.file_io import blocks
from memlog.eventlog.seals.losses import LOST, losses
from memlog.eventlog.seals.reader import sealed_bytes
from memlog.eventlog.segment import opened
from memlog.eventlog.streams import Segment, SegmentName, segments_of
from memlog.projector import checkpoints
from memlog.projector.checkpoints import NOTHING_READ, Checkpoint, FileHints
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.segment_range import HistoryChanged, Stretch, Tally, as_it_stands
from memlog.projector.sqlite import Connection

# Imported where it is needed: most reads find nothing new in the log.
if TYPE_CHECKING:
    from memlog.eventlog.watermarks import Watermarks

Bounds = dict[tuple[str, str], int]
"""How far to read in each (stream, segment), in bytes."""

Turn = Callable[[], AbstractContextManager[None]]
"""Makes the context of one write: the lock and a transaction, or nothing for a file that nobody sees."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_READING = "bytes read"
_ATTEMPTS = 3
_SMALL_SHARE = 16


class CatchUp(Tally):
    """What became of the lines that a catch-up read.

    notes: for people: streams whose history was rewritten, losses, files that are not segments.
    is_whole: whether nothing was left unread.
    """

    notes: list[str] = msgspec.field(default_factory=list)
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
    remembers: bool = False,
    streams: Collection[str] | None = None,
) -> CatchUp:
    """Bring the read model in `db` up to the present end of `log`, or to `bounds`, each batch in a `turn`.

    seconds: stop after so long, though there is more to read; batches are small then.

    remembers: what was read raises the watermarks of the store, in the turn that reads it.

    streams: those that may have changed since a catch-up that left nothing unread, whose notes were told;
    None if that is not known, to look at all.

    A loss is a note and stops nothing: the rest is read.

    Raises:
        Busy: a turn was not to be had in time, or the log was rewritten again and again. What was done so
            far stays.
    """
    segments, strangers = segments_of(log, streams)
    report = CatchUp(notes=_notes_of(log, strangers))
    only = None if streams is None else [name for name in sealed_bytes(log) if name[0] in streams]
    report.notes += [f"{loss.stream}/{loss.why}{LOST}" for loss in losses(log, only=only)]
    work = _unread(log, segments, checkpoints.load_all(db, streams), bounds)
    watermarks = _watermarks(log) if remembers and work else None
    begins_to_remember = watermarks is not None and watermarks.is_void
    tell = _teller(progress, report, db, log, bounds)
    pace = _Pace(seconds)
    # Documents come last: they alone come by the thousand while somebody waits for what was said.
    for stream in sorted(work, key=lambda name: (name == "documents", name)):
        try:
            for stretch in work[stream]:
                if not _read_on(db, stretch, sizes, turn, report, tell, pace, watermarks):
                    return report
        except HistoryChanged as change:
            report.notes.append(f"{stream}: {change.why}; the stream was replayed")
            report.add(_replayed(db, log, stream, sizes, turn, bounds, watermarks, report.notes))
            tell()
    if begins_to_remember:
        from memlog.projector.raise_watermarks import remember_all

        # As in a copied store, of which the read model has segments that nobody reads on.
        report.notes += remember_all(db, log)
    return report


def _watermarks(log: Path) -> "Watermarks":
    from memlog.eventlog.watermarks import Watermarks

    return Watermarks(log.parent)


def _notes_of(log: Path, strangers: list[Path]) -> list[str]:
    if not strangers:
        return []
    # Imported here: in most logs everything is read.
    from memlog.eventlog.unread_files import why_not_read

    return [f"{why_not_read(log, path)}; memlog doctor says what to do" for path in strangers]


def unread_bytes(db: Connection, log: Path) -> int:
    """How far the read model is behind the log."""
    known = checkpoints.load_all(db)
    return sum(
        max(0, segment.status().st_size - known.get(_key(segment), NOTHING_READ).offset)
        for segment in segments_of(log)[0]
    )


def unread_lines(db: Connection, log: Path) -> int:
    """How many lines of the log the read model is behind; one that has no end yet is none."""
    known = checkpoints.load_all(db)
    count = 0
    for segment in segments_of(log)[0]:
        with opened(log, segment.stream, segment.name.filename) as fd:
            offset = known.get(_key(segment), NOTHING_READ).offset
            count += sum(block.count(b"\n") for block in blocks(fd, offset))
    return count


def rewritten_streams(db: Connection, log: Path) -> list[str]:
    """The streams that the next read replays, since a segment has other bytes than were read, or is gone."""
    known = checkpoints.load_all(db)
    found = [
        segment.stream
        for segment in segments_of(log)[0]
        if not _still_holds(segment, known.pop(_key(segment), NOTHING_READ))
    ]
    return sorted({*found, *(stream for stream, _ in known)})


def _still_holds(segment: Segment, checkpoint: Checkpoint) -> bool:
    try:
        with opened(segment.log, segment.stream, segment.name.filename) as fd:
            return checkpoint.still_holds(segment, fd, FileHints.of(disk.status(fd)))
    except FileNotFoundError:
        return False


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
    watermarks: "Watermarks | None",
) -> bool:
    """Read a stretch; whether there is time for more."""
    # Imported here, as below: most reads find nothing new in the log.
    from memlog.projector.fold import fold_segment
    from memlog.projector.raise_watermarks import remember_read

    # An error closes the segment at once, not when the generator is collected.
    with closing(fold_segment(db, stretch, sizes, share=pace.share)) as batches:
        while not pace.is_over():
            with turn():
                before = checkpoints.load(db, stretch.segment).fingerprint if watermarks else None
                tally = next(batches, None)
                if watermarks and before and tally and tally.bytes:
                    report.notes += remember_read(db, watermarks, stretch.segment, before)
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
    db: Connection,
    log: Path,
    stream: str,
    sizes: ChunkSizes,
    turn: Turn,
    bounds: Bounds | None,
    watermarks: "Watermarks | None",
    notes: list[str],
) -> Tally:
    """notes: receives the losses that the watermarks show."""
    from memlog.projector.raise_watermarks import remember_stream
    from memlog.projector.replay import replay_stream

    for _ in range(_ATTEMPTS):
        try:
            with turn():
                stretches = [_whole(segment, bounds) for segment in segments_of(log, [stream])[0]]
                tally = replay_stream(db, stream, stretches, sizes)
                if watermarks is not None:
                    notes += remember_stream(
                        db, watermarks, stream, [stretch.segment for stretch in stretches]
                    )
                return tally
        except (HistoryChanged, FileNotFoundError):
            continue
    raise Busy(f"{stream} is being rewritten", hint="try again when it no longer changes")


def _whole(segment: Segment, bounds: Bounds | None) -> Stretch:
    """All that is to be read of a segment."""
    if bounds is not None:
        # A tail of the newest is never projected: one that stands at the bound is what is left of a cut line.
        return Stretch(segment, bounds.get(_key(segment), 0), not segment.is_newest)
    return as_it_stands(segment, segment.status().st_size)


def _unread(
    log: Path, segments: list[Segment], known: dict[tuple[str, str], Checkpoint], bounds: Bounds | None
) -> dict[str, list[Stretch]]:
    """What is new, or gone, by stream. known: the checkpoints of the streams of `segments`."""
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
        hints = FileHints.of(segment.status())
    except FileNotFoundError:
        return _gone(segment)
    return None if checkpoint.has_nothing_new(segment, hints) else as_it_stands(segment, hints.size)


def _gone(segment: Segment) -> Stretch:
    """Reading it finds that it is gone, and has its stream replayed."""
    return Stretch(segment, None, True)


def _key(segment: Segment) -> tuple[str, str]:
    return segment.stream, segment.name.filename
