"""Remembers what projections have read of segments, so that a loss of bytes without a seal is seen.

`<store>/watermarks.jsonl` (`watermark_file`) is beside the log and outlives the read model. Whoever writes it
holds the projector lock.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.erasures import Span, erased_lines, erasures_in, spans_of, split_by
from memlog.eventlog.layout import LOG, PROJECTOR_LOCK
from memlog.eventlog.locks import locked
from memlog.eventlog.reader import redacted_keys
from memlog.eventlog.seals.lengths import sealed_bytes
from memlog.eventlog.seals.losses import Ownership, losses
from memlog.eventlog.seals.measure import size_of
from memlog.eventlog.segment import Fingerprint, Line, fingerprint, opened
from memlog.eventlog.streams import Segment, SegmentName, segments_in
from memlog.eventlog.watermark_file import Name, Watermark, WatermarkFile

_FEW = 16
"""Segments up to which searching the file from its end is faster than decoding it."""


class OpenLoss(msgspec.Struct, frozen=True):
    """A segment of which bytes are gone, or other ones, that a projection has read and no seal protects.

    read: how many bytes were read. bytes: how many it has; None where it is gone.
    """

    stream: str
    segment: str
    read: int
    bytes: int | None

    @property
    def why(self) -> str:
        """For people."""
        if self.bytes is None:
            return f"{self.segment} is gone; {self.read} bytes of it were read before"
        if self.bytes < self.read:
            return f"{self.segment} has {self.bytes} bytes; {self.read} were read before"
        return f"{self.segment}: its first {self.read} bytes are not those that were read before"


class ReturnedText(msgspec.Struct, frozen=True):
    """A segment in which erased text stands again: another copy has sent it, or it comes from a backup."""

    stream: str
    segment: str

    @property
    def why(self) -> str:
        """For people."""
        return f"{self.segment}: erased text has come back"


class Read(NamedTuple):
    """How far a projection has read a segment. before: how far it had read when it began, if it is known."""

    segment: Segment
    now: Fingerprint
    before: Fingerprint | None = None


def remember(log: Path, reads: list[Read]) -> list[OpenLoss]:
    """Raise the watermarks of what was read, and return what was found lost meanwhile: that stays as it was.

    Raises:
        OSError: the file cannot be read or written.
    """
    if not all(read.segment.is_newest for read in reads):
        is_protected = _seal_protection(log)
        reads = [read for read in reads if not is_protected(_name(read.segment))]
    if not reads:
        return []
    file = WatermarkFile(log.parent)
    known = file.all() if len(reads) > _FEW else None
    raised, lost = [], []
    for read in reads:
        old = file.last(*_name(read.segment)) if known is None else known.get(_name(read.segment))
        new = _raised(file, read, old)
        if isinstance(new, OpenLoss):
            lost.append(new)
        elif new is not None and new != old:
            raised.append(new)
    file.add(raised, partial(_asked_for, log))
    return lost


def open_losses(store: Path, *, stream: str | None = None) -> list[OpenLoss]:
    """What was read of segments and is not there any more, and nobody has accepted it; of one stream, or all.
    What a seal says of a segment that lost something is not said again.

    Raises:
        OSError: the file, the seals or a segment cannot be read.
    """
    return [found for found in differences(store, stream=stream) if isinstance(found, OpenLoss)]


def differences(store: Path, *, stream: str | None = None) -> list[OpenLoss | ReturnedText]:
    """As `open_losses`, with the segments in which erased text has come back."""
    marks = WatermarkFile(store).all(stream).values()
    if not marks:
        return []
    by_seals = {(loss.stream, loss.segment) for loss in losses(store / LOG, stream=stream)}
    found = (_difference(store / LOG, mark) for mark in marks if mark.name not in by_seals)
    return [difference for difference in found if difference is not None]


def accept_open_losses(store: Path, *, lock_timeout: float) -> list[OpenLoss]:
    """Take what is there now as what was read, and return what is given up.

    Raises:
        Busy: a projector held its lock for too long. OSError: as `open_losses`; nothing was accepted.
    """
    if not open_losses(store):
        return []
    with locked(store / PROJECTOR_LOCK, "the read model", lock_timeout):
        lost = open_losses(store)
        file = WatermarkFile(store)
        marks = file.all()
        for loss in lost:
            del marks[loss.stream, loss.segment]
            if loss.bytes is not None:
                with opened(store / LOG, loss.stream, loss.segment) as fd:
                    mark = _measured((loss.stream, loss.segment), fd, disk.status(fd).st_size)
                marks[mark.name] = mark
        file.replace(marks.values())
    return lost


@contextmanager
def erasing(segment: Segment, fd: int) -> Iterator[None]:
    """Meanwhile lines of the open segment are erased: its watermark follows, and no hash of what they were
    stays. A loss from before stays one.

    Raises:
        OSError: the file cannot be written; then nothing was erased.
    """
    file = WatermarkFile(segment.log.parent)
    old = file.last(*_name(segment))
    if old is None:
        yield
        return
    held = old.still_holds(fd) or _returned_lines(segment, fd, old) is not None
    file.blank(old, is_lost=not held)
    yield
    if held:
        file.add([_measured(old.name, fd, old.bytes)], partial(_asked_for, segment.log))


def _raised(file: WatermarkFile, read: Read, old: Watermark | None) -> Watermark | OpenLoss | None:
    """The watermark that takes the place of `old`; or what of it is lost; or None: it stays. Of lines that
    another copy erased no hash stays, and of text that has come back none is made."""
    segment, now = read.segment, read.now
    if old is not None and now.offset == old.bytes and old.is_of(now):
        return None
    try:
        with opened(segment.log, segment.stream, segment.name.filename) as fd:
            if old is None:
                return _mark(_name(segment), now, spans_of(erased_lines(fd, 0, now.offset)))
            if old.is_being_erased and now.offset >= old.bytes:
                return _measured(old.name, fd, now.offset)
            held = _held_prefix(fd, old, read.before)
            if held is not None:
                if now.offset <= old.bytes:
                    return None
                new = held.extended(fd, now.offset)
                erased = spans_of(erased_lines(fd, old.bytes, now.offset))
                return _mark(old.name, new, (*old.blank, *erased))
            returned = _returned_lines(segment, fd, old)
            if returned is None:
                return OpenLoss(*old.name, old.bytes, disk.status(fd).st_size)
            mark = _measured(old.name, fd, max(old.bytes, now.offset), returned)
            if mark != old:
                file.blank(old, is_lost=False)
            return mark
    except FileNotFoundError:
        return None if old is None else OpenLoss(*old.name, old.bytes, None)


def _held_prefix(fd: int, old: Watermark, before: Fingerprint | None) -> Fingerprint | None:
    """The fingerprint of the bytes that `old` speaks of, where the open segment still has them.

    before: of what the caller has just read on from. Its whole blocks need not be hashed again: whoever
    changes them changes no hash that is carried on, so that the change is found when all is hashed.
    """
    if before is not None and before.offset == old.bytes and old.is_of(before):
        return before if before.matches_rest(fd) else None
    if disk.status(fd).st_size < old.bytes:
        return None
    found = fingerprint(fd, old.bytes)
    return found if old.is_of(found) else None


def _difference(log: Path, mark: Watermark) -> OpenLoss | ReturnedText | None:
    size = size_of(log, mark.stream, mark.segment)
    try:
        if size is not None and size >= mark.bytes:
            with opened(log, mark.stream, mark.segment) as fd:
                if mark.still_holds(fd):
                    return None
                segment = Segment(log, mark.stream, _parsed(mark.segment), is_newest=True)
                returned = _returned_lines(segment, fd, mark)
                if returned is not None:
                    return ReturnedText(*mark.name) if returned else None
    except FileNotFoundError:
        size = None
    return OpenLoss(*mark.name, mark.bytes, size)


def _returned_lines(segment: Segment, fd: int, old: Watermark) -> list[Line] | None:
    """The lines that `old` knows as erased and that have their text again. None where the open segment
    differs from `old` by more than erasures.

    Erasures by another copy are believed as far as can be told: some line is blank that was none, the stream
    has redactions, and each other line of memlog's is whole. One redaction erases every line of its id.
    """
    if old.is_of_lost_bytes or disk.status(fd).st_size < old.bytes:
        return None
    redacted = redacted_keys(segments_in(segment.log, segment.stream))
    found = erasures_in(segment, fd, old.bytes, redacted)
    returned, _ = split_by(found.standing, old.blank)
    if returned and old.is_of(fingerprint(fd, old.bytes, returned)):
        return returned
    _, erased_elsewhere = split_by([*found.blank, *found.begun], old.blank)
    is_erased_version = found.is_whole and erased_elsewhere and len(redacted) > 0
    return returned if is_erased_version else None


def _measured(name: Name, fd: int, size: int, returned: Sequence[Line] = ()) -> Watermark:
    """The watermark of an open segment as it is when the lines `returned` are erased."""
    erased = spans_of([*erased_lines(fd, 0, size), *returned])
    return _mark(name, fingerprint(fd, size, returned), erased)


def _mark(name: Name, read: Fingerprint, blank: tuple[Span, ...]) -> Watermark:
    return Watermark(*name, read.offset, read.chain.hex(), read.rest.hex(), blank)


def _asked_for(log: Path, marks: Iterable[Watermark]) -> list[Watermark]:
    """The watermarks without those of segments that a seal protects; of what had been lost when it was sealed
    they stay."""
    is_protected = _seal_protection(log)
    return [mark for mark in marks if not is_protected(mark.name) or _difference(log, mark) is not None]


def _seal_protection(log: Path) -> Callable[[Name], bool]:
    """Tells whether a seal says what is lost of a segment. It does not of another writer's: what is shorter
    than its seal may be arriving."""
    sealed, owner = sealed_bytes(log), Ownership(log)
    return lambda name: name in sealed and not owner.is_foreign(name[1])


def _parsed(filename: str) -> SegmentName:
    return SegmentName.parse(filename) or SegmentName("0001-01-01")


def _name(segment: Segment) -> Name:
    return segment.stream, segment.name.filename
