"""Seals finished segments, and erased ones again."""

from collections.abc import Sequence

from memlog.eventlog import locks
from memlog.eventlog.seals.file import SealFiles
from memlog.eventlog.seals.format import FIRST, Held, Seal
from memlog.eventlog.seals.measure import has_grown, made_durable, measured


def seal(
    seals: SealFiles,
    stream: str,
    segments: Sequence[str],
    *,
    lock_timeout: float = locks.TIMEOUT,
    also_grown: bool = False,
) -> list[Seal]:
    """Seal those of a stream's `segments` that have no seal. Returns the new seals, once they are durable.

    The caller holds the lock of the newest. Segments are made durable before their seal: otherwise a power
    cut would turn unacknowledged bytes into a loss.

    also_grown: seal again what a writer without the lock has extended.

    Raises Busy, and OSError: then no seal is known to be stored.
    """
    seals.refresh()
    before = {segment: seals.valid(stream, segment) for segment in segments}
    due = [
        segment
        for segment, old in before.items()
        if old is None or (also_grown and has_grown(seals.log, old))
    ]
    if not due:
        return []
    held = {segment: made_durable(seals.log, stream, segment) for segment in due}
    with seals.own.locked(lock_timeout) as fd:
        # Another process may have been faster.
        new = [segment for segment in due if seals.valid(stream, segment) == before[segment]]
        return seals.own.add(fd, [draft(stream, segment, held[segment]) for segment in new])


def blank(seals: SealFiles, stream: str, segment: str, *, lock_timeout: float = locks.TIMEOUT) -> None:
    """Blank the hashes of a segment's seals before its bytes are erased: they mark an unfinished erasure
    until `reseal`. Raises as `seal`.
    """
    seals.refresh()
    # The matching ones last: a kill in between leaves one of them, or no hash at all.
    seals.blank(stream, segment, lock_timeout, but=measured(seals.log, stream, segment))
    seals.blank(stream, segment, lock_timeout)


def reseal(
    seals: SealFiles, stream: str, segment: str, *, lock_timeout: float = locks.TIMEOUT
) -> Seal | None:
    """Seal a segment again after an erasure, and blank the hashes of its other seals. May be run again after
    a crash at any moment. Raises as `seal`.

    Returns the valid seal; None if the segment had none, or is still arriving.
    """
    seals.refresh()
    if not seals.has_any(stream, segment):
        return None
    before = seals.valid(stream, segment)
    held = made_durable(seals.log, stream, segment)
    if before is not None and held.bytes < before.bytes:
        return None
    seals.blank(stream, segment, lock_timeout, but=held)
    with seals.own.locked(lock_timeout) as fd:
        for seal_of_file in seals.last(stream, segment):
            if seal_of_file.is_of(held):
                return seal_of_file
        (made,) = seals.own.add(fd, [draft(stream, segment, held)])
        return made


def draft(stream: str, segment: str, held: Held, lost: int | None = None) -> Seal:
    """A seal without its place in a chain, for `SealFile.add`."""
    return Seal(stream, segment, held.bytes, held.lines, held.sha256, FIRST, "", lost)
