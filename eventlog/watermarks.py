"""Detects the loss of bytes that this copy has read or written and no seal protects.

`<store>/watermarks.jsonl` (`watermark_file`) lies beside the log and outlives the read model. Writing it
needs the projector lock.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from memlog.eventlog import disk
from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.erasures import Span, erased_lines, erasures_in, spans_of, split_by
from memlog.eventlog.layout import LOG, PROJECTOR_LOCK, SegmentRecord
from memlog.eventlog.locks import locked
from memlog.eventlog.reader import redacted_keys
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.losses import Ownership, losses
from memlog.eventlog.seals.measure import size_of
from memlog.eventlog.seals.reader import sealed_bytes
from memlog.eventlog.segment import Fingerprint, Line, fingerprint, opened
from memlog.eventlog.streams import Segment, segment_at, segments_of
from memlog.eventlog.watermark_file import Name, Watermark, WatermarkFile


class OpenLoss(SegmentRecord, frozen=True):
    """A segment without a seal whose bytes a projection has read, and that lost or changed some since.

    read, bytes: the size that was read, and the size now; `bytes` is None if the segment is missing.
    """

    read: int
    bytes: int | None

    @property
    def why(self) -> str:
        """A sentence for people."""
        if self.bytes is None:
            return f"{self.segment} is gone; {self.read} bytes of it were read before"
        if self.bytes < self.read:
            return f"{self.segment} has {self.bytes} bytes; {self.read} were read before"
        return f"{self.segment}: its first {self.read} bytes, read before, have changed"


class WriteLoss(OpenLoss, frozen=True):
    """A segment without a seal that is shorter than this copy has written it, or missing."""

    @property
    def why(self) -> str:
        """A sentence for people."""
        now = "is gone" if self.bytes is None else f"has {self.bytes} bytes"
        return f"{self.segment} {now}; {self.read} were written before"


class ReturnedText(SegmentRecord, frozen=True):
    """A segment whose erased text is back, from another copy or a backup."""

    @property
    def why(self) -> str:
        """A sentence for people."""
        return f"{self.segment}: erased text has come back"


class Read(NamedTuple):
    """How far a projection has read a segment. before: where this read began, if known."""

    segment: Segment
    now: Fingerprint
    before: Fingerprint | None = None


class Watermarks:
    """The watermarks of a store. The caller of `remember` and `erasing` holds the projector lock."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._log = store / LOG
        self._file = WatermarkFile(store)

    @cached_property
    def _writer(self) -> Writer:
        """Read where it is asked for: most catch-ups have lost nothing."""
        return Writer(self._store)

    @property
    def is_void(self) -> bool:
        """Whether nothing is remembered, as in a copied store."""
        self._file.refresh()
        return self._file.is_void

    def remember(self, reads: list[Read]) -> list[OpenLoss]:
        """Raise the watermarks to `reads`. Returns losses, whose watermarks stay. Raises OSError."""
        self._file.refresh()
        if not all(read.segment.is_newest for read in reads):
            is_protected = self._seal_protection()
            reads = [read for read in reads if not is_protected(read.segment.key)]
        raised, lost = [], []
        for read in reads:
            old = self._file.get(*read.segment.key)
            new = _raised(self._file, read, old)
            if isinstance(new, OpenLoss):
                lost.append(new)
            elif new is not None and new != old:
                raised.append(new)
        self._file.add(raised, self._still_needed)
        return lost

    def losses(self, *, stream: str | None = None) -> list[OpenLoss]:
        """The losses of a stream, or of all, that nobody has accepted and no seal shows. Raises OSError."""
        return [each for each in self.differences(stream=stream) if isinstance(each, OpenLoss)]

    def differences(self, *, stream: str | None = None) -> list[OpenLoss | ReturnedText]:
        """As `losses`, with the segments whose erased text has come back."""
        self._file.refresh()
        marks = self._file.all(stream)
        shown_by_seals = {loss.name for loss in losses(self._log, only=[mark.name for mark in marks])}
        differences = (_difference(self._log, mark) for mark in marks if mark.name not in shown_by_seals)
        found = {difference.name: difference for difference in differences if difference is not None}
        lost = [loss for loss in self._unwritten(stream) if not isinstance(found.get(loss.name), OpenLoss)]
        return [*found.values(), *lost]

    def _unwritten(self, stream: str | None) -> Iterator[WriteLoss]:
        """The segments that are shorter than this copy has written them, unless a seal accepts it."""
        for each in self._writer.written().values():
            if stream not in (None, each.stream):
                continue
            size = size_of(self._log, *each.name)
            if (size or 0) >= each.bytes:
                continue
            seals = read_seals(self._log).last.get(each.name, ())
            if not any(seal.bytes >= each.bytes or seal.lost is not None for seal in seals):
                yield WriteLoss(*each.name, each.bytes, size)

    def accept_losses(self, *, lock_timeout: float) -> list[OpenLoss]:
        """Take the current bytes of damaged segments for all that was read. Returns the accepted losses.

        Takes the projector lock. Raises Busy and OSError; then nothing was accepted.
        """
        if not self.losses():
            return []
        with locked(self._store / PROJECTOR_LOCK, "the read model", lock_timeout):
            lost = self.losses()
            marks = {mark.name: mark for mark in self._file.all()}
            for loss in lost:
                marks.pop(loss.name, None)
                if loss.bytes is not None:
                    with opened(self._log, loss.stream, loss.segment) as fd:
                        marks[loss.name] = _measured(loss.name, fd, disk.status(fd).st_size)
            self._file.replace(marks.values())
            sizes = {loss.name: loss.bytes or 0 for loss in lost}
            if sizes.keys() & self._writer.written().keys():
                # Another copy may have the rest: what follows goes to other segments.
                self._writer.retire(self._writer.name())
            self._writer.accept(sizes)
        return lost

    @contextmanager
    def erasing(self, segment: Segment, fd: int) -> Iterator[None]:
        """A context in which lines of the open segment are erased: the watermark follows, and no hash of the
        erased text stays. An earlier loss stays a loss. Raises OSError; then nothing was erased.
        """
        self._file.refresh()
        old = self._file.get(*segment.key)
        if old is None:
            yield
            return
        held = old.still_holds(fd) or _returned_lines(segment, fd, old) is not None
        self._file.blank(old, is_lost=not held)
        yield
        if held:
            self._file.add([_measured(old.name, fd, old.bytes)], self._still_needed)

    def _still_needed(self, marks: Iterable[Watermark]) -> list[Watermark]:
        """Without the watermarks of sealed segments, except those damaged before they were sealed."""
        is_protected = self._seal_protection()
        return [
            mark for mark in marks if not is_protected(mark.name) or _difference(self._log, mark) is not None
        ]

    def _seal_protection(self) -> Callable[[Name], bool]:
        """Returns a test whether a seal shows what a segment loses. Another writer's seal does not: a segment
        shorter than it may be arriving.
        """
        sealed, owner = sealed_bytes(self._log), Ownership(self._log)
        return lambda name: name in sealed and not owner.is_foreign(name[1])


