"""Brings one read model up to the log: what is new is read on, what was rewritten is replayed.

A rebuild is the same on an empty file, so that both give the same rows.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

from memlog.eventlog.streams import Segment, SegmentName, segments_of, shown
from memlog.projector import checkpoints
from memlog.projector.checkpoints import NOTHING_READ, Checkpoint, Hints
from memlog.projector.chunking import ChunkSizes
from memlog.projector.replay import Bounds, HistoryChanged, Tally, replay_segment, replay_stream
from memlog.projector.sqlite import Connection

Turn = Callable[[], AbstractContextManager[None]]
"""Makes the context of one write: the lock and a transaction, or nothing for a file that nobody sees."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class CatchUp(msgspec.Struct):
    """What a catch-up read.

    events, duplicates, conflicts, quarantined: lines, by what became of them.
    notes: what a person should know: streams whose history was rewritten, files that are no segments.
    """

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    quarantined: int = 0
    notes: list[str] = []

    def count(self, tally: Tally) -> None:
        """Add what became of some lines."""
        self.events += tally.events
        self.duplicates += tally.duplicates
        self.conflicts += tally.conflicts
        self.quarantined += tally.quarantined

    def add(self, later: "CatchUp") -> None:
        """Add what a second look read; its notes repeat the first's."""
        self.events += later.events
        self.duplicates += later.duplicates
        self.conflicts += later.conflicts
        self.quarantined += later.quarantined


def catch_up(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    turn: Turn = nullcontext,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
) -> CatchUp:
    """Bring the read model in `db` up to `log`, or up to `bounds`, each batch within a `turn`.

    Raises:
        Busy: a turn was not to be had in time. What was done so far stays.
    """
    segments, strangers = segments_of(log)
    report = CatchUp(
        notes=[f"{shown(path.relative_to(log.parent))} is no segment: not read" for path in strangers]
    )
    work = _unread(db, log, segments, bounds)
    for number, stream in enumerate(sorted(work), start=1):
        try:
            for segment in work[stream]:
                _read_on(db, segment, sizes, turn, bounds, report)
        except HistoryChanged as change:
            report.notes.append(f"{stream}: {change.why}; the stream was replayed")
            with turn():
                standing = [segment for segment in segments_of(log)[0] if segment.stream == stream]
                report.count(replay_stream(db, standing, stream, sizes))
        if progress:
            progress("streams", number, len(work))
    return report


def unread_bytes(db: Connection, log: Path) -> int:
    """How far the read model is behind the log."""
    known = checkpoints.load_all(db)
    return sum(
        max(0, segment.path.stat().st_size - known.get(_key(segment), NOTHING_READ).offset)
        for segment in segments_of(log)[0]
    )


def _read_on(
    db: Connection,
    segment: Segment,
    sizes: ChunkSizes,
    turn: Turn,
    bounds: Bounds | None,
    report: CatchUp,
) -> None:
    batches = replay_segment(db, segment, sizes, bounds)
    while True:
        with turn():
            tally = next(batches, None)
        if tally is None:
            return
        report.count(tally)


def _unread(
    db: Connection, log: Path, segments: list[Segment], bounds: Bounds | None
) -> dict[str, list[Segment]]:
    """The segments that have something new, or are gone, by stream."""
    known = checkpoints.load_all(db)
    work: defaultdict[str, list[Segment]] = defaultdict(list)
    for segment in segments:
        checkpoint = known.pop(_key(segment), NOTHING_READ)
        if _has_something_new(segment, checkpoint, bounds):
            work[segment.stream].append(segment)
    for stream, filename in known:
        # Reading it finds that it is gone, and has the stream replayed.
        name = SegmentName.parse(filename)
        if name is not None:
            work[stream].insert(0, Segment(stream, name, log / stream / filename, is_newest=False))
    return work


def _has_something_new(segment: Segment, checkpoint: Checkpoint, bounds: Bounds | None) -> bool:
    if bounds is not None:
        return checkpoint.offset < bounds.get(_key(segment), 0)
    try:
        hints = Hints.of(segment.path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return True  # replay_segment says so
    return not checkpoint.has_nothing_new(segment, hints)


def _key(segment: Segment) -> tuple[str, str]:
    return segment.stream, segment.name.filename
