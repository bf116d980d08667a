"""Compares sealed segments with their seals, to find losses and other differences."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memlog.eventlog.integrity.seal_file import (
    has_segment_grown,
    measure_open_file,
    measure_segment_if_present,
    read_seals,
    size_of_segment,
)
from memlog.eventlog.integrity.seal_format import Held, Seal, choose_seal
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.log.layout import SegmentRecord, list_seals_files, name_of_seals_file
from memlog.eventlog.log.reader import opening_segment_file
from memlog.eventlog.log.streams import (
    list_segments,
    make_segment_of_file,
    parse_writer_in_filename,
    select_existing_streams,
)

LOST = ": store.maintenance.verify() shows what was lost"
LOSS_REMEDY = "restore it from a copy, or accept the loss: store.maintenance.seal(accept_loss=True)"
_GROWN = "store.maintenance.seal()"
_GROWN_ELSEWHERE = (
    "store.maintenance.seal() on the copy that writes it, then copy log/ again; or"
    " store.maintenance.seal(accept_loss=True)"
)


class Loss(SegmentRecord, frozen=True):
    """A sealed segment that is missing or shorter than its seal.

    sealed: its size when it was sealed. bytes: its current size; None if the segment is missing.
    """

    sealed: int
    bytes: int | None

    @property
    def description(self) -> str:
        """The loss, described in a sentence."""
        now = "is gone" if self.bytes is None else f"has {self.bytes}"
        return f"{self.segment}, sealed with {self.sealed} bytes, {now}"


State = Literal[
    "changed",  # for none of the reasons below
    "arriving",  # a file sync has not brought all of another writer's segment
    "erased here",  # one of its seals predates an erasure in the segment
    "erased elsewhere",  # a seal knows an erasure that the segment lacks
    "unerased",  # with its redacted lines erased, it would match a seal
]


class Unlike(msgspec.Struct, frozen=True):
    """A sealed segment whose bytes differ from its seal.

    held: its current size and hash; None if it is missing. remedy: advice for the state `changed`.
    """

    seal: Seal
    held: Held | None
    state: State = "changed"
    remedy: str = LOSS_REMEDY

    @property
    def description(self) -> str:
        """The difference, described in a phrase."""
        sealed = self.seal.bytes
        if self.held is None:
            return f"sealed with {sealed} bytes, is gone"
        if self.held.bytes != sealed:
            return f"sealed with {sealed} bytes, has {self.held.bytes}"
        return f"its {sealed} bytes differ from those sealed"

    @property
    def note(self) -> str:
        """A note about the difference, for all states except `changed`."""
        if self.state == "arriving":
            size = 0 if self.held is None else self.held.bytes
            return f"{size} of {self.seal.bytes} bytes have arrived"
        if self.state == "unerased":
            return "erased text has come back, or is not erased here yet: store.erasure.scrub()"
        return "an erasure has arrived in the segment or in its seal, not in both: store.erasure.scrub()"


class Ownership:
    """Distinguishes this copy's own segments from those of other writers."""

    def __init__(self, log: Path) -> None:
        # Imported here: most logs have lost nothing.
        from memlog.eventlog.integrity.copy_identity import Writer

        self._own = ("", *Writer(log.parent).read_own_names())
        self._sealed_here = self._own[:2]
        self._has_copies = bool({*list_seals_files(log)} - {*map(name_of_seals_file, self._own)})

    def is_foreign(self, segment: str) -> bool:
        """Whether a segment belongs to another writer and thus comes from file sync."""
        return parse_writer_in_filename(segment) not in (None, *self._own)

    def is_shared(self, segment: str) -> bool:
        """Whether file sync may erase text in a segment: it is foreign, or plain in a log that has copies."""
        return self._has_copies if parse_writer_in_filename(segment) == "" else self.is_foreign(segment)

    def is_sealed_here(self, segment: str) -> bool:
        """Whether this copy may seal a segment: it is plain, or belongs to the current writer."""
        return parse_writer_in_filename(segment) in self._sealed_here


def find_losses(
    log: Path,
    *,
    only: Iterable[tuple[str, str]] | None = None,
    sealed: Mapping[tuple[str, str], int] | None = None,
) -> list[Loss]:
    """Return the sealed segments, all or those in `only`, that are missing or too short.

    Segments of other writers are excluded; see `find_arriving_segments`. sealed: the result of
    `read_sealed_lengths`, if known. Raises OSError.
    """
    short = [*_find_short_segments(log, read_sealed_lengths(log) if sealed is None else sealed, only)]
    if not short:
        return []  # most logs have no loss, and `Ownership` reads three files
    owner = Ownership(log)
    return [loss for loss in short if not owner.is_foreign(loss.segment)]


def find_arriving_segments(log: Path) -> list[Loss]:
    """Return other writers' sealed segments that are missing or incomplete. Raises OSError."""
    owner = Ownership(log)
    return [
        loss for loss in _find_short_segments(log, read_sealed_lengths(log)) if owner.is_foreign(loss.segment)
    ]


