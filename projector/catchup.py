"""Brings a read model up to date with the log: reads new lines, and replays streams that were rewritten."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog.codec import decode, upcast
from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.errors import Busy, DatabaseError
from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import read_blocks
from memlog.eventlog.integrity.seal_losses import LOST, Loss, find_losses
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.log.layout import WATERMARKS
from memlog.eventlog.log.reader import Fingerprint, open_segment
from memlog.eventlog.log.streams import Segment, SegmentName, escape_invalid_utf8, list_segments
from memlog.projector import checkpoints, limits, schema, subjects
from memlog.projector.checkpoints import (
    NOTHING_READ,
    Checkpoint,
    FileHints,
    HistoryChanged,
    ReadRange,
    Tally,
    find_range_to_read,
)
from memlog.projector.passages import chunking, vectors
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, transaction
from memlog.projector.subjects import imports
from memlog.projector.text import analyzer, stemming
from memlog.projector.text.language_files import TEXT_SHA256
from memlog.projector.text.tokens import VOCABULARY_SHA256

if TYPE_CHECKING:
    from memlog.eventlog.log.watermarks import OpenLoss, Watermarks


def compute_projection_id(sizes: ChunkSizes) -> str:
    """Return a hash, in 16 hex digits, of everything that determines the rows, except the log."""
    shapes = (
        *schema.list_statements(),
        f"line {decode.VERSION}, upcast {upcast.VERSION}, handlers {subjects.VERSION}",
        f"analyzer {analyzer.VERSION}, snowball {stemming.snowball_version()}",
        f"chunker {chunking.VERSION}, {sizes.window} tokens, {sizes.overlap} overlap",
        f"plain beyond {limits.LONGEST_STRUCTURED} characters, names beyond {limits.LONGEST_NAMES}",
        f"vocabulary {VOCABULARY_SHA256}, languages {TEXT_SHA256}",
        f"vectors {vectors.VERSION}",
    )
    return short_sha256("\n".join(shapes).encode()).hexdigest()[:16]


def store_projection_id(db: Connection, sizes: ChunkSizes) -> None:
    """Store the projection id in a new read model."""
    db.execute("INSERT INTO meta VALUES ('projection_id', ?)", (compute_projection_id(sizes),))


def read_stored_projection_id(db: Connection) -> str | None:
    """Return a read model's projection id, or None."""
    row = db.execute("SELECT value FROM meta WHERE name = 'projection_id'").fetchone()
    return row[0] if row else None


# Strategy: a rebuild is a catch-up on an empty file. Both make rows in one way, so they cannot differ; the
# digest of a read model and that of a replay must be equal, which `verify` checks.
#
# A segment whose size, inode and times equal those of its checkpoint is not opened. Of others, a catch-up
# reads up to the size at its start: one that followed its writers ended after them, and a query beside eight
# busy pipes took 28 s. Each batch is one turn: the lock, a transaction of rows and checkpoint, and the
# watermark. A turn loads the checkpoint again, so kills and other projectors between two turns do no harm.
#
# If bytes that were read have changed, a segment is gone, or a projected event is redacted, the stream is
# replayed in one turn; again if the log is rewritten meanwhile, up to three times. Unreadable streams and
# losses are notes: the rest is read.
#
# Documents come last, and a watch reads for a tenth of a second at a time in small batches: a catch-up that
# read a whole folder of new documents delayed new messages for seconds.
#
# Modules for new lines are imported where they are used: most reads find nothing new in the log.

Bounds = dict[tuple[str, str], int]
"""The number of bytes to read, keyed by (stream, segment)."""

Turn = Callable[[], AbstractContextManager[None]]
"""Returns a context manager for one write: lock and transaction, or nothing for an unpublished file."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, how much of it is done, and the total."""

_READING = "bytes read"
_ATTEMPTS = 3
_SMALL_SHARE = 16


class CatchUp(Tally):
    """The result of a catch-up.

    notes: messages about rewritten streams, losses, and files that are not segments.
    is_whole: whether everything was read.
    """

    notes: list[str] = msgspec.field(default_factory=list)
    is_whole: bool = True