def _raised(file: WatermarkFile, read: Read, old: Watermark | None) -> Watermark | OpenLoss | None:
    """The watermark that replaces `old`, or its loss, or None if `old` stays. No hash covers lines that
    another copy erased, nor erased text that came back.
    """
    segment, now = read.segment, read.now
    if old is not None and now.offset == old.bytes and old.is_of(now):
        return None
    try:
        with opened(segment.log, *segment.key) as fd:
            if old is None:
                return _mark(segment.key, now, spans_of(erased_lines(fd, 0, now.offset)))
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
    """The fingerprint of the bytes of `old` if the open segment still has them, else None.

    before: where the caller's read began. Its whole blocks need no second hash: the chained hash of a changed
    block stays, so a later check of all bytes finds the change.
    """
    if before is not None and before.offset == old.bytes and old.is_of(before):
        return before if before.matches_rest(fd) else None
    if disk.status(fd).st_size < old.bytes:
        return None
    now = fingerprint(fd, old.bytes)
    return now if old.is_of(now) else None


def _difference(log: Path, mark: Watermark) -> OpenLoss | ReturnedText | None:
    size = size_of(log, mark.stream, mark.segment)
    try:
        if size is not None and size >= mark.bytes:
            with opened(log, mark.stream, mark.segment) as fd:
                if mark.still_holds(fd):
                    return None
                returned = _returned_lines(segment_at(log, *mark.name), fd, mark)
                if returned is not None:
                    return ReturnedText(*mark.name) if returned else None
    except FileNotFoundError:
        size = None
    return OpenLoss(*mark.name, mark.bytes, size)


def _returned_lines(segment: Segment, fd: int, old: Watermark) -> list[Line] | None:
    """The lines that `old` knows as erased and whose text is back. None if the open segment differs from
    `old` by more than erasures.

    Erasures by another copy count if another line is blank now, the stream has redactions, and every other
    line of memlog is intact. One redaction erases every line of its id.
    """
    if old.is_of_lost_bytes or disk.status(fd).st_size < old.bytes:
        return None
    redacted = redacted_keys(segments_of(segment.log, [segment.stream])[0])
    erasures = erasures_in(segment, fd, old.bytes, redacted)
    returned, _ = split_by(erasures.unfinished, old.blank)
    if returned and old.is_of(fingerprint(fd, old.bytes, returned)):
        return returned
    _, erased_elsewhere = split_by([*erasures.blank, *erasures.begun], old.blank)
    is_erased_version = erasures.is_whole and erased_elsewhere and len(redacted) > 0
    return returned if is_erased_version else None


def _measured(name: Name, fd: int, size: int, returned: Sequence[Line] = ()) -> Watermark:
    """The watermark of an open segment, as if the lines `returned` were erased."""
    erased = spans_of([*erased_lines(fd, 0, size), *returned])
    return _mark(name, fingerprint(fd, size, returned), erased)


def _mark(name: Name, read: Fingerprint, blank: tuple[Span, ...]) -> Watermark:
    return Watermark(*name, read.offset, read.chain.hex(), read.rest.hex(), blank)
