"""Compares sealed segments with their seals: losses and differences."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memlog.eventlog.integrity.seal_file import has_grown, held_by, held_in, read_seals, size_of
from memlog.eventlog.integrity.seal_format import Held, Seal, holding
from memlog.eventlog.integrity.seal_reader import sealed_bytes
from memlog.eventlog.log.layout import SegmentRecord, seals_file, seals_files
from memlog.eventlog.log.reader import opened
from memlog.eventlog.log.streams import existing_streams, segment_at, segments_of, writer_of

LOST = ": store.maintenance.verify() names what is lost"
LOSS_REMEDY = "put a copy of it back, or accept the loss: store.maintenance.seal(accept_loss=True)"
_GROWN = "store.maintenance.seal()"
_GROWN_ELSEWHERE = (
    "store.maintenance.seal() on the copy that writes it, then copy log/ again; or"
    " store.maintenance.seal(accept_loss=True)"
)


class Loss(SegmentRecord, frozen=True):
    """A sealed segment that is missing or shorter than its seal.

    sealed, bytes: its size by the seal, and now; `bytes` is None if it is missing.
    """

    sealed: int
    bytes: int | None

    @property
    def why(self) -> str:
        """A sentence for people."""
        now = "is gone" if self.bytes is None else f"has {self.bytes}"
        return f"{self.segment}, sealed with {self.sealed} bytes, {now}"


State = Literal[
    "changed",  # no reason below explains it
    "arriving",  # a file sync has not brought all of another writer's segment
    "erased here",  # one of its seals does not know an erasure in the segment
    "erased elsewhere",  # a seal knows an erasure that the segment lacks
    "unerased",  # without the redacted lines it would match a seal
]


class Unlike(msgspec.Struct, frozen=True):
    """A sealed segment whose bytes differ from its seal.

    held: its bytes now; None if it is missing. remedy: advice for a changed one.
    """

    seal: Seal
    held: Held | None
    state: State = "changed"
    remedy: str = LOSS_REMEDY

    @property
    def why(self) -> str:
        """What changed, for people."""
        sealed = self.seal.bytes
        if self.held is None:
            return f"sealed with {sealed} bytes, is gone"
        if self.held.bytes != sealed:
            return f"sealed with {sealed} bytes, has {self.held.bytes}"
        return f"its {sealed} bytes differ from those sealed"

    @property
    def note(self) -> str:
        """For people, about a segment that nobody changed."""
        if self.state == "arriving":
            size = 0 if self.held is None else self.held.bytes
            return f"{size} of {self.seal.bytes} bytes have arrived"
        if self.state == "unerased":
            return "erased text has come back, or is not erased here yet: store.erasure.scrub()"
        return "an erasure has arrived in the segment or in its seal, not in both: store.erasure.scrub()"


class Ownership:
    """Tells which segments this copy's writer makes and which other writers send."""

    def __init__(self, log: Path) -> None:
        # Imported here: most logs have lost nothing.
        from memlog.eventlog.integrity.copy_identity import Writer

        self._own = ("", *Writer(log.parent).own_names())
        self._sealed_here = self._own[:2]
        self._has_copies = bool({*seals_files(log)} - {*map(seals_file, self._own)})

    def is_foreign(self, segment: str) -> bool:
        """Whether another writer makes a segment, so that it comes by a file sync."""
        return writer_of(segment) not in (None, *self._own)

    def is_shared(self, segment: str) -> bool:
        """Whether a file sync may bring an erasure of a segment.

        It is another writer's, or plain in a log that has seals of another copy.
        """
        return self._has_copies if writer_of(segment) == "" else self.is_foreign(segment)

    def is_sealed_here(self, segment: str) -> bool:
        """Whether a seal run seals a segment: not those of other or retired writers."""
        return writer_of(segment) in self._sealed_here


def losses(
    log: Path,
    *,
    only: Iterable[tuple[str, str]] | None = None,
    sealed: Mapping[tuple[str, str], int] | None = None,
) -> list[Loss]:
    """Return the sealed segments that are missing or shorter than their seals, all or `only` these.

    Those of other writers are left out: they are `arriving`. Raises OSError.

    sealed: the `sealed_bytes` of the log, if they are known.
    """
    short = [*_short(log, sealed_bytes(log) if sealed is None else sealed, only)]
    if not short:
        return []  # who owns a segment takes reading three files, and most logs have lost nothing
    owner = Ownership(log)
    return [loss for loss in short if not owner.is_foreign(loss.segment)]


