"""How far the read model has come in each segment, and whether the bytes that it read are unchanged."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from memlog.eventlog.files import disk
from memlog.eventlog.log.reader import UNREAD, Fingerprint, Line, fingerprint, open_segment, read_lines
from memlog.eventlog.log.streams import Segment
from memlog.projector.sqlite import Connection, as_list


class FileHints(Struct, frozen=True):
    """Size, inode, mtime and ctime of a file: while they are equal, nothing has changed.

    A program can set the mtime.
    """

    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileHints":
        """Return the hints of a file with this status."""
        return cls(status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)

    def up_to(self, end: int | None) -> "FileHints":
        """Return the hints of a file that was read up to `end`: the rest is growth."""
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
        """The bytes before it were projected."""
        return self.fingerprint.offset

    def has_nothing_new(self, segment: Segment, hints: FileHints) -> bool:
        """Whether a look at the file's status is enough to leave it alone."""
        has_final_tail = not segment.is_newest and self.offset < hints.size
        return hints == self.hints and not has_final_tail and not self._is_reopened(segment)

    def _ends_a_line(self, fd: int) -> bool:
        """Whether the bytes behind the offset begin a line, or end the last one that was read."""
        return self.offset == 0 or b"\n" in disk.read(fd, 2, self.offset - 1)

    def _is_reopened(self, segment: Segment) -> bool:
        """Whether a tail that was a line is pending again: its seal has gone."""
        return self.is_open and segment.is_newest

    def still_holds(self, segment: Segment, fd: int, hints: FileHints) -> bool:
        """Whether the bytes before the offset of the open file are those that were read.

        If size, inode or times changed otherwise than by growth, the whole prefix is hashed; the same bytes
        under another inode are no change. `Maintenance.verify` finds what growth hides.
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
"""The checkpoint of a segment that the read model does not know."""

_COLUMNS = "lines, is_open, offset, tail, chain, rest, size, inode, mtime_ns, ctime_ns"


def load_all(db: Connection, streams: Collection[str] | None = None) -> dict[tuple[str, str], Checkpoint]:
    """Return the checkpoints of `streams`, or of all, by (stream, segment)."""
    where = "" if streams is None else "WHERE stream IN (SELECT value FROM json_each(?))"
    values = () if streams is None else (as_list(streams),)
    rows = db.execute(f"SELECT stream, segment, {_COLUMNS} FROM checkpoints {where}", values)
    return {(stream, segment): _from_row(columns) for stream, segment, *columns in rows}


def load(db: Connection, segment: Segment) -> Checkpoint:
    """Return the checkpoint of one segment."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM checkpoints WHERE stream = ? AND segment = ?",
        segment.key,
    ).fetchone()
    return _from_row(row) if row else NOTHING_READ


def save(db: Connection, segment: Segment, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, in the transaction that writes the rows."""
    db.execute(
        f"INSERT OR REPLACE INTO checkpoints (stream, segment, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*segment.key, checkpoint.lines, checkpoint.is_open)
        + (*astuple(checkpoint.fingerprint), *astuple(checkpoint.hints)),
    )


@contextmanager
def following(db: Connection, segment: Segment, fd: int) -> Iterator[None]:
    """Let bytes of the open segment without a row be overwritten within the context.

    The checkpoint of the segment follows.
    A checkpoint that did not hold before does not hold afterwards. Within the caller's transaction.
    """
    before = load(db, segment)
    held = before.still_holds(segment, fd, FileHints.of(disk.status(fd))) and before.fingerprint.matches(fd)
    yield
    if before != NOTHING_READ and held:
        hints = replace(FileHints.of(disk.status(fd)), size=before.hints.size)
        save(db, segment, replace(before, fingerprint=fingerprint(fd, before.offset), hints=hints))


def _from_row(row: Sequence[Any]) -> Checkpoint:
    lines, is_open, offset, tail, chain, rest, *hints = row
    return Checkpoint(Fingerprint(offset, tail, chain, rest), lines, bool(is_open), FileHints(*hints))


class ReadRange(NamedTuple):
    """What is to be read of a segment.

    end: the byte to stop at; None for the end of the file.
    tail_is_a_line: whether bytes behind the last newline are a line, which a writer does not still write.
    """

    segment: Segment
    end: int | None
    tail_is_a_line: bool

    def end_behind(self, offset: int) -> int | None:
        """Return the end of a read that begins at `offset`.

        Another projector may have passed `end` since.
        """
        return None if self.end is None else max(self.end, offset)

    def unread(self, fd: int, checkpoint: Checkpoint) -> Iterator[Line]:
        """Return the lines behind a checkpoint, of the open segment."""
        offset, number = checkpoint.offset, checkpoint.lines + 1
        end, tail_is_a_line = self.end_behind(offset), self.tail_is_a_line
        return read_lines(fd, offset, end=end, number=number, tail_is_a_line=tail_is_a_line)


class Tally(msgspec.Struct):
    """What became of the lines that were read."""

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    quarantined: int = 0
    nul_runs: int = 0
    bytes: int = 0

    def add(self, other: "Tally") -> None:
        """Count what `other` counted."""
        for count in Tally.__struct_fields__:
            setattr(self, count, getattr(self, count) + getattr(other, count))


def as_it_stands(segment: Segment, size: int) -> ReadRange:
    """Return the range of bytes that a segment of `size` bytes holds now.

    No more of the newest: a reader that followed its writers would end after them. An older one is read to
    its end, since only there a tail without newline is a line.
    """
    return ReadRange(segment, size, False) if segment.is_newest else ReadRange(segment, None, True)


class HistoryChanged(Exception):
    """The projection of a stream differs from what a replay would give: it must be replayed."""


@contextmanager
def opened_segment(segment: Segment) -> Iterator[int]:
    """Yield a descriptor that reads a segment.

    Raises:
        HistoryChanged: it is gone.
    """
    try:
        with open_segment(segment) as fd:
            yield fd
    except FileNotFoundError as error:
        raise HistoryChanged(f"{segment.name.filename} is gone") from error
