"""Folds the lines of segments into a read model: each becomes an event, or a row that says why not."""

from collections.abc import Collection, Container, Generator, Iterable, Iterator
from contextlib import closing
from typing import Literal

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.codec.upcast import parse_line_id
from memlog.eventlog.events import Event, Redacted, type_name_of_event
from memlog.eventlog.files import disk
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import Line, LogEntry, decode_entry, find_redactions
from memlog.eventlog.log.streams import Segment
from memlog.projector import checkpoints, subjects
from memlog.projector.checkpoints import (
    NOTHING_READ,
    Checkpoint,
    FileHints,
    HistoryChanged,
    ReadRange,
    Tally,
    opening_segment,
)
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, delete_rows, insert_rows, to_json_list
from memlog.projector.subjects import imports
from memlog.projector.subjects.accepted import PositionedEvent

# Strategy: a batch of lines becomes rows in one transaction, together with its checkpoint. A kill loses at
# most a batch, and any number of catch-ups gives the rows of one replay, to the last byte of the dump.
#
# A batch passes these steps: decode its lines; drop redacted ones; split the rest into accepted events,
# duplicates and conflicts (of lines with one id, the earliest position is the event); write these rows; give
# the accepted events to their handlers.
#
# Lines may contradict rows: bytes that were read have changed, an earlier position repeats an id (a file
# sync or a merge brings such lines), or a projected event is redacted. The fold then raises HistoryChanged,
# and the stream is replayed. So what a redacted line had replaced shows again, and no handler has to know
# how to undo.
#
# A replay first collects all redactions of the stream, since a redaction comes after its target. It does not
# decode unchanged lines of redacted events again: that took 4 s of CPU when 200,000 messages were forgotten.

_BATCH_LINES = 4096
_BATCH_BYTES = 8 * 1024 * 1024

Redaction = tuple[PositionedEvent, Redacted]
"""A redaction event, with and without its position."""

_Place = tuple[str, int, str, int]
"""(day, number, writer, offset)."""


def fold_segment(
    db: Connection,
    stretch: ReadRange,
    sizes: ChunkSizes,
    *,
    share: int = 1,
    leave_out: Container[int] = (),
) -> Generator[Tally, None, None]:
    """Fold a segment from its checkpoint onwards, batch by batch; each batch saves a checkpoint.

    share: divides the size of batches. leave_out: the offsets of lines known to be redacted.

    Raises HistoryChanged if bytes before the checkpoint have changed.
    """
    segment = stretch.segment
    with opening_segment(segment) as fd:
        while True:
            checkpoint = checkpoints.load_checkpoint(db, segment)
            hints = FileHints.of_status(disk.status_of_descriptor(fd))
            if not checkpoint.matches_open_segment(segment, fd, hints):
                raise HistoryChanged(_why_segment_changed(segment, checkpoint, fd, hints))
            end = stretch.end_after(checkpoint.offset)
            batch = _take_next_batch(stretch.read_unread_lines(fd, checkpoint), share)
            tally = _fold_batch(db, segment, batch, sizes, leave_out)
            read = _advance_checkpoint(checkpoint, batch, fd, hints.limit_to_read_bytes(end), stretch)
            # Invariant: a checkpoint only moves forward, and a batch moves it, so no line is folded twice.
            assert read.offset > checkpoint.offset if batch else read.offset == checkpoint.offset
            checkpoints.save_checkpoint(db, segment, read)
            yield tally
            if not batch or read.offset == end:
                return


def _why_segment_changed(segment: Segment, checkpoint: Checkpoint, fd: int, hints: FileHints) -> str:
    """Return the reason why a segment differs from its checkpoint; file sync may just have extended it."""
    if hints.size > checkpoint.offset and checkpoint.fingerprint.matches_all_bytes(fd):
        return f"more of {segment.name.filename} has arrived"
    return f"{segment.name.filename} was rewritten"


