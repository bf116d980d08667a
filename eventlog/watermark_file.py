"""The file that remembers what projections have read of segments.

Of an entry's lines the last one holds. Nothing is synced: whoever loses the file loses an alarm and no data.
It speaks of this copy of the store alone (`copy_files`), since a copy that is made while others write may
have older segments than watermarks.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from memlog.eventlog import copy_files, disk
from memlog.eventlog.copy_files import decoded, line_of, lines_about, lines_in
from memlog.eventlog.erasures import Span
from memlog.eventlog.file_io import overwrite_all
from memlog.eventlog.layout import WATERMARKS
from memlog.eventlog.segment import Fingerprint, fingerprint

Name = tuple[str, str]
"""Stream and file name of a segment."""

_COMPACTION = 12 * 1024
"""Bytes, some 50 lines, between two looks whether the file has grown to twice its entries: a look decodes all
of it, some 5 ms for 10,000 lines."""
_UNLIKE = "unlike"


class Watermark(msgspec.Struct, frozen=True):
    """What the first `bytes` bytes of a segment were when a projection read them.

    chain, rest: of their `Fingerprint`, in hex. While lines are being erased, both are blank and the length
        alone counts; where bytes were lost before an erasure, `rest` is `unlike`, which no bytes match.
    blank: where their erased lines are; in the hashes these are blank, though their text may come back.
    """

    stream: str
    segment: str
    bytes: int
    chain: str
    rest: str
    blank: tuple[Span, ...] = ()

    @property
    def name(self) -> Name:
        """Of its segment."""
        return self.stream, self.segment

    def is_of(self, read: Fingerprint) -> bool:
        """Whether a prefix of this length holds the same bytes."""
        return (self.chain, self.rest) == (read.chain.hex(), read.rest.hex())

    @property
    def is_being_erased(self) -> bool:
        """Whether its hashes are blank: a scrub was begun and not finished."""
        return not self.rest.strip()

    @property
    def is_of_lost_bytes(self) -> bool:
        """Whether bytes were lost before an erasure, which blanked the hashes."""
        return self.rest.startswith(_UNLIKE)

    def still_holds(self, fd: int) -> bool:
        """Whether the open segment begins with these bytes."""
        if disk.status(fd).st_size < self.bytes:
            return False
        return self.is_being_erased or self.is_of(fingerprint(fd, self.bytes))


class WatermarkFile:
    """The watermarks of a store, as they were when this was made."""

    def __init__(self, store: Path) -> None:
        self._path = store / WATERMARKS
        self._data = lines_in(self._path)

    @property
    def is_void(self) -> bool:
        """Whether nothing is remembered, as in a copied store."""
        return not self._data

    def last(self, stream: str, segment: str) -> Watermark | None:
        """The watermark of one segment, searched from the end."""
        marks = (decoded(line, Watermark) for _, line in lines_about(self._data, stream, segment))
        return next((mark for mark in marks if mark is not None), None)

    def all(self, stream: str | None = None) -> dict[Name, Watermark]:
        """The watermark of each segment, of one stream or of all."""
        beginning = b"" if stream is None else msgspec.json.encode({"stream": stream})[:-1] + b","
        lines = (line for line in self._data.split(b"\n") if line.startswith(beginning))
        marks = (decoded(line, Watermark) for line in lines)
        return {mark.name: mark for mark in marks if mark is not None}

    def add(
        self, marks: list[Watermark], asked_for: Callable[[Iterable[Watermark]], Iterable[Watermark]]
    ) -> None:
        """Add `marks`, and leave out once in a while what is not `asked_for`.

        Raises:
            OSError: they cannot be written.
        """
        if not marks:
            return
        if self.is_void:
            self.replace(marks)
            return
        size_before = len(self._data)
        self._data += copy_files.append(self._path, marks, is_torn=not self._data.endswith(b"\n"))
        if len(self._data) // _COMPACTION != size_before // _COMPACTION:
            known = self.all().values()
            if len(self._data) > 2 * sum(len(line_of(mark)) for mark in known):
                self.replace(asked_for(known))

    def replace(self, marks: Iterable[Watermark]) -> None:
        """Put a file with `marks` alone in the place of this one; raises OSError."""
        self._data = copy_files.replace(self._path, marks)

    def blank(self, mark: Watermark, *, is_lost: bool) -> None:
        """Overwrite the hashes in every line about a segment, in place, and sync; raises OSError.

        A scrub comes here for each segment: to write the file anew each time would be quadratic.
        """
        fd = disk.open(self._path, disk.WRITE)
        try:
            for start, line in lines_about(self._data, *mark.name):
                overwrite_all(fd, _blanked(line, is_lost=is_lost), start)
            disk.sync_data(fd)
        finally:
            disk.close(fd)


def _blanked(line: bytes, *, is_lost: bool) -> bytes:
    """`line`, as long as it is, without the hashes of what was erased; nothing stays of a torn one."""
    if decoded(line, Watermark) is None:
        return b" " * len(line)
    blank = line
    for name in (b"chain", b"rest"):
        start = blank.index(b'"' + name + b'":"') + len(name) + 4
        end = blank.index(b'"', start)
        value = _UNLIKE.encode() if is_lost and name == b"rest" else b""
        blank = blank[:start] + value.ljust(end - start) + blank[end:]
    return blank
