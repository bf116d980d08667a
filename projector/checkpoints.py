"""Checkpoints: how far each segment was read, and whether those bytes are unchanged."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from memlog.eventlog.files import disk
from memlog.eventlog.log.reader import UNREAD, Fingerprint, Line, open_segment, read_lines, take_fingerprint
from memlog.eventlog.log.streams import Segment
from memlog.projector.sqlite import Connection, to_json_list


class FileHints(Struct, frozen=True):
    """A file's size, inode, mtime and ctime; while all four stay the same, the file has not changed."""

    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of_status(cls, status: os.stat_result) -> "FileHints":
        """Return the hints for a file with this status."""
        return cls(status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)

    def limit_to_read_bytes(self, end: int | None) -> "FileHints":
        """Return the hints for a file that was read up to `end`; the rest counts as growth."""
        return self if end is None or end >= self.size else replace(self, size=end)


class Checkpoint(Struct, frozen=True):
    """How far the read model has read a segment.

    lines: the number of newlines before the fingerprint's offset.
    is_open: whether the bytes after the last newline counted as a line, because the segment no longer grows.
    """

    fingerprint: Fingerprint = UNREAD
    lines: int = 0
    is_open: bool = False
    hints: FileHints = FileHints(0, 0, 0, 0)

    @property
    def offset(self) -> int:
        """The number of bytes projected."""
        return self.fingerprint.offset

    def segment_has_nothing_new(self, segment: Segment, hints: FileHints) -> bool:
        """Whether the file's status alone shows that there is nothing new."""
        has_final_tail = not segment.is_newest and self.offset < hints.size
        return hints == self.hints and not has_final_tail and not self._is_reopened(segment)

    def _is_reopened(self, segment: Segment) -> bool:
        """Whether a tail that counted as a line is incomplete again, because the segment's seal is gone."""
        return self.is_open and segment.is_newest

    def matches_open_segment(self, segment: Segment, fd: int, hints: FileHints) -> bool:
        """Whether the open file's bytes before the offset are still the bytes that were read.

        Hashes all of them unless the file has only grown; the same bytes under another inode count as
        unchanged. Growth can hide earlier changes, which `Maintenance.verify` finds.
        """
        if hints.size < self.offset or self._is_reopened(segment):
            return False
        if hints == self.hints:
            return True
        # A newline before the offset, or after an open line.
        ends_a_line = self.offset == 0 or b"\n" in disk.read(fd, 2, self.offset - 1)
        if hints.size > self.offset and not ends_a_line:
            return False
        if hints.inode == self.hints.inode and hints.size > self.hints.size:
            return self.fingerprint.matches_tail(fd)
        return self.fingerprint.matches_all_bytes(fd)


NOTHING_READ = Checkpoint()
"""The checkpoint of a segment that was never read."""

_COLUMNS = "lines, is_open, offset, tail, chain, rest, size, inode, mtime_ns, ctime_ns"


def load_checkpoints(
    db: Connection, streams: Collection[str] | None = None
) -> dict[tuple[str, str], Checkpoint]:
    """Return the checkpoints of `streams`, or of all streams if None, keyed by (stream, segment)."""
    where = "" if streams is None else "WHERE stream IN (SELECT value FROM json_each(?))"
    values = () if streams is None else (to_json_list(streams),)
    rows = db.execute(f"SELECT stream, segment, {_COLUMNS} FROM checkpoints {where}", values)
    return {(stream, segment): _checkpoint_from_row(columns) for stream, segment, *columns in rows}


def load_checkpoint(db: Connection, segment: Segment) -> Checkpoint:
    """Return the checkpoint of a segment; NOTHING_READ if there is none."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM checkpoints WHERE stream = ? AND segment = ?",
        segment.stream_and_filename,
    ).fetchone()
    return _checkpoint_from_row(row) if row else NOTHING_READ


def save_checkpoint(db: Connection, segment: Segment, checkpoint: Checkpoint) -> None:
    """Save a checkpoint, in the same transaction as the rows."""
    db.execute(
        f"INSERT OR REPLACE INTO checkpoints (stream, segment, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*segment.stream_and_filename, checkpoint.lines, checkpoint.is_open)
        + (*astuple(checkpoint.fingerprint), *astuple(checkpoint.hints)),
    )


@contextmanager
def preserving_checkpoint(db: Connection, segment: Segment, fd: int) -> Iterator[None]:
    """Keep a valid checkpoint valid while the caller overwrites bytes that no row depends on.

    Must be used within the caller's transaction.
    """
    before = load_checkpoint(db, segment)
    held = before.matches_open_segment(
        segment, fd, FileHints.of_status(disk.status_of_descriptor(fd))
    ) and before.fingerprint.matches_all_bytes(fd)
    yield
    if before != NOTHING_READ and held:
        hints = replace(FileHints.of_status(disk.status_of_descriptor(fd)), size=before.hints.size)
        save_checkpoint(
            db, segment, replace(before, fingerprint=take_fingerprint(fd, before.offset), hints=hints)
        )


def _checkpoint_from_row(row: Sequence[Any]) -> Checkpoint:
    lines, is_open, offset, tail, chain, rest, *hints = row
    return Checkpoint(Fingerprint(offset, tail, chain, rest), lines, bool(is_open), FileHints(*hints))


class ReadRange(NamedTuple):
    """The range of a segment that should be read.

    end: the byte to stop at; None for the end of the file.
    tail_is_a_line: whether the bytes after the last newline are a complete line.
    """

    segment: Segment
    end: int | None
    tail_is_a_line: bool

    def end_after(self, offset: int) -> int | None:
        """Return the end of a read from `offset`; never before it, since another projector may be ahead."""
        return None if self.end is None else max(self.end, offset)

    def read_unread_lines(self, fd: int, checkpoint: Checkpoint) -> Iterator[Line]:
        """Yield the open segment's lines after a checkpoint."""
        offset, number = checkpoint.offset, checkpoint.lines + 1
        end, tail_is_a_line = self.end_after(offset), self.tail_is_a_line
        return read_lines(fd, offset, end=end, number=number, tail_is_a_line=tail_is_a_line)


class Tally(msgspec.Struct):
    """Counts of lines by outcome, and of the bytes read."""

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    quarantined: int = 0
    nul_runs: int = 0
    bytes: int = 0

    def add_counts(self, other: "Tally") -> None:
        """Add the counts of `other`."""
        for count in Tally.__struct_fields__:
            setattr(self, count, getattr(self, count) + getattr(other, count))


def find_range_to_read(segment: Segment, size: int) -> ReadRange:
    """Return the range to read in a segment of `size` bytes; older segments include their tail."""
    return ReadRange(segment, size, False) if segment.is_newest else ReadRange(segment, None, True)


class HistoryChanged(Exception):
    """A stream's rows would differ from those of a replay, so the stream must be replayed."""


@contextmanager
def opening_segment(segment: Segment) -> Iterator[int]:
    """Open a segment for reading and yield its descriptor. Raises HistoryChanged if it is missing."""
    try:
        with open_segment(segment) as fd:
            yield fd
    except FileNotFoundError as error:
        raise HistoryChanged(f"{segment.name.filename} is gone") from error