def _fold_batch(
    db: Connection, segment: Segment, lines: list[Line], sizes: ChunkSizes, leave_out: Container[int]
) -> Tally:
    decoded, bad = _decode_lines_to_events(segment, (line for line in lines if line.offset not in leave_out))
    redactions = _find_unrecorded_redactions(db, decoded)
    if redactions or _has_rows_of_stream(db, "redactions", segment.stream):
        ids = {placed.id for placed in decoded} | {entry.event_id for entry in bad}
        redacted = _find_redacted_ids(db, segment, ids, redactions)
        # A redaction itself is never left out.
        decoded = [
            placed for placed in decoded if placed.id not in redacted or isinstance(placed.event, Redacted)
        ]
        bad = [entry for entry in bad if entry.event_id not in redacted]
    accepted, duplicates, conflicts = _classify_events(db, segment, decoded)
    _record_lines(db, segment, accepted, duplicates, conflicts, bad)
    record_redactions(db, redactions)
    hidden = imports.find_hidden_ids(db, segment.stream, [placed.id for placed in accepted])
    subjects.fold_events(db, [placed for placed in accepted if placed.id not in hidden], sizes)
    return Tally(
        events=len(accepted),
        duplicates=len(duplicates),
        conflicts=len(conflicts),
        quarantined=len(bad),
        nul_runs=_record_nul_runs(db, segment, lines),
        # Including the NUL bytes between lines.
        bytes=lines[-1].end - lines[0].offset + lines[0].nuls_before if lines else 0,
    )


def _decode_lines_to_events(
    segment: Segment, lines: Iterable[Line]
) -> tuple[list[PositionedEvent], list[LogEntry]]:
    """Decode `lines`; return the events, and the entries of non-blank lines that hold no event."""
    decoded, bad = [], []
    for entry in filter(None, (decode_entry(segment, line) for line in lines)):
        if isinstance(entry.event, BadLine):
            bad.append(entry)
        else:
            decoded.append(position_event(entry, entry.event))
    return decoded, bad


def position_event(entry: LogEntry, event: Event) -> PositionedEvent:
    """Combine an event with the position of its entry."""
    segment, line = entry.segment, entry.line
    assert event.id is not None  # decoding ensures both
    assert event.ts is not None
    name = segment.name
    place = name.day, name.number, name.writer, line.offset
    return PositionedEvent(event.id, event.ts, event, segment.stream, name, line, entry.content, place)


def _find_unrecorded_redactions(db: Connection, decoded: list[PositionedEvent]) -> list[Redaction]:
    """Return the redactions that have no rows yet; a replay records all redactions before it folds."""
    # The rows of a line are written and deleted together, so the row of its first target stands for all.
    sql = "SELECT 1 FROM redactions WHERE (stream, target_id, segment, offset) = (?, ?, ?, ?)"
    found = []
    for placed in decoded:
        if isinstance(placed.event, Redacted):
            place = (placed.stream, placed.event.targets[0], placed.segment.filename, placed.line.offset)
            if db.execute(sql, place).fetchone() is None:
                found.append((placed, placed.event))
    return found


def _find_redacted_ids(
    db: Connection, segment: Segment, ids: Collection[str], redactions: list[Redaction]
) -> set[str]:
    """Return the `ids`, those in a batch, that are redacted.

    redactions: the batch's redactions that have no rows yet. Raises HistoryChanged if a target of one of them
    is already projected.
    """
    targets = {target for _, redaction in redactions for target in redaction.targets}
    projected = _find_first_projected_id(db, segment.stream, sorted(targets))
    if projected is not None:
        raise HistoryChanged(f"{projected} was redacted")
    known = db.execute(
        "SELECT target_id FROM redactions WHERE stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (segment.stream, to_json_list(ids)),
    )
    return targets.union(target_id for (target_id,) in known)


def _find_first_projected_id(db: Connection, stream: str, ids: list[str]) -> str | None:
    """Return the first of `ids` that is still projected, as an event or a quarantined line; otherwise None.

    Ids that were redacted before are skipped, since a redaction stays even if it is redacted itself.
    Conflicts need no lookup of their own, since a conflict has the id of an event.
    """
    found = db.execute(
        "SELECT value FROM json_each(?1) WHERE EXISTS (SELECT 1 FROM events WHERE stream = ?2 AND id = value)"
        " AND NOT EXISTS (SELECT 1 FROM redactions WHERE stream = ?2 AND target_id = value) LIMIT 1",
        (to_json_list(ids), stream),
    ).fetchone()
    if found is None:
        places = [(*place, name) for name in ids if (place := parse_line_id(name)) is not None]
        found = db.execute(
            "SELECT place.value ->> 2 FROM json_each(?) AS place JOIN quarantine ON stream = ?"
            " AND segment = place.value ->> 0 AND offset = place.value ->> 1 LIMIT 1",
            (to_json_list(places), stream),
        ).fetchone()
    return None if found is None else str(found[0])


