"""Detects the loss of bytes that this copy has read or written and that no seal protects.

`<store>/watermarks.jsonl` is next to the log and outlives the read model. Only a holder of the projector lock
may write to it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog.escapes import decode_json
from memlog.eventlog.files import disk, folders
from memlog.eventlog.files.file_io import closing_descriptor, file_version, overwrite_all, status_at
from memlog.eventlog.files.folders import read_unless_copied
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.erasures import (
    Span,
    find_erased_lines,
    find_erasures,
    merge_into_spans,
    split_lines_by_spans,
)
from memlog.eventlog.integrity.seal_file import read_seals, size_of_segment
from memlog.eventlog.integrity.seal_losses import Ownership, find_losses
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.log.layout import LOG, PROJECTOR_LOCK, WATERMARKS, SegmentRecord
from memlog.eventlog.log.reader import (
    Fingerprint,
    Line,
    opening_segment_file,
    read_redacted_keys,
    take_fingerprint,
)
from memlog.eventlog.log.streams import Segment, list_segments, make_segment_of_file

# The last line about a segment counts. Nothing is synced: losing the file costs an alarm and no data. It is
# valid only for this copy of the store, since a copy made during writes may have segments older than their
# watermarks.

Name = tuple[str, str]
"""The stream and the file name of a segment."""

_Place = tuple[int, int]
"""The offset and length of a line."""

_SPARE = 12 * 1024
"""Bytes of superseded lines (about 50 lines) below which a rewrite is not worthwhile."""
_UNLIKE = "unlike"


class Watermark(SegmentRecord, frozen=True):
    """The first `bytes` bytes of a segment, as read by a projection.

    chain, rest: from their `Fingerprint`, in hex. Both are blank during an erasure, when only the length
      counts. If bytes were lost before the erasure, `rest` is `unlike`, which nothing matches.
    blank: the spans of erased lines, which the hashes treat as blank even if their text comes back.
    """

    bytes: int
    chain: str
    rest: str
    blank: tuple[Span, ...] = ()

    def matches_fingerprint(self, read: Fingerprint) -> bool:
        """Whether the hashes match the fingerprint `read`, taken at the same length."""
        return (self.chain, self.rest) == (read.chain.hex(), read.rest.hex())

    @property
    def is_being_erased(self) -> bool:
        """Whether the hashes are blank because a scrub is unfinished."""
        return not self.rest.strip()

    @property
    def is_of_lost_bytes(self) -> bool:
        """Whether bytes were lost before an erasure blanked the hashes."""
        return self.rest.startswith(_UNLIKE)

    def matches_open_segment(self, fd: int) -> bool:
        """Whether the open segment still starts with these bytes."""
        if disk.status_of_descriptor(fd).st_size < self.bytes:
            return False
        return self.is_being_erased or self.matches_fingerprint(take_fingerprint(fd, self.bytes))


class WatermarkFile:
    """The watermarks of a store, keyed by stream and segment.

    The file is reread only if another process has changed it, because a catch-up does thousands of lookups.
    """

    def __init__(self, store: Path) -> None:
        self._path = store / WATERMARKS
        self._version: tuple[int, ...] | None = None
        self._load_index(b"")

    def refresh(self) -> None:
        """Reread the file if another process has changed it. Raises OSError."""
        version = file_version(status_at(self._path))
        if version != self._version:
            self._load_index(read_unless_copied(self._path))
            self._version = version

    @property
    def is_void(self) -> bool:
        """Whether the file is missing or belongs to another copy of the store."""
        return not self._data

    def find_watermark(self, stream: str, segment: str) -> Watermark | None:
        """Return a segment's watermark, or None."""
        return self._read_last_intact_watermark(self._find_places_of_segment(stream, segment))

    def list_watermarks(self, stream: str | None = None) -> list[Watermark]:
        """Return the watermarks of one stream or of all streams."""
        streams = (
            self._places.values() if stream is None else [self._places.get(_encode_line_start(stream), {})]
        )
        marks = (
            self._read_last_intact_watermark(places) for segments in streams for places in segments.values()
        )
        return [mark for mark in marks if mark is not None]

    def append_watermarks(
        self, marks: list[Watermark], still_needed: Callable[[Iterable[Watermark]], Iterable[Watermark]]
    ) -> None:
        """Append `marks`; once half of the file is obsolete, rewrite it with the result of `still_needed`.

        Raises OSError.
        """
        if not marks:
            return
        if self.is_void:
            self.replace_all_watermarks(marks)
            return
        self._index_lines(folders.append_lines(self._path, marks, is_torn=not self._data.endswith(b"\n")))
        self._version = file_version(status_at(self._path))
        if len(self._data) > 2 * self._live_bytes + _SPARE:
            self.replace_all_watermarks(still_needed(self.list_watermarks()))

    def replace_all_watermarks(self, marks: Iterable[Watermark]) -> None:
        """Replace the file's contents with `marks`. Raises OSError."""
        self._load_index(folders.replace_lines(self._path, marks))
        self._version = file_version(status_at(self._path))

    def blank_hashes_of_segment(self, mark: Watermark, *, is_lost: bool) -> None:
        """Overwrite all hashes of a segment, and all torn lines, in place; then sync the file.

        Raises OSError.
        """
        with closing_descriptor(disk.open(self._path, disk.WRITE)) as fd:
            for offset, length in [*self._unnamed, *self._find_places_of_segment(*mark.name)]:
                blank = _blank_line(bytes(self._data[offset : offset + length]), is_lost=is_lost)
                overwrite_all(fd, blank, offset)
                self._data[offset : offset + length] = blank
            disk.sync_data(fd)
            self._version = file_version(disk.status_of_descriptor(fd))

    def _find_places_of_segment(self, stream: str, segment: str) -> list[_Place]:
        return self._places.get(_encode_line_start(stream), {}).get(msgspec.json.encode(segment), [])

    def _read_last_intact_watermark(self, places: list[_Place]) -> Watermark | None:
        """Return the last intact watermark at `places`, or None."""
        marks = (
            decode_json(self._data[offset : offset + length], Watermark)
            for offset, length in reversed(places)
        )
        return next((mark for mark in marks if mark is not None), None)

    def _load_index(self, data: bytes) -> None:
        self._data = bytearray()
        self._places: defaultdict[bytes, dict[bytes, list[_Place]]] = defaultdict(dict)
        self._unnamed: list[_Place] = []
        self._live_bytes = 0
        header, newline, lines = data.partition(b"\n")
        self._data += header + newline
        self._index_lines(lines)

    def _index_lines(self, data: bytes) -> None:
        """Index more bytes of the file without decoding its lines."""
        offset = len(self._data)
        self._data += data
        for line in data.split(b"\n"):
            # A quote in a name is escaped, so no name contains a separator.
            names, has_bytes, _ = line.partition(b',"bytes":')
            stream, has_segment, segment = names.partition(b',"segment":')
            if has_bytes and has_segment:
                places = self._places[stream].setdefault(segment, [])
                self._live_bytes += len(line) - (places[-1][1] if places else 0)
                places.append((offset, len(line)))
            elif line:
                self._unnamed.append((offset, len(line)))
            offset += len(line) + 1