def arriving(log: Path) -> list[Loss]:
    """Return the sealed segments of other writers that are missing or incomplete. Raises OSError."""
    owner = Ownership(log)
    return [loss for loss in _short(log, sealed_bytes(log)) if owner.is_foreign(loss.segment)]


def _short(
    log: Path, sealed: Mapping[tuple[str, str], int], only: Iterable[tuple[str, str]] | None = None
) -> Iterator[Loss]:
    names = list(sealed if only is None else filter(sealed.__contains__, only))
    folders = dict(existing_streams(log, {stream for stream, _ in names}))
    for name in names:
        size = size_of(log, *name) if name[0] in folders else None
        if (size or 0) < sealed[name]:
            yield Loss(*name, sealed[name], size)


def unlike(log: Path) -> list[Unlike]:
    """Return the sealed segments that differ from their seals for another reason than file sync or erasure.

    Reads every byte of the log. Raises OSError.
    """
    return [segment for segment in differing(log) if segment.state == "changed"]


def grown(log: Path) -> list[Unlike]:
    """As `unlike`, for the segments longer than their seals; reads no others. Raises OSError."""
    longer = {name for name, sealed in sealed_bytes(log).items() if (size_of(log, *name) or 0) > sealed}
    return differing(log, longer) if longer else []


def differing(log: Path, only: Container[tuple[str, str]] | None = None) -> list[Unlike]:
    """As `unlike`, with segments arriving or half erased.

    only: those to look at.

    Raises OSError.
    """
    differences, owner, seals = [], Ownership(log), read_seals(log)
    erased = {line.seal.name for line in seals.lines if line.seal is not None and line.seal.is_blank}
    for name, last in seals.last.items():
        if only is not None and name not in only:
            continue
        seal, held = holding(last), held_by(log, *name)
        if not _are_like(last, held):
            state = _state(log, owner, last, held, is_erasure_known=name in erased)
            differences.append(Unlike(seal, held, state, _remedy(log, owner, seal, held)))
        elif held is not None and _differ(last, held) and (half := _half_erased(log, owner, last, held)):
            differences.append(Unlike(seal, held, half))
    return differences


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
        # An erasure in a segment of this copy's writer renews the seal.
        return "erased elsewhere" if owner.is_shared(seal.segment) else "changed"
    return half_erased or "changed"


def _remedy(log: Path, owner: Ownership, seal: Seal, held: Held | None) -> str:
    if held is None or not has_grown(log, seal):
        return LOSS_REMEDY
    return _GROWN if owner.is_sealed_here(seal.segment) else _GROWN_ELSEWHERE


def _differ(seals: Sequence[Seal], held: Held) -> bool:
    """Whether a seal of the same length has another hash than `held`."""
    if any(seal.lost is not None for seal in seals):
        return False
    return any(
        seal.bytes == held.bytes and not seal.is_blank and seal.sha256 != held.sha256 for seal in seals
    )


def _half_erased(log: Path, owner: Ownership, last: Sequence[Seal], held: Held) -> State | None:
    """Return the state of a segment that is half erased; None for others.

    It has text that a seal knows as erased, or an erasure that a seal does not know.

    In a segment of this copy's writer, redactions and crcs must prove an erasure, since another copy made it;
    another writer's may arrive before the redactions.
    """
    # Imported here: few logs have an erasure that arrived with only a part of the files.
    from memlog.eventlog.integrity.erasures import erasures_in
    from memlog.eventlog.log.reader import redacted_keys

    stream, filename = last[0].name
    segment = segment_at(log, stream, filename)
    redacted = redacted_keys(segments_of(log, [stream])[0])
    with opened(log, stream, filename) as fd:
        erasures = erasures_in(segment, fd, held.bytes, redacted)
        as_erased = held_in(fd, held.bytes, erasures.unfinished)
        if erasures.unfinished and any(seal.is_of(as_erased) for seal in last):
            return "unerased"
        is_proven = segment.name.writer != "" and erasures.is_proven and len(erasures.blank) <= len(redacted)
        return "erased here" if erasures.blank and (is_proven or owner.is_shared(filename)) else None


def _are_like(seals: Sequence[Seal], held: Held | None) -> bool:
    """Whether `held` matches one of the seals and is no shorter than the valid one.

    A blank valid seal compares the length alone.


    Any file may match: two copies may know different states of an erasure.
    """
    valid = holding(seals)
    if held is None:
        # A segment accepted as lost may be missing.
        return valid.lost is not None and valid.bytes == 0
    if valid.is_blank:
        return held.bytes == valid.bytes
    return held.bytes >= valid.bytes and any(seal.is_of(held) for seal in seals)
