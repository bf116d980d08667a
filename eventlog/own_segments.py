"""A writer's record of the segments that it has made: inode and size of each."""

from pathlib import Path

import msgspec

from memlog.eventlog import copy_files, disk
from memlog.eventlog.copy_files import Origin, decoded, lines_in

_BEGINNING = 512
"""Bytes; the first two lines have no 150."""
_SPARE_LINES = 1024
"""The file is rewritten when it has this many lines more than twice its streams."""


class _Changed(msgspec.Struct, frozen=True):
    changed_ns: int


class _Written(msgspec.Struct, frozen=True):
    stream: str
    segment: str
    inode: int
    generation: int | None
    bytes: int


class OwnSegments:
    """The record at `path`. Reads the lines that another process has added.

    Its second line has the change time of the file of the writer's name. The last line about a segment
    counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = self._size = self._lines = 0
        self._is_torn = False
        self._changed: _Changed | None = None
        self._of_segment: dict[tuple[str, str], _Written] = {}
        self._of_stream: dict[str, _Written] = {}

    def begin(self, changed_ns: int) -> None:
        """Start the file of a new writer."""
        self._replace(_Changed(changed_ns), [])

    def changed_ns(self) -> int | None:
        """The recorded change time; None if the file is missing or a copy. Raises OSError."""
        # Only the beginning: there may be many lines about segments.
        _, _, lines = lines_in(self._path, _BEGINNING).partition(b"\n")
        changed = decoded(lines.partition(b"\n")[0], _Changed)
        return None if changed is None else changed.changed_ns

    def is_known(self, stream: str, segment: str) -> bool:
        """Whether the writer has made a segment of this name. Raises OSError."""
        return self._last(stream, segment) is not None

    def is_intact(self, stream: str, segment: str, fd: int) -> bool:
        """Whether the open segment is the file that the writer made, and no shorter.

        Raises as `changed_ns`.
        """
        known = self._last(stream, segment)
        if known is None or Origin(known.inode, known.generation) != Origin.of(fd):
            return False
        return disk.status(fd).st_size >= known.bytes

    def add(self, stream: str, segment: str, fd: int) -> None:
        """Record the size of the open segment; the caller has locked the file. Raises OSError."""
        self._read_on()
        here = Origin.of(fd)
        written = _Written(stream, segment, here.inode, here.generation, disk.status(fd).st_size)
        if self._changed is not None and self._lines > 2 * len(self._of_stream) + _SPARE_LINES:
            self._replace(self._changed, list(self._of_stream.values()))
        added = copy_files.append(self._path, [written], is_torn=self._is_torn)
        if self._is_torn:
            self._read_on()
        else:
            self._size += len(added)
            self._learn(written)

    def _last(self, stream: str, segment: str) -> _Written | None:
        if (stream, segment) not in self._of_segment:
            self._read_on()
        return self._of_segment.get((stream, segment))

    def _read_on(self) -> None:
        try:
            status = disk.look(self._path)
        except FileNotFoundError:
            self._forget()
            return
        if (status.st_ino, status.st_size) == (self._inode, self._size):
            return
        data = lines_in(self._path)
        end = data.rfind(b"\n") + 1
        if status.st_ino != self._inode or end < self._size:
            self._forget()
        for line in data[self._size : end].split(b"\n"):
            if (written := decoded(line, _Written)) is not None:
                self._learn(written)
            elif self._changed is None:
                self._changed = decoded(line, _Changed)
        self._inode, self._size, self._is_torn = status.st_ino, end, end < len(data)

    def _replace(self, changed: _Changed, written: list[_Written]) -> None:
        self._forget()
        copy_files.replace(self._path, [changed, *written])
        self._read_on()

    def _learn(self, written: _Written) -> None:
        self._lines += 1
        self._of_segment[written.stream, written.segment] = written
        self._of_stream[written.stream] = written

    def _forget(self) -> None:
        self._inode = self._size = self._lines = 0
        self._is_torn, self._changed = False, None
        self._of_segment.clear()
        self._of_stream.clear()