def _encode_line_start(stream: str) -> bytes:
    """Return the bytes that every line about a stream starts with."""
    return msgspec.json.encode({"stream": stream})[:-1]


def _blank_line(line: bytes, *, is_lost: bool) -> bytes:
    """Blank a line's hashes, keeping its length; blank a torn line entirely."""
    if decode_json(line, Watermark) is None:
        return b" " * len(line)
    for name in (b"chain", b"rest"):
        start = line.index(b'"' + name + b'":"') + len(name) + 4
        end = line.index(b'"', start)
        value = _UNLIKE.encode() if is_lost and name == b"rest" else b""
        line = line[:start] + value.ljust(end - start) + line[end:]
    return line


class OpenLoss(SegmentRecord, frozen=True):
    """An unsealed segment whose bytes were lost or changed after a projection read them.

    read: the size that was read. bytes: the current size; None if the segment is missing.
    """

    read: int
    bytes: int | None

    @property
    def description(self) -> str:
        """The loss, described in a sentence."""
        if self.bytes is None:
            return f"{self.segment} is gone; {self.read} bytes of it were read before"
        if self.bytes < self.read:
            return f"{self.segment} has {self.bytes} bytes; {self.read} were read before"
        return f"{self.segment}: its first {self.read} bytes, read before, have changed"


class WriteLoss(OpenLoss, frozen=True):
    """An unsealed segment that is missing, or shorter than when this copy last wrote to it."""

    @property
    def description(self) -> str:
        """The loss, described in a sentence."""
        now = "is gone" if self.bytes is None else f"has {self.bytes} bytes"
        return f"{self.segment} {now}; {self.read} were written before"


class ReturnedText(SegmentRecord, frozen=True):
    """A segment in which erased text has come back, from another copy or from a backup."""

    @property
    def description(self) -> str:
        """The finding, described in a sentence."""
        return f"{self.segment}: erased text has come back"


class Read(NamedTuple):
    """How far a projection has read a segment (`now`), and where it started (`before`), if known."""

    segment: Segment
    now: Fingerprint
    before: Fingerprint | None = None