def _has_rows_of_stream(db: Connection, table: Literal["redactions", "events"], stream: str) -> bool:
    """Whether a table has rows of a stream; saves most batches of a rebuild a lookup."""
    return db.execute(f"SELECT 1 FROM {table} WHERE stream = ? LIMIT 1", (stream,)).fetchone() is not None


def _find_projected_events(
    db: Connection, stream: str, decoded: list[PositionedEvent]
) -> dict[str, tuple[_Place, bytes]]:
    """Return the position and content hash of projected events with an id in `decoded`, keyed by id."""
    rows = db.execute(
        "SELECT id, content_sha256, day, number, writer, offset FROM events"
        " WHERE stream = ? AND id IN (SELECT value FROM json_each(?))",
        (stream, to_json_list([placed.id for placed in decoded])),
    )
    return {event_id: (tuple(place), content) for event_id, content, *place in rows}


def _classify_events(
    db: Connection, segment: Segment, decoded: list[PositionedEvent]
) -> tuple[list[PositionedEvent], list[PositionedEvent], list[PositionedEvent]]:
    """Split `decoded` into accepted events, duplicates and conflicts; the earliest line of each id wins.

    Raises HistoryChanged if a line is earlier than the projected event with its id.
    """
    accepted: list[PositionedEvent] = []
    duplicates: list[PositionedEvent] = []
    conflicts: list[PositionedEvent] = []
    known = (
        _find_projected_events(db, segment.stream, decoded)
        if _has_rows_of_stream(db, "events", segment.stream)
        else {}
    )
    for placed in decoded:
        place, content = known.setdefault(placed.id, (placed.place, placed.content_sha256))
        if place == placed.place:
            accepted.append(placed)
        elif place > placed.place:
            raise HistoryChanged(f"a late line repeats the id {placed.id}")
        else:
            (duplicates if content == placed.content_sha256 else conflicts).append(placed)
    return accepted, duplicates, conflicts


def _record_lines(
    db: Connection,
    segment: Segment,
    accepted: list[PositionedEvent],
    duplicates: list[PositionedEvent],
    conflicts: list[PositionedEvent],
    bad: list[LogEntry],
) -> None:
    events = (
        (
            placed.stream,
            placed.id,
            type_name_of_event(placed.event),
            placed.ts,
            *placed.place,
            placed.event.at or "",
        )
        + (placed.line.length, placed.line.number, bytearray(placed.content_sha256))
        for placed in accepted
    )
    columns = "stream, id, type, ts, day, number, writer, offset, at, length, line, content_sha256"
    insert_rows(db, "events", columns, events, empty_is_null=("at",))
    repeats = ((*segment.stream_and_filename, placed.line.offset, placed.id) for placed in duplicates)
    insert_rows(db, "duplicates", "stream, segment, offset, id", repeats)
    contradictions = (
        (*segment.stream_and_filename, *_line_extent(placed.line), placed.id, placed.content_sha256)
        for placed in conflicts
    )
    insert_rows(db, "conflicts", f"{_LINE}, id, content_sha256", contradictions)
    quarantined = (
        (
            *segment.stream_and_filename,
            *_line_extent(entry.line),
            entry.event.reason,
            None if data is None else sha256(data).digest(),
        )
        for entry in bad
        if isinstance(entry.event, BadLine)
        for data in (entry.line.data,)
    )
    insert_rows(db, "quarantine", f"{_LINE}, reason, sha256", quarantined)


_LINE = "stream, segment, offset, length, line"


def _line_extent(line: Line) -> tuple[int, int, int]:
    return line.offset, line.length, line.number


def _record_nul_runs(db: Connection, segment: Segment, lines: list[Line]) -> int:
    """Record the NUL bytes around lines; return the number of runs."""
    with_nuls = [line for line in lines if line.nuls_before or line.nuls_after]
    before = [(line.offset - line.nuls_before, line.nuls_before, line.number) for line in with_nuls]
    behind = [(line.offset + line.length, line.nuls_after, line.number) for line in with_nuls]
    runs = [run for run in before + behind if run[1]]
    insert_rows(db, "nul_runs", _LINE, ((*segment.stream_and_filename, *run) for run in runs))
    return len(runs)