def catch_up(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    turn: Turn = nullcontext,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
    seconds: float | None = None,
    remembers: bool = False,
    streams: Collection[str] | None = None,
) -> CatchUp:
    """Bring the read model in `db` up to the current end of `log` or to `bounds`, one batch per `turn`.

    seconds: stop after this time even if there is more to read; batches are then small.
    remembers: also raise the store's watermarks, in the same turn.
    streams: the streams that may have changed since a complete catch-up whose notes were reported; None for
      all.

    Raises Busy if a turn is not available in time, or the log keeps being rewritten; finished turns are kept.
    """
    refused: dict[str, OSError] = {}
    # Read before the segments: seals made after the listing are left to the next catch-up.
    sealed = read_sealed_lengths(log)
    segments, strangers = list_segments(log, streams, unread=refused, sealed=sealed)
    report = CatchUp(
        notes=[
            *_describe_unread_files(log, strangers),
            *starmap(_describe_unreadable_stream, refused.items()),
        ]
    )

    def is_read(stream: str) -> bool:
        return stream not in refused and stream.partition("/")[0] not in refused

    known = {
        name: point for name, point in checkpoints.load_checkpoints(db, streams).items() if is_read(name[0])
    }
    only = None
    if refused or streams is not None:
        only = [name for name in sealed if is_read(name[0]) and (streams is None or name[0] in streams)]
    report.notes += _describe_losses(find_losses(log, only=only, sealed=sealed))
    work = _find_unread_ranges(log, segments, known, bounds)
    watermarks = open_watermarks_of_log(log) if remembers and work else None
    begins_to_remember = watermarks is not None and watermarks.is_void
    end = None if seconds is None else time.monotonic() + seconds
    total = sum(bounds.values()) if bounds is not None else count_unread_bytes(db, log) if progress else 0
    reader = _Reader(db, log, sizes, turn, bounds, progress, total, watermarks, report, end)
    # Imports come first: they tell which events of the other streams count.
    for stream in sorted(work, key=lambda name: (name == "documents", name != imports.STREAM, name)):
        if stream != imports.STREAM:
            reader.replay_marked_streams()
        try:
            if not all(map(reader.read_range, work[stream])):
                report.is_whole = False
                return report
        except PermissionError as error:
            if not Path(error.filename or "").is_relative_to(log):
                raise
            report.notes.append(_describe_unreadable_stream(stream, error))
            refused[stream] = error
        except HistoryChanged as change:
            report.notes.append(f"{stream}: {change}; the stream was replayed")
            reader.replay_stream_in_turn(stream)
    reader.replay_marked_streams()
    if watermarks is not None and begins_to_remember:
        # For example in a copied store, whose read model covers segments that have no new lines.
        readable = [each for each in list_segments(log, unread=refused)[0] if is_read(each.stream)]
        report.notes += raise_watermarks(db, watermarks, readable)
    return report


def open_watermarks_of_log(log: Path) -> "Watermarks":
    """Return the watermarks of the store that a log belongs to."""
    from memlog.eventlog.log.watermarks import Watermarks

    return Watermarks(log.parent)


def raise_watermarks(
    db: Connection, watermarks: "Watermarks", segments: list[Segment], before: Fingerprint | None = None
) -> list[str]:
    """Raise the watermarks to the point up to which `segments` were read; return notes about losses.

    Call this in the turn in which they were read. If writing fails, a later loss may go unnoticed, but no
    rows are lost.

    before: how far the segment had been read, if `segments` has just one.
    """
    from memlog.eventlog.log.watermarks import Read

    read = [(segment, checkpoints.load_checkpoint(db, segment)) for segment in segments]
    known = [Read(segment, now.fingerprint, before) for segment, now in read if now != NOTHING_READ]
    try:
        lost = watermarks.raise_watermarks(known)
    except OSError as error:
        why = error.strerror or error
        return [f"{WATERMARKS}: {why}: a loss of these bytes would go unnoticed"]
    return _describe_losses(lost)


def _describe_losses(lost: "Sequence[Loss | OpenLoss]") -> list[str]:
    return [f"{loss.stream}/{loss.description}{LOST}" for loss in lost]


def _describe_unread_files(log: Path, strangers: list[Path]) -> list[str]:
    if not strangers:
        return []
    # Imported here: most logs have no other files.
    from memlog.eventlog.log.tail import why_not_read

    return [f"{why_not_read(log, path)}; store.maintenance.examine() says what to do" for path in strangers]


def _describe_unreadable_stream(stream: str, error: OSError) -> str:
    place = escape_invalid_utf8(str(error.filename or stream))
    return f"{place}: {error.strerror}: skipped; chown it to the store's owner"


def count_unread_bytes(db: Connection, log: Path) -> int:
    """Return the number of log bytes that the read model has not read yet."""
    known = checkpoints.load_checkpoints(db)
    return sum(
        max(0, segment.read_status().st_size - known.get(segment.stream_and_filename, NOTHING_READ).offset)
        for segment in list_segments(log)[0]
    )


def count_unread_lines(db: Connection, log: Path) -> int:
    """Return the number of complete log lines that the read model has not read yet."""
    known = checkpoints.load_checkpoints(db)
    count = 0
    for segment in list_segments(log)[0]:
        with open_segment(segment) as fd:
            offset = known.get(segment.stream_and_filename, NOTHING_READ).offset
            count += sum(block.count(b"\n") for block in read_blocks(fd, offset))
    return count


def find_rewritten_streams(db: Connection, log: Path) -> list[str]:
    """Return the streams to replay because a segment is gone or bytes already read have changed."""
    known = checkpoints.load_checkpoints(db)
    found = set()
    for segment in list_segments(log)[0]:
        checkpoint = known.pop(segment.stream_and_filename, NOTHING_READ)
        try:
            with open_segment(segment) as fd:
                holds = checkpoint.matches_open_segment(
                    segment, fd, FileHints.of_status(disk.status_of_descriptor(fd))
                )
        except FileNotFoundError:
            holds = False
        if not holds:
            found.add(segment.stream)
    return sorted(found | {stream for stream, _ in known})