class Watermarks:
    """The watermarks of a store. `raise_watermarks` and `erasing` require the projector lock."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._log = store / LOG
        self._file = WatermarkFile(store)

    @cached_property
    def _writer(self) -> Writer:
        """The writer of this copy, read on first use, since most catch-ups find no loss."""
        return Writer(self._store)

    @property
    def is_void(self) -> bool:
        """Whether the store has no watermarks of its own, as after copying it."""
        self._file.refresh()
        return self._file.is_void

    def raise_watermarks(self, reads: list[Read]) -> list[OpenLoss]:
        """Raise the watermarks to `reads`; return the losses found, whose watermarks stay unchanged.

        Raises OSError.
        """
        self._file.refresh()
        if not all(read.segment.is_newest for read in reads):
            is_protected = self._make_predicate_of_sealed()
            reads = [read for read in reads if not is_protected(read.segment.stream_and_filename)]
        raised, lost = [], []
        for read in reads:
            old = self._file.find_watermark(*read.segment.stream_and_filename)
            new = _raise_watermark(self._file, read, old)
            if isinstance(new, OpenLoss):
                lost.append(new)
            elif new is not None and new != old:
                raised.append(new)
        self._file.append_watermarks(raised, self._drop_obsolete_marks)
        return lost

    def find_losses(self, *, stream: str | None = None) -> list[OpenLoss]:
        """Return the losses, in one stream or in all, that were not accepted and that no seal shows.

        Raises OSError.
        """
        return [each for each in self.find_differences(stream=stream) if isinstance(each, OpenLoss)]

    def find_differences(self, *, stream: str | None = None) -> list[OpenLoss | ReturnedText]:
        """Return the losses, and the segments in which erased text has come back. Raises OSError."""
        self._file.refresh()
        marks = self._file.list_watermarks(stream)
        shown_by_seals = {loss.name for loss in find_losses(self._log, only=[mark.name for mark in marks])}
        differences = (_find_difference(self._log, mark) for mark in marks if mark.name not in shown_by_seals)
        found = {difference.name: difference for difference in differences if difference is not None}
        lost = [
            loss for loss in self._find_write_losses(stream) if not isinstance(found.get(loss.name), OpenLoss)
        ]
        return [*found.values(), *lost]

    def _find_write_losses(self, stream: str | None) -> Iterator[WriteLoss]:
        """Yield segments shorter than this copy left them, unless a seal shows or accepts the loss."""
        for each in self._writer.recorded_segments().values():
            if stream not in (None, each.stream):
                continue
            size = size_of_segment(self._log, *each.name)
            if (size or 0) >= each.bytes:
                continue
            seals = read_seals(self._log).last.get(each.name, ())
            if not any(seal.bytes >= each.bytes or seal.lost is not None for seal in seals):
                yield WriteLoss(*each.name, each.bytes, size)

    def accept_losses(self, *, lock_timeout: float) -> list[OpenLoss]:
        """Reset the watermarks of damaged segments to their current bytes; return the accepted losses.

        Acquires the projector lock. If it raises Busy or OSError, nothing was accepted.
        """
        if not self.find_losses():
            return []
        with holding_lock(self._store / PROJECTOR_LOCK, "the read model", lock_timeout):
            lost = self.find_losses()
            marks = {mark.name: mark for mark in self._file.list_watermarks()}
            for loss in lost:
                marks.pop(loss.name, None)
                if loss.bytes is not None:
                    with opening_segment_file(self._log, loss.stream, loss.segment) as fd:
                        marks[loss.name] = _measure_watermark(
                            loss.name, fd, disk.status_of_descriptor(fd).st_size
                        )
            self._file.replace_all_watermarks(marks.values())
            sizes = {loss.name: loss.bytes or 0 for loss in lost}
            if sizes.keys() & self._writer.recorded_segments().keys():
                # Another copy may still have the lost bytes, so later events must go to other segments.
                self._writer.retire_name(self._writer.find_or_create_name())
            self._writer.set_recorded_sizes(sizes)
        return lost

    @contextmanager
    def keeping_watermarks_while_erasing(self, segment: Segment, fd: int) -> Iterator[None]:
        """Let the caller erase lines of the open segment, leaving no hash of the erased text behind.

        A loss from before the erasure still counts. If it raises OSError, nothing was erased.
        """
        self._file.refresh()
        old = self._file.find_watermark(*segment.stream_and_filename)
        if old is None:
            yield
            return
        held = old.matches_open_segment(fd) or _find_returned_lines(segment, fd, old) is not None
        self._file.blank_hashes_of_segment(old, is_lost=not held)
        yield
        if held:
            self._file.append_watermarks(
                [_measure_watermark(old.name, fd, old.bytes)], self._drop_obsolete_marks
            )

    def _drop_obsolete_marks(self, marks: Iterable[Watermark]) -> list[Watermark]:
        """Drop the marks of sealed segments, except those damaged before they were sealed."""
        is_protected = self._make_predicate_of_sealed()
        return [
            mark
            for mark in marks
            if not is_protected(mark.name) or _find_difference(self._log, mark) is not None
        ]

    def _make_predicate_of_sealed(self) -> Callable[[Name], bool]:
        """Return a predicate that tells whether a seal would show a segment's losses.

        Seals of other writers' segments would not: a segment that is too short may still be arriving.
        """
        sealed, owner = read_sealed_lengths(self._log), Ownership(self._log)
        return lambda name: name in sealed and not owner.is_foreign(name[1])


def _raise_watermark(file: WatermarkFile, read: Read, old: Watermark | None) -> Watermark | OpenLoss | None:
    """Return the watermark that replaces `old`, or the loss found; None if `old` stays.

    The new hashes cover neither lines erased by another copy nor erased text that came back.
    """
    segment, now = read.segment, read.now
    if old is not None and now.offset == old.bytes and old.matches_fingerprint(now):
        return None
    try:
        with opening_segment_file(segment.log, *segment.stream_and_filename) as fd:
            if old is None:
                return _make_watermark(
                    segment.stream_and_filename, now, merge_into_spans(find_erased_lines(fd, 0, now.offset))
                )
            if old.is_being_erased and now.offset >= old.bytes:
                return _measure_watermark(old.name, fd, now.offset)
            held = _fingerprint_unchanged_prefix(fd, old, read.before)
            if held is not None:
                if now.offset <= old.bytes:
                    return None
                new = held.extend_to_offset(fd, now.offset)
                erased = merge_into_spans(find_erased_lines(fd, old.bytes, now.offset))
                return _make_watermark(old.name, new, (*old.blank, *erased))
            returned = _find_returned_lines(segment, fd, old)
            if returned is None:
                return OpenLoss(*old.name, old.bytes, disk.status_of_descriptor(fd).st_size)
            mark = _measure_watermark(old.name, fd, max(old.bytes, now.offset), returned)
            if mark != old:
                file.blank_hashes_of_segment(old, is_lost=False)
            return mark
    except FileNotFoundError:
        return None if old is None else OpenLoss(*old.name, old.bytes, None)


def _fingerprint_unchanged_prefix(fd: int, old: Watermark, before: Fingerprint | None) -> Fingerprint | None:
    """Return the fingerprint of `old` if the open segment still starts with the same bytes; otherwise None.

    before: where the caller's read started. Complete blocks before it are not hashed again; changes there are
      found later, when all bytes are checked.
    """
    if before is not None and before.offset == old.bytes and old.matches_fingerprint(before):
        return before if before.matches_rest(fd) else None
    if disk.status_of_descriptor(fd).st_size < old.bytes:
        return None
    now = take_fingerprint(fd, old.bytes)
    return now if old.matches_fingerprint(now) else None


def _find_difference(log: Path, mark: Watermark) -> OpenLoss | ReturnedText | None:
    size = size_of_segment(log, mark.stream, mark.segment)
    try:
        if size is not None and size >= mark.bytes:
            with opening_segment_file(log, mark.stream, mark.segment) as fd:
                if mark.matches_open_segment(fd):
                    return None
                returned = _find_returned_lines(make_segment_of_file(log, *mark.name), fd, mark)
                if returned is not None:
                    return ReturnedText(*mark.name) if returned else None
    except FileNotFoundError:
        size = None
    return OpenLoss(*mark.name, mark.bytes, size)


def _find_returned_lines(segment: Segment, fd: int, old: Watermark) -> list[Line] | None:
    """Return the lines erased in `old` whose text is back; None if anything else differs.

    Erasures by another copy are recognised if more lines are blank now, the stream has redactions, and no
    other line is damaged. One redaction erases every line with its target's id.
    """
    if old.is_of_lost_bytes or disk.status_of_descriptor(fd).st_size < old.bytes:
        return None
    redacted = read_redacted_keys(list_segments(segment.log, [segment.stream])[0])
    erasures = find_erasures(segment, fd, old.bytes, redacted)
    returned, _ = split_lines_by_spans(erasures.unfinished_lines, old.blank)
    if returned and old.matches_fingerprint(take_fingerprint(fd, old.bytes, returned)):
        return returned
    _, erased_elsewhere = split_lines_by_spans([*erasures.blank, *erasures.begun], old.blank)
    return returned if erasures.is_whole and erased_elsewhere and redacted else None


def _measure_watermark(name: Name, fd: int, size: int, returned: Sequence[Line] = ()) -> Watermark:
    """Return a watermark for the first `size` bytes of an open segment, treating `returned` as erased."""
    erased = merge_into_spans([*find_erased_lines(fd, 0, size), *returned])
    return _make_watermark(name, take_fingerprint(fd, size, returned), erased)


def _make_watermark(name: Name, read: Fingerprint, blank: tuple[Span, ...]) -> Watermark:
    return Watermark(*name, read.offset, read.chain.hex(), read.rest.hex(), blank)
