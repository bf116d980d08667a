"""Sealing: segments that get no more lines, erased ones anew, and those of which something is lost."""

from collections.abc import Sequence
from pathlib import Path

from memlog.eventlog.seals.file import LOCK_TIMEOUT, SealFile
from memlog.eventlog.seals.held import has_grown, made_durable
from memlog.eventlog.seals.lines import FIRST, Held, Seal
from memlog.eventlog.seals.losses import unlike


def seal(
    seals: SealFile,
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
        Busy: another process held seals.jsonl for too long.
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
    with seals.locked(lock_timeout) as fd:
        # Another process may have been faster.
        new = [segment for segment in due if seals.standing(stream, segment) == standing[segment]]
        return seals.add(fd, [_draft(stream, segment, held[segment]) for segment in new])


def blank(seals: SealFile, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
    """Take the hash out of a segment's seals, before its bytes are erased: until `reseal` is done, anybody
    sees that an erasure was begun.

    Raises:
        Busy, OSError: as `seal`.
    """
    with seals.locked(lock_timeout):
        seals.blank_hashes(seals.of(stream, segment))


def reseal(seals: SealFile, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> Seal | None:
    """Put a new seal in the place of a segment's old one, whose hash is blanked, after bytes were erased.

    Run again after a crash at any moment, it finishes. Return the seal that holds; None where there was none.

    Raises:
        Busy, OSError: as `seal`.
    """
    seals.refresh()
    if not seals.of(stream, segment):
        return None
    held = made_durable(seals.log, stream, segment)
    with seals.locked(lock_timeout) as fd:
        old = seals.of(stream, segment)
        standing = seals.standing(stream, segment)
        if standing is not None and standing.is_of(held):
            seals.blank_hashes(old[:-1])
            return standing
        seals.blank_hashes(old)
        (made,) = seals.add(fd, [_draft(stream, segment, held)])
        return made


def accept_loss(log: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> list[Seal]:
    """Seal what stands of the segments that are unlike their seals: a person says that the rest is lost.
    Return the new seals, once they are durable.

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
    seals = SealFile(log)
    with seals.locked(lock_timeout) as fd:
        return seals.add(fd, drafts)


def _draft(stream: str, segment: str, held: Held, lost: int | None = None) -> Seal:
    return Seal(stream, segment, held.bytes, held.lines, held.sha256, FIRST, "", lost)