def record_redactions(db: Connection, redactions: Iterable[Redaction]) -> None:
    """Insert a row for each target of each redaction, even for duplicates and conflicts."""
    db.executemany(
        "INSERT OR IGNORE INTO redactions (stream, target_id, id, reason, ts, segment, offset)"
        " VALUES (?, ?, ?, nullif(?, 0), ?, ?, ?)",
        (
            # 0 instead of None, as a reason may be "": see `insert_rows`.
            (placed.stream, target, placed.id, 0 if redaction.reason is None else redaction.reason)
            + (placed.ts, placed.segment.filename, placed.line.offset)
            for placed, redaction in redactions
            for target in redaction.targets
        ),
    )


def _take_next_batch(lines: Iterator[Line], share: int) -> list[Line]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += line.length
        if len(batch) >= _BATCH_LINES // share or size >= _BATCH_BYTES // share:
            break
    return batch


def _advance_checkpoint(
    checkpoint: Checkpoint, batch: list[Line], fd: int, hints: FileHints, stretch: ReadRange
) -> Checkpoint:
    if not batch:
        return Checkpoint(checkpoint.fingerprint, checkpoint.lines, checkpoint.is_open, hints)
    last = batch[-1]
    return Checkpoint(
        fingerprint=checkpoint.fingerprint.extend_to_offset(fd, last.end),
        lines=last.number - last.is_open,
        is_open=last.is_open and stretch.tail_is_a_line,
        # Only up to the last line, so that after a kill the rest counts as growth.
        hints=hints.limit_to_read_bytes(last.end),
    )


def replay_stream(db: Connection, stream: str, stretches: list[ReadRange], sizes: ChunkSizes) -> Tally:
    """Delete all rows of `stream` and project it again, in the caller's transaction."""
    read = {stretch.segment: _load_valid_checkpoint(db, stretch.segment) for stretch in stretches}
    unchanged = [segment.name.filename for segment, checkpoint in read.items() if checkpoint.offset]
    db.execute(
        "DELETE FROM redactions WHERE stream = ? AND segment NOT IN (SELECT value FROM json_each(?))",
        (stream, to_json_list(unchanged)),
    )
    for stretch in stretches:
        with opening_segment(stretch.segment) as fd:
            entries = find_redactions(stretch.segment, stretch.read_unread_lines(fd, read[stretch.segment]))
            found = [(position_event(entry, event), event) for entry, event in entries]
        record_redactions(db, found)
    redacted = _find_redacted_lines(db, stream, read)
    subjects.clear_stream(db, stream, keep=("redactions",))
    delete_rows(db, "streams_to_replay", "target_stream = ?", (stream,))
    tally = Tally()
    for stretch in stretches:
        leave_out = redacted[stretch.segment.name.filename]
        with closing(fold_segment(db, stretch, sizes, leave_out=leave_out)) as parts:
            for part in parts:
                tally.add_counts(part)
    return tally


def _load_valid_checkpoint(db: Connection, segment: Segment) -> Checkpoint:
    """Return the checkpoint of a segment; NOTHING_READ if bytes before it have changed."""
    checkpoint = checkpoints.load_checkpoint(db, segment)
    with opening_segment(segment) as fd:
        holds = checkpoint.matches_open_segment(
            segment, fd, FileHints.of_status(disk.status_of_descriptor(fd))
        )
    return checkpoint if holds else NOTHING_READ


def _find_redacted_lines(db: Connection, stream: str, read: dict[Segment, Checkpoint]) -> dict[str, set[int]]:
    """Return the offsets of read lines whose projected events are now redacted, keyed by segment filename."""
    found: dict[str, set[int]] = {segment.name.filename: set() for segment in read}
    ends = {segment.name.filename: checkpoint.offset for segment, checkpoint in read.items()}
    for filename, offset in db.execute(
        "SELECT segment, offset FROM events WHERE stream = ? AND type <> ?"
        " AND id IN (SELECT target_id FROM redactions WHERE stream = events.stream)",
        (stream, type_name_of_event(Redacted)),
    ):
        if offset < ends.get(filename, 0):
            found[filename].add(offset)
    return found
