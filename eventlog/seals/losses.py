"""What is missing of sealed segments, and what is not as it was sealed."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.layout import seals_file, seals_files
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.format import Held, Seal, are_of, holding
from memlog.eventlog.seals.lengths import sealed_bytes
from memlog.eventlog.seals.measure import has_grown, held_by, held_in, size_of
from memlog.eventlog.segment import opened
from memlog.eventlog.streams import Segment, SegmentName, segments_in

LOST = ": memlog verify names what is lost"
LOSS_REMEDY = "put a copy of it back, or accept the loss: memlog seal --accept-loss"
_GROWN = "memlog seal"
_GROWN_ELSEWHERE = (
    "memlog seal on the copy that writes it, then copy log/ again; or memlog seal --accept-loss"
)


class Loss(msgspec.Struct, frozen=True):
    """A sealed segment that is gone, or shorter than its seal says.

    sealed: how many bytes it had. bytes: how many it has; None where it is gone.
    """

    stream: str
    segment: str
    sealed: int
    bytes: int | None

    @property
    def why(self) -> str:
        """For people."""
        now = "is gone" if self.bytes is None else f"has {self.bytes}"
        return f"{self.segment}, sealed with {self.sealed} bytes, {now}"


State = Literal[
    "changed",  # nothing below explains it
    "arriving",  # another writer's segment, of which a file sync has not brought all
    "erased here",  # the segment has an erasure that one of its seals does not know of
    "erased elsewhere",  # a seal knows of an erasure that the segment does not have
    "unerased",  # without the lines that redactions name, it is what a seal says
]


class Unlike(msgspec.Struct, frozen=True):
    """A sealed segment whose bytes are not those that were sealed.

    held: None where it is gone.
    remedy: what a person should do, where it has changed.
    """

    seal: Seal
    held: Held | None
    state: State = "changed"
    remedy: str = LOSS_REMEDY

    @property
    def why(self) -> str:
        """For people."""
        sealed = self.seal.bytes
        if self.held is None:
            return f"sealed with {sealed} bytes, is gone"
        if self.held.bytes != sealed:
            return f"sealed with {sealed} bytes, has {self.held.bytes}"
        return f"its {sealed} bytes are not those that were sealed"

    @property
    def note(self) -> str:
        """For people, of one that nobody changed."""
        if self.state == "arriving":
            size = 0 if self.held is None else self.held.bytes
            return f"{size} of {self.seal.bytes} bytes have arrived"
        if self.state == "unerased":
            return "erased text has come back, or is not erased here yet: memlog scrub"
        return "an erasure has arrived in the segment or in its seal, not in both: memlog scrub"


class Ownership:
    """Tells the segments of this copy's writer, and plain ones, from those that other writers send."""

    def __init__(self, log: Path) -> None:
        self._own = ("", *Writer(log.parent).own_names())
        self._sealed_here = self._own[:2]
        self._has_copies = bool({*seals_files(log)} - {*map(seals_file, self._own)})

    def is_foreign(self, segment: str) -> bool:
        """Whether another writer makes the segment of this file name, so that it comes with a file sync."""
        name = SegmentName.parse(segment)
        return name is not None and name.writer not in self._own

    def is_shared(self, segment: str) -> bool:
        """Whether a file sync may bring an erasure of this segment: it is another writer's, or a plain one
        in a log to which another copy has sent seals."""
        name = SegmentName.parse(segment)
        if name is None or name.writer != "":
            return self.is_foreign(segment)
        return self._has_copies

    def is_sealed_here(self, segment: str) -> bool:
        """Whether `memlog seal` seals the segment of this file name: none of another or a retired writer."""
        name = SegmentName.parse(segment)
        return name is not None and name.writer in self._sealed_here


def losses(log: Path, *, stream: str | None = None) -> list[Loss]:
    """The sealed segments that are gone or shorter than their seal says, and nobody has accepted it; of one
    stream, or all. Those of other writers are arriving.

    Raises:
        OSError: the seals, or a segment's folder, cannot be read.
    """
    owner = Ownership(log)
    return [loss for loss in _short(log, stream) if not owner.is_foreign(loss.segment)]


def arriving(log: Path) -> list[Loss]:
    """The sealed segments of other writers that are not here, or not whole. Raises as `losses`."""
    owner = Ownership(log)
    return [loss for loss in _short(log) if owner.is_foreign(loss.segment)]