class _Reader(msgspec.Struct):
    """A catch-up in progress. total: the number of bytes that were unread at the start."""

    db: Connection
    log: Path
    sizes: ChunkSizes
    turn: Turn
    bounds: Bounds | None
    progress: Progress | None
    total: int
    watermarks: "Watermarks | None"
    report: CatchUp
    end: float | None

    def read_range(self, stretch: ReadRange) -> bool:
        """Read a range; return False if time ran out first."""
        from memlog.projector.fold import fold_segment

        share = 1 if self.end is None else _SMALL_SHARE
        # After an error, this closes the segment immediately, not at garbage collection.
        with closing(fold_segment(self.db, stretch, self.sizes, share=share)) as batches:
            while self.end is None or time.monotonic() < self.end:
                with self.turn():
                    before = checkpoints.load_checkpoint(self.db, stretch.segment).fingerprint
                    tally = next(batches, None)
                    is_done = checkpoints.load_checkpoint(self.db, stretch.segment).offset == stretch.end
                    if self.watermarks and tally and tally.bytes:
                        notes = raise_watermarks(self.db, self.watermarks, [stretch.segment], before)
                        self.report.notes += notes
                if tally is None:
                    return True
                self._add_counts_to_report(tally)
                if is_done:
                    return True
        # Invariant: only a deadline leaves lines unread.
        assert self.end is not None
        return False

    def replay_marked_streams(self) -> None:
        """Replay each stream in which events have become hidden or visible."""
        for stream in imports.list_streams_to_replay(self.db):
            self.replay_stream_in_turn(stream)

    def replay_stream_in_turn(self, stream: str) -> None:
        """Replay a stream in one turn."""
        from memlog.projector.fold import replay_stream

        for _ in range(_ATTEMPTS):
            try:
                with self.turn():
                    stretches = [
                        _range_up_to(segment, self.bounds) for segment in list_segments(self.log, [stream])[0]
                    ]
                    tally = replay_stream(self.db, stream, stretches, self.sizes)
                    if self.watermarks is not None:
                        segments = [stretch.segment for stretch in stretches]
                        notes = raise_watermarks(self.db, self.watermarks, segments)
                        notes += _describe_losses(self.watermarks.find_losses(stream=stream))
                        self.report.notes += dict.fromkeys(notes)
                return self._add_counts_to_report(tally)
            except (HistoryChanged, FileNotFoundError):
                continue
        raise Busy(f"{stream} is being rewritten", hint="try again when it no longer changes")

    def _add_counts_to_report(self, tally: Tally) -> None:
        self.report.add_counts(tally)
        if self.progress is not None:
            # A replayed stream counts twice.
            self.progress(_READING, min(self.report.bytes, self.total), self.total)


def _range_up_to(segment: Segment, bounds: Bounds | None) -> ReadRange:
    if bounds is not None:
        # No tail of a newest segment is projected: one at the bound is the rest of a truncated line.
        return ReadRange(segment, bounds.get(segment.stream_and_filename, 0), not segment.is_newest)
    return find_range_to_read(segment, segment.read_status().st_size)


def _find_unread_ranges(
    log: Path, segments: list[Segment], known: dict[tuple[str, str], Checkpoint], bounds: Bounds | None
) -> dict[str, list[ReadRange]]:
    """Return the ranges to read, keyed by stream; each missing segment with a checkpoint gets one."""
    work: defaultdict[str, list[ReadRange]] = defaultdict(list)
    for segment in segments:
        stretch = _find_unread_range(segment, known.pop(segment.stream_and_filename, NOTHING_READ), bounds)
        if stretch is not None:
            work[segment.stream].append(stretch)
    for stream, filename in known:
        name = SegmentName.parse(filename)
        if name is not None:
            work[stream].insert(0, ReadRange(Segment(log, stream, name, is_newest=False), None, True))
    return work


def _find_unread_range(segment: Segment, checkpoint: Checkpoint, bounds: Bounds | None) -> ReadRange | None:
    """Return the unread range of a segment; None if the file's status shows that nothing is new."""
    if bounds is not None:
        stretch = _range_up_to(segment, bounds)
        return stretch if checkpoint.offset < (stretch.end or 0) else None
    try:
        hints = FileHints.of_status(segment.read_status())
    except FileNotFoundError:
        return ReadRange(segment, None, True)  # trying to read it causes a replay of the stream
    return (
        None
        if checkpoint.segment_has_nothing_new(segment, hints)
        else find_range_to_read(segment, hints.size)
    )


def build_read_model(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
) -> CatchUp:
    """Build the read model of `log`, up to `bounds`, in the empty database `db`.

    Raises DatabaseError if a foreign key has no target.
    """
    with transaction(db):
        schema.create_tables(db)
        store_projection_id(db, sizes)
        report = catch_up(db, log, sizes, bounds=bounds, progress=progress)
        schema.create_indexes(db)
    dangling = db.execute("PRAGMA foreign_key_check").fetchone()
    if dangling:
        raise DatabaseError(
            f"a row of {dangling[0]} refers to a row of {dangling[2]} that does not exist",
            hint="report this bug; the log is not affected",
        )
    return report