def _find_short_segments(
    log: Path, sealed: Mapping[tuple[str, str], int], only: Iterable[tuple[str, str]] | None = None
) -> Iterator[Loss]:
    names = list(sealed if only is None else filter(sealed.__contains__, only))
    folders = dict(select_existing_streams(log, {stream for stream, _ in names}))
    for name in names:
        size = size_of_segment(log, *name) if name[0] in folders else None
        if (size or 0) < sealed[name]:
            yield Loss(*name, sealed[name], size)


def find_altered_segments(log: Path) -> list[Unlike]:
    """Return the sealed segments that differ from their seals for reasons other than file sync or erasure.

    Reads every byte of all sealed segments. Raises OSError.
    """
    return [segment for segment in find_differing_segments(log) if segment.state == "changed"]


def find_grown_segments(log: Path) -> list[Unlike]:
    """Return the segments longer than their seals that differ from them; reads no others. Raises OSError."""
    longer = {
        name
        for name, sealed in read_sealed_lengths(log).items()
        if (size_of_segment(log, *name) or 0) > sealed
    }
    return find_differing_segments(log, longer) if longer else []


def find_differing_segments(log: Path, only: Container[tuple[str, str]] | None = None) -> list[Unlike]:
    """Return the sealed segments, all or those in `only`, that differ from their seals. Raises OSError."""
    differences, owner, seals = [], Ownership(log), read_seals(log)
    erased = {line.seal.name for line in seals.lines if line.seal is not None and line.seal.is_blank}
    for name, last in seals.last.items():
        if only is not None and name not in only:
            continue
        seal, held = choose_seal(last), measure_segment_if_present(log, *name)
        if not _matches_any_seal(last, held):
            state = _classify_difference(log, owner, last, held, is_erasure_known=name in erased)
            differences.append(Unlike(seal, held, state, _choose_remedy(log, owner, seal, held)))
        elif held and _has_other_hash(last, held) and (half := _classify_half_erased(log, owner, last, held)):
            differences.append(Unlike(seal, held, half))
    return differences


def _classify_difference(
    log: Path, owner: Ownership, last: Sequence[Seal], held: Held | None, *, is_erasure_known: bool
) -> State:
    seal = choose_seal(last)
    if held is None or held.bytes < seal.bytes:
        return "arriving" if owner.is_foreign(seal.segment) else "changed"
    half_erased = _classify_half_erased(log, owner, last, held)
    if half_erased == "unerased":
        return "unerased"
    if held.bytes > seal.bytes:
        return "changed"
    if is_erasure_known:
        # An erasure on this copy renews the seals of its own segments.
        return "erased elsewhere" if owner.is_shared(seal.segment) else "changed"
    return half_erased or "changed"


def _choose_remedy(log: Path, owner: Ownership, seal: Seal, held: Held | None) -> str:
    if held is None or not has_segment_grown(log, seal):
        return LOSS_REMEDY
    return _GROWN if owner.is_sealed_here(seal.segment) else _GROWN_ELSEWHERE


def _has_other_hash(seals: Sequence[Seal], held: Held) -> bool:
    """Whether a seal of the same length has a different hash from `held`, and no loss was accepted."""
    others = (seal for seal in seals if seal.bytes == held.bytes and not seal.is_blank)
    return all(seal.lost is None for seal in seals) and any(seal.sha256 != held.sha256 for seal in others)


def _classify_half_erased(log: Path, owner: Ownership, last: Sequence[Seal], held: Held) -> State | None:
    """Return the state if an erasure shows only in the segment or only in its seal; otherwise None.

    If the segment belongs to this copy's writer, redactions and crcs must prove the erasure, since another
    copy made it. If it belongs to another writer, the erasure may arrive before the redactions.
    """
    # Imported here: few logs have a half-erased segment.
    from memlog.eventlog.integrity.erasures import find_erasures
    from memlog.eventlog.log.reader import read_redacted_keys

    stream, filename = last[0].name
    segment = make_segment_of_file(log, stream, filename)
    redacted = read_redacted_keys(list_segments(log, [stream])[0])
    with opening_segment_file(log, stream, filename) as fd:
        erasures = find_erasures(segment, fd, held.bytes, redacted)
        as_erased = measure_open_file(fd, held.bytes, erasures.unfinished_lines)
        if erasures.unfinished_lines and any(seal.is_of(as_erased) for seal in last):
            return "unerased"
        is_proven = segment.name.writer != "" and erasures.is_proven and len(erasures.blank) <= len(redacted)
        return "erased here" if erasures.blank and (is_proven or owner.is_shared(filename)) else None


def _matches_any_seal(seals: Sequence[Seal], held: Held | None) -> bool:
    """Whether `held` matches one of the seals and is not shorter than the valid one.

    A seal in any file may match, since copies may know different states of an erasure. If the valid seal is
    blank, only the length is compared.
    """
    valid = choose_seal(seals)
    if held is None:
        # A segment accepted as lost may be missing.
        return valid.lost is not None and valid.bytes == 0
    if valid.is_blank:
        return held.bytes == valid.bytes
    return held.bytes >= valid.bytes and any(seal.is_of(held) for seal in seals)