def _short(log: Path, only: str | None = None) -> Iterator[Loss]:
    for (stream, segment), sealed in sealed_bytes(log).items():
        if only not in (None, stream):
            continue
        size = size_of(log, stream, segment)
        if (size is None and sealed > 0) or (size is not None and size < sealed):
            yield Loss(stream, segment, sealed, size)


def unlike(log: Path) -> list[Unlike]:
    """The sealed segments whose bytes are not those that were sealed, and neither a file sync nor an erasure
    explains it; every byte is read.

    Raises:
        OSError: the seals or a segment cannot be read.
    """
    return [each for each in differing(log) if each.state == "changed"]


def grown(log: Path) -> list[Unlike]:
    """Those of `unlike` that are longer than their seal says; no others are read. Raises as `unlike`."""
    longer = {name for name, sealed in sealed_bytes(log).items() if (size_of(log, *name) or 0) > sealed}
    return differing(log, longer) if longer else []


def differing(log: Path, only: Container[tuple[str, str]] | None = None) -> list[Unlike]:
    """As `unlike`, with those that are arriving, or that an erasure has not reached with all their seals.

    only: the segments to look at.

    Raises:
        OSError: the seals or a segment cannot be read.
    """
    found, owner, seals = [], Ownership(log), read_seals(log)
    erased = {line.seal.name for line in seals.lines if line.seal is not None and line.seal.is_blank}
    for name, last in seals.last.items():
        if only is not None and name not in only:
            continue
        held = held_by(log, *name)
        if not _are_like(last, held):
            state = _state(log, owner, last, held, is_erasure_known=name in erased)
            found.append(Unlike(holding(last), held, state, _remedy(log, owner, holding(last), held)))
        elif held is not None and _differ(last, held) and (half := _half_erased(log, owner, last, held)):
            found.append(Unlike(holding(last), held, half))
    return found


def _state(
    log: Path, owner: Ownership, last: Sequence[Seal], held: Held | None, *, is_erasure_known: bool
) -> State:
    seal = holding(last)
    if held is None or held.bytes < seal.bytes:
        return "arriving" if owner.is_foreign(seal.segment) else "changed"
    half_erased = _half_erased(log, owner, last, held)
    if half_erased == "unerased":
        return "unerased"
    if held.bytes > seal.bytes:
        return "changed"
    if is_erasure_known:
        # Who erases in a segment of this copy's writer with the seal at hand renews the seal.
        return "erased elsewhere" if owner.is_shared(seal.segment) else "changed"
    return half_erased or "changed"


def _remedy(log: Path, owner: Ownership, seal: Seal, held: Held | None) -> str:
    if held is None or not has_grown(log, seal):
        return LOSS_REMEDY
    return _GROWN if owner.is_sealed_here(seal.segment) else _GROWN_ELSEWHERE


def _differ(seals: Sequence[Seal], held: Held) -> bool:
    """Whether one of the seals has the hash of another version of what `held` is, as a seal says."""
    if any(seal.lost is not None for seal in seals):
        return False
    return any(
        seal.bytes == held.bytes and not seal.is_blank and seal.sha256 != held.sha256 for seal in seals
    )


def _half_erased(log: Path, owner: Ownership, last: Sequence[Seal], held: Held) -> State | None:
    """Whether the segment has text that a seal knows as erased, or an erasure that a seal does not know.

    In a segment of this copy's writer redactions and crcs have to prove the erasure, since another copy made
    it; in one of another writer's it may have come before the redactions.
    """
    # Imported here: most logs have no erasure that came with a part of the files.
    from memlog.eventlog.erasures import erasures_in
    from memlog.eventlog.reader import redacted_keys

    stream, filename = last[0].name
    # A seal of a file that is none, which a foreign program may have written, is of a plain one.
    name = SegmentName.parse(filename) or SegmentName("0001-01-01")
    redacted = redacted_keys(segments_in(log, stream))
    with opened(log, stream, filename) as fd:
        found = erasures_in(Segment(log, stream, name, is_newest=False), fd, held.bytes, redacted)
        as_erased = held_in(fd, held.bytes, found.standing)
        if found.standing and any(seal.is_of(as_erased) for seal in last):
            return "unerased"
        is_proven = name.writer != "" and found.is_proven and len(found.blank) <= len(redacted)
        return "erased here" if found.blank and (is_proven or owner.is_shared(filename)) else None


def _are_like(seals: Sequence[Seal], held: Held | None) -> bool:
    if held is None:
        # What was accepted as lost whole may be gone.
        seal = holding(seals)
        return seal.lost is not None and seal.bytes == 0
    return are_of(seals, held)
