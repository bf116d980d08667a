"""Sealing: segments that get no more lines, erased ones anew, and those of which something is lost."""

from collections.abc import Sequence
from pathlib import Path

from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.seals.file import LOCK_TIMEOUT
from memlog.eventlog.seals.files import SealFiles
from memlog.eventlog.seals.format import FIRST, Held, Seal
from memlog.eventlog.seals.losses import unlike
from memlog.eventlog.seals.measure import has_grown, made_durable, measured


def seal(
    seals: SealFiles,
    stream: str,
    segments: Sequence[str],
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    also_grown: bool = False,
) -> list[Seal]:
    """Seal those of a stream's `segments` that have no seal; return the new seals, once they are durable.

    also_grown: and those that have, to which a writer that takes no lock has added something since.

    The caller holds the lock of the newest, so that no line comes to it. What a seal speaks of is made
    durable before it, since a power cut would otherwise make a loss of what nobody was promised.

    Raises:
        Busy: another process held the file of seals for too long.
        OSError: it could not be written, or a segment not be read; no seal is known to be stored.
    """
    seals.refresh()
    standing = {segment: seals.standing(stream, segment) for segment in segments}
    due = [
        segment
        for segment, old in standing.items()
        if old is None or (also_grown and has_grown(seals.log, old))
    ]
    if not due:
        return []
    held = {segment: made_durable(seals.log, stream, segment) for segment in due}
    with seals.own.locked(lock_timeout) as fd:
        # Another process may have been faster.
        new = [segment for segment in due if seals.standing(stream, segment) == standing[segment]]
        return seals.own.add(fd, [_draft(stream, segment, held[segment]) for segment in new])


def blank(seals: SealFiles, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
    """Take the hash out of a segment's seals, before its bytes are erased: until `reseal` is done, anybody
    sees that an erasure was begun.

    Raises:
        Busy, OSError: as `seal`.
    """
    seals.refresh()
    # Those that are right go last: a kill on the way leaves one, or none that has a hash.
    seals.blank_stale(stream, segment, measured(seals.log, stream, segment), lock_timeout)
    seals.blank_all(stream, segment, lock_timeout)


def reseal(seals: SealFiles, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> Seal | None:
    """Have a seal say what a segment holds after bytes of it were erased, and no other seal have a hash.

    Run again after a crash at any moment, it finishes. Return the seal that holds; None where there was none,
    or where bytes of the segment are still to come.

    Raises:
        Busy, OSError: as `seal`.
    """
    seals.refresh()
    if not seals.has_any(stream, segment):
        return None
    before = seals.standing(stream, segment)
    held = made_durable(seals.log, stream, segment)
    if before is not None and held.bytes < before.bytes:
        return None
    seals.blank_stale(stream, segment, held, lock_timeout)
    with seals.own.locked(lock_timeout) as fd:
        for seal_of_file in seals.last(stream, segment):
            if seal_of_file.is_of(held):
                return seal_of_file
        (made,) = seals.own.add(fd, [_draft(stream, segment, held)])
        return made


def accept_loss(log: Path, writer: Writer, *, lock_timeout: float = LOCK_TIMEOUT) -> list[Seal]:
    """Seal the segments that are unlike their seals as they are, in the file of `writer`: a person says that
    the rest is lost. Return the new seals, once they are durable.

    Raises:
        Busy, OSError: as `seal`.
    """
    differing = unlike(log)
    if not differing:
        return []
    nothing = Held(0, 0, FIRST)
    drafts = [
        _draft(each.seal.stream, each.seal.segment, held, max(0, each.seal.bytes - held.bytes))
        for each in differing
        for held in (each.held or nothing,)
    ]
    own = SealFiles(log, writer.name()).own
    with own.locked(lock_timeout) as fd:
        return own.add(fd, drafts)


def _draft(stream: str, segment: str, held: Held, lost: int | None = None) -> Seal:
    return Seal(stream, segment, held.bytes, held.lines, held.sha256, FIRST, "", lost)
