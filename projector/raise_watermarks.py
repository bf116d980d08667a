"""Raises the watermarks of the store to what a catch-up has read, in the turn that has read it.

Each function returns what a person should know. A disk that does not take the watermarks costs an alarm and
no row.
"""

from pathlib import Path

from memlog.eventlog.layout import WATERMARKS
from memlog.eventlog.seals.losses import LOST
from memlog.eventlog.segment import Fingerprint
from memlog.eventlog.streams import Segment, segments_of
from memlog.eventlog.watermarks import Read, Watermarks
from memlog.projector import checkpoints
from memlog.projector.sqlite import Connection


def remember_read(db: Connection, watermarks: Watermarks, segment: Segment, before: Fingerprint) -> list[str]:
    """Remember how far a segment was read on. before: how far it had been read."""
    now = checkpoints.load(db, segment).fingerprint
    return _remembered(watermarks, [Read(segment, now, before)])


def remember_stream(
    db: Connection, watermarks: Watermarks, stream: str, segments: list[Segment]
) -> list[str]:
    """Remember the segments of a stream that was replayed; what it lost is a note."""
    reads = [Read(segment, checkpoints.load(db, segment).fingerprint) for segment in segments]
    notes = _remembered(watermarks, reads)
    lost = watermarks.losses(stream=stream)
    return list(dict.fromkeys([*notes, *(f"{loss.stream}/{loss.why}{LOST}" for loss in lost)]))


def remember_all(db: Connection, log: Path) -> list[str]:
    """Remember how far the read model in `db` has come in each segment."""
    known = checkpoints.load_all(db)
    keys = {(segment.stream, segment.name.filename): segment for segment in segments_of(log)[0]}
    return _remembered(
        Watermarks(log.parent),
        [Read(segment, known[key].fingerprint) for key, segment in keys.items() if key in known],
    )


def _remembered(watermarks: Watermarks, reads: list[Read]) -> list[str]:
    try:
        lost = watermarks.remember(reads)
    except OSError as error:
        why = error.strerror or error
        return [f"{WATERMARKS}: {why}: a loss of what was read now would not be seen"]
    return [f"{loss.stream}/{loss.why}{LOST}" for loss in lost]
