"""How far the read model has come in each segment, and whether what it read still stands there."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from memlog.eventlog import disk
from memlog.eventlog.segment import UNREAD, Fingerprint, fingerprint
from memlog.eventlog.streams import Segment
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection


class FileHints(Struct, frozen=True):
    """Size, inode, mtime and ctime of a file: equal to what they were, nothing has changed. A program can set
    the mtime.
    """

    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileHints":
        """Those of a file."""
        return cls(status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)

    def up_to(self, end: int | None) -> "FileHints":
        """Those of a file of which nothing behind `end` was looked at: the rest is seen as growth."""
        return self if end is None or end >= self.size else replace(self, size=end)


class Checkpoint(Struct, frozen=True):
    """How far the read model has come in one segment.

    lines: that end with a newline before the fingerprint's offset.
    is_open: bytes behind the last newline were a line because the segment gets no more.
    """

    fingerprint: Fingerprint = UNREAD
    lines: int = 0
    is_open: bool = False
    hints: FileHints = FileHints(0, 0, 0, 0)

    @property
    def offset(self) -> int:
        """What stands before it was projected."""
        return self.fingerprint.offset

    def has_nothing_new(self, segment: Segment, hints: FileHints) -> bool:
        """Whether a look at the file's status is enough to leave it alone."""
        has_final_tail = not segment.is_newest and self.offset < hints.size
        return hints == self.hints and not has_final_tail and not self._is_reopened(segment)

    def _ends_a_line(self, fd: int) -> bool:
        """Whether what stands behind the offset begins a line, or ends the last one that was read."""
        return self.offset == 0 or b"\n" in disk.read(fd, 2, self.offset - 1)

    def _is_reopened(self, segment: Segment) -> bool:
        """Whether a tail that was a line is pending again: its seal has gone."""
        return self.is_open and segment.is_newest

    def still_holds(self, segment: Segment, fd: int, hints: FileHints) -> bool:
        """Whether what was read still stands before the offset of the open file.

        Where size, inode or times changed otherwise than by growth, the whole prefix is hashed; the same
        bytes under another inode are no change. What growth hides, `memlog verify` finds.
        """
        if hints.size < self.offset or self._is_reopened(segment):
            return False
        if hints == self.hints:
            return True
        if hints.size > self.offset and not self._ends_a_line(fd):
            return False
        if hints.inode == self.hints.inode and hints.size > self.hints.size:
            return self.fingerprint.matches_tail(fd)
        return self.fingerprint.matches(fd)


NOTHING_READ = Checkpoint()
"""Of a segment that the read model does not know."""

_COLUMNS = "offset, lines, is_open, tail, chain, rest, size, inode, mtime_ns, ctime_ns"


def load_all(db: Connection, streams: Collection[str] | None = None) -> dict[tuple[str, str], Checkpoint]:
    """The checkpoints of `streams`, or of all, by (stream, segment)."""
    where, values = "", []
    if streams is not None:
        where, values = "WHERE stream IN (SELECT value FROM json_each(?))", [as_list(streams)]
    rows = db.execute(f"SELECT stream, segment, {_COLUMNS} FROM checkpoints {where}", values)
    return {(stream, segment): _from_row(*columns) for stream, segment, *columns in rows}


def load(db: Connection, segment: Segment) -> Checkpoint:
    """The checkpoint of one segment."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM checkpoints WHERE stream = ? AND segment = ?",
        (segment.stream, segment.name.filename),
    ).fetchone()
    return _from_row(*row) if row else NOTHING_READ


def save(db: Connection, segment: Segment, checkpoint: Checkpoint) -> None:
    """Write it in the transaction that writes the rows."""
    mark, hints = checkpoint.fingerprint, checkpoint.hints
    db.execute(
        f"INSERT OR REPLACE INTO checkpoints (stream, segment, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (segment.stream, segment.name.filename, mark.offset, checkpoint.lines, checkpoint.is_open)
        + (mark.tail, mark.chain, mark.rest, hints.size, hints.inode, hints.mtime_ns, hints.ctime_ns),
    )


@contextmanager
def following(db: Connection, segment: Segment, fd: int) -> Iterator[None]:
    """Meanwhile bytes of the open segment are overwritten that no row is made of: its checkpoint follows.

    One that did not hold before does not hold afterwards. Within the caller's transaction.
    """
    before = load(db, segment)
    held = before.still_holds(segment, fd, FileHints.of(disk.status(fd))) and before.fingerprint.matches(fd)
    yield
    if before != NOTHING_READ and held:
        hints = replace(FileHints.of(disk.status(fd)), size=before.hints.size)
        save(db, segment, replace(before, fingerprint=fingerprint(fd, before.offset), hints=hints))


def _from_row(
    offset: int,
    lines: int,
    is_open: int,
    tail: bytes,
    chain: bytes,
    rest: bytes,
    size: int,
    inode: int,
    mtime_ns: int,
    ctime_ns: int,
) -> Checkpoint:
    mark = Fingerprint(offset, tail, chain, rest)
    return Checkpoint(mark, lines, bool(is_open), FileHints(size, inode, mtime_ns, ctime_ns))
