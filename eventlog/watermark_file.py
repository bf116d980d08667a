"""The file of watermarks: size and hash of what projections have read of each segment.

The last line about a segment counts. Nothing is synced: losing the file costs an alarm and no data. It is
valid for this copy of the store alone (`copy_files`), since a copy made while others write may have segments
older than their watermarks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from memlog.eventlog import copy_files, disk
from memlog.eventlog.copy_files import lines_in
from memlog.eventlog.encoding import decoded
from memlog.eventlog.erasures import Span
from memlog.eventlog.file_io import closing, file_version, overwrite_all, status_at
from memlog.eventlog.layout import WATERMARKS, SegmentRecord
from memlog.eventlog.segment import Fingerprint, fingerprint

Name = tuple[str, str]
"""Stream and file name of a segment."""

_Place = tuple[int, int]
"""The offset and length of a line."""

_SPARE = 12 * 1024
"""Bytes, some 50 lines: a file with less superseded text is not worth rewriting."""
_UNLIKE = "unlike"


class Watermark(SegmentRecord, frozen=True):
    """The first `bytes` bytes of a segment, as a projection read them.

    chain, rest: of their `Fingerprint`, in hex. Both are blank during an erasure: then the length alone
        counts. After a loss before an erasure, `rest` is `unlike`, which no bytes match.
    blank: the erased lines; the hashes take them as blank, even if their text comes back.
    """

    bytes: int
    chain: str
    rest: str
    blank: tuple[Span, ...] = ()

    def is_of(self, read: Fingerprint) -> bool:
        """Whether a prefix of this length has the same bytes."""
        return (self.chain, self.rest) == (read.chain.hex(), read.rest.hex())

    @property
    def is_being_erased(self) -> bool:
        """Whether its hashes are blank: a scrub is unfinished."""
        return not self.rest.strip()

    @property
    def is_of_lost_bytes(self) -> bool:
        """Whether bytes were lost before an erasure blanked the hashes."""
        return self.rest.startswith(_UNLIKE)

    def still_holds(self, fd: int) -> bool:
        """Whether the open segment still begins with these bytes."""
        if disk.status(fd).st_size < self.bytes:
            return False
        return self.is_being_erased or self.is_of(fingerprint(fd, self.bytes))


class WatermarkFile:
    """The watermarks of a store, by stream and segment.

    The file is read once, and again only after another process has changed it: a catch-up or a scrub looks up
    thousands of segments.
    """

    def __init__(self, store: Path) -> None:
        self._path = store / WATERMARKS
        self._version: tuple[int, ...] | None = None
        self._load(b"")

    def refresh(self) -> None:
        """Read the file if another process has changed it since. Raises OSError."""
        version = file_version(status_at(self._path))
        if version != self._version:
            self._load(lines_in(self._path))
            self._version = version

    @property
    def is_void(self) -> bool:
        """Whether the file has no header of its own: it is missing, or of another copy of the store."""
        return not self._data

    def get(self, stream: str, segment: str) -> Watermark | None:
        """The watermark of a segment."""
        return self._last(self._places_of(stream, segment))

    def all(self, stream: str | None = None) -> list[Watermark]:
        """The watermarks of one stream, or of all."""
        streams = self._places.values() if stream is None else [self._places.get(_key(stream), {})]
        marks = (self._last(places) for segments in streams for places in segments.values())
        return [mark for mark in marks if mark is not None]

    def add(
        self, marks: list[Watermark], still_needed: Callable[[Iterable[Watermark]], Iterable[Watermark]]
    ) -> None:
        """Append `marks`. Once superseded lines take more than half of the file, it is rewritten with the
        watermarks that are `still_needed`. Raises OSError.
        """
        if not marks:
            return
        if self.is_void:
            self.replace(marks)
            return
        self._extend(copy_files.append(self._path, marks, is_torn=not self._data.endswith(b"\n")))
        self._version = file_version(status_at(self._path))
        if len(self._data) > 2 * self._live_bytes + _SPARE:
            self.replace(still_needed(self.all()))

    def replace(self, marks: Iterable[Watermark]) -> None:
        """Replace the file by one with `marks` alone. Raises OSError."""
        self._load(copy_files.replace(self._path, marks))
        self._version = file_version(status_at(self._path))

    def blank(self, mark: Watermark, *, is_lost: bool) -> None:
        """Overwrite every hash of a segment and all torn lines in place; sync. Raises OSError."""
        with closing(disk.open(self._path, disk.WRITE)) as fd:
            for offset, length in [*self._unnamed, *self._places_of(*mark.name)]:
                blank = _blanked(bytes(self._data[offset : offset + length]), is_lost=is_lost)
                overwrite_all(fd, blank, offset)
                self._data[offset : offset + length] = blank
            disk.sync_data(fd)
            self._version = file_version(disk.status(fd))

    def _places_of(self, stream: str, segment: str) -> list[_Place]:
        return self._places.get(_key(stream), {}).get(msgspec.json.encode(segment), [])

    def _last(self, places: list[_Place]) -> Watermark | None:
        """The last watermark that is not torn."""
        marks = (
            decoded(self._data[offset : offset + length], Watermark) for offset, length in reversed(places)
        )
        return next((mark for mark in marks if mark is not None), None)

    def _load(self, data: bytes) -> None:
        self._data = bytearray()
        self._places: defaultdict[bytes, dict[bytes, list[_Place]]] = defaultdict(dict)
        self._unnamed: list[_Place] = []
        self._live_bytes = 0
        header, newline, lines = data.partition(b"\n")
        self._data += header + newline
        self._extend(lines)

    def _extend(self, data: bytes) -> None:
        """Index `data`, which follows the indexed bytes, without decoding its lines."""
        offset = len(self._data)
        self._data += data
        for line in data.split(b"\n"):
            # A quote within a name is escaped, so neither separator is part of one.
            names, has_bytes, _ = line.partition(b',"bytes":')
            stream, has_segment, segment = names.partition(b',"segment":')
            if has_bytes and has_segment:
                places = self._places[stream].setdefault(segment, [])
                self._live_bytes += len(line) - (places[-1][1] if places else 0)
                places.append((offset, len(line)))
            elif line:
                self._unnamed.append((offset, len(line)))
            offset += len(line) + 1


def _key(stream: str) -> bytes:
    """The beginning of a line about a stream."""
    return msgspec.json.encode({"stream": stream})[:-1]


def _blanked(line: bytes, *, is_lost: bool) -> bytes:
    """A line without the hashes of what was erased; its length stays. A torn one becomes blank."""
    if decoded(line, Watermark) is None:
        return b" " * len(line)
    for name in (b"chain", b"rest"):
        start = line.index(b'"' + name + b'":"') + len(name) + 4
        end = line.index(b'"', start)
        value = _UNLIKE.encode() if is_lost and name == b"rest" else b""
        line = line[:start] + value.ljust(end - start) + line[end:]
    return line
