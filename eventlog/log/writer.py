"""Appends events to the log, and acknowledges them once they are durable.

docs/storage/jsonl-format.md, "How memlog appends", explains the steps.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from errno import EACCES, EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, EPERM, EROFS
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import strip_bom
from memlog.eventlog.codec.encode import Draft, FindStream, build_redactions, draft_event
from memlog.eventlog.errors import Busy, LogError, MemlogError
from memlog.eventlog.escapes import decode_json
from memlog.eventlog.events import Durability as Durability
from memlog.eventlog.events import Event
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import closing_descriptor, open_regular_file, write_lines
from memlog.eventlog.files.folders import opening_folders_of_stream, sync_folder
from memlog.eventlog.log import log_format
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.log.order import Clock, next_precedence
from memlog.eventlog.log.quarantine import TOO_LONG
from memlog.eventlog.log.rotation import LockedSegment, Rotation
from memlog.eventlog.positions import LookUp, OnStored, mark_position_if_id_known
from memlog.eventlog.positions import Position as Position
from memlog.eventlog.positions import RefusedLine as RefusedLine

T = TypeVar("T")

_CANNOT_CREATE = (EACCES, EPERM, EROFS, ENOTDIR, EEXIST, EISDIR, ENOENT, ELOOP)
_COMMIT_BYTES = 8 * 1024 * 1024


class Log:
    """Appends to the log of the store at `store`. Safe for concurrent use by threads and processes.

    lock_timeout: seconds to wait while another process writes to the same stream.
    find_stream: finds the stream for a redaction that does not name one.
    redact: mask keys before events are written.
    look_up: finds which ids given by callers are already in use; None to report no duplicates or conflicts.
    on_stored: called with the positions of durable events before they are acknowledged.
    check: called with each event before any is written; raises BadInput to refuse it.
    """

    def __init__(
        self,
        store: Path,
        *,
        durability: Durability = "fsync",
        lock_timeout: float = locks.TIMEOUT,
        find_stream: FindStream | None = None,
        redact: bool = False,
        look_up: LookUp | None = None,
        on_stored: OnStored | None = None,
        check: Callable[[Draft], None] = lambda _: None,
    ) -> None:
        self.store = store
        self.path = store / LOG
        self.durability: Durability = durability
        self.lock_timeout = lock_timeout
        self._find_stream = find_stream
        self._redact = redact
        self._look_up = look_up
        self._on_stored = on_stored
        self._check = check
        self._clock = Clock()
        self._rotation = Rotation(store, self._clock, lock_timeout=lock_timeout, syncs=durability == "fsync")
        self._has_format = False

    def append(self, events: Iterable[Event | dict[str, Any] | bytes]) -> list[Position]:
        """Append `events` in order, and return their positions once all are durable.

        Each event is stored independently: after an error, some may be stored and others not.

        Raises:
            BadInput: an event is invalid; nothing was written.
            NotFound: a redaction names no stream, and no stream has its target; nothing was written.
            Busy: another writer held the stream for too long.
            LogError: the log cannot be written. Retry with the same ids, unless a newer memlog wrote the log.
        """
        return self.append_drafts([self.draft_event(event) for event in events])

    def append_drafts(self, drafts: Sequence[Draft]) -> list[Position]:
        """Append events encoded by `draft_event`; see `append`. Raises Busy and LogError."""
        positions = []
        for outcome in self.append_drafts_individually(drafts):
            if not isinstance(outcome, Position):
                raise outcome
            positions.append(outcome)
        return positions

    def append_redactions(self, targets: Iterable[tuple[str, str]], reason: str | None) -> list[Position]:
        """Append redactions of `targets`, pairs of (stream, id). Raises the same errors as `append`."""
        return self.append(build_redactions(targets, reason))

    def draft_event(self, event: Event | dict[str, Any] | bytes) -> Draft:
        """Check and encode an event for `append_drafts`. Raises BadInput and NotFound like `append`."""
        made = draft_event(event, self._find_stream, redact=self._redact)
        self._check(made)
        return made

    def append_drafts_individually(self, drafts: Sequence[Draft]) -> list[Position | LogError | Busy]:
        """Append `drafts`; return each one's position, or its error (it may still have been stored)."""
        of_stream: defaultdict[str, list[Draft]] = defaultdict(list)
        for item in drafts:
            of_stream[item.stream].append(item)
        outcomes = {
            stream: iter(self._append_to_stream(stream, items)) for stream, items in of_stream.items()
        }
        answers = [next(outcomes[item.stream]) for item in drafts]
        if self._on_stored is not None:
            self._on_stored([answer for answer in answers if isinstance(answer, Position)])
        return answers

    def _append_to_stream(self, stream: str, drafts: list[Draft]) -> list[Position | LogError | Busy]:
        outcomes: list[Position | LogError | Busy] = []
        # In parts, so that a long list does not make a segment far too long.
        for part in split_into_batches(drafts, lambda item: len(item.head) + len(item.tail), _COMMIT_BYTES):
            try:
                outcomes += self._mark_known_ids(stream, part, self._commit_drafts(stream, part))
            except (Busy, LogError) as error:
                outcomes += [error] * len(part)
            except OSError as error:
                outcomes += [_storage_error(error, item) for item in part]
        return outcomes

    def _commit_drafts(self, stream: str, drafts: list[Draft]) -> list[Position]:
        # Checked only once per process, to keep appends fast.
        if not self._has_format:
            log_format.claim_format(self.path, lock_timeout=self.lock_timeout)
            self._has_format = True
        with self._rotation.locking_current_segment(stream) as segment:
            return self._write_and_sync_drafts(stream, drafts, segment)

    def _write_and_sync_drafts(
        self, stream: str, drafts: list[Draft], segment: LockedSegment
    ) -> list[Position]:
        fd = segment.fd
        at = self._clock.next_append_time(fd, segment.status)
        lines, highest = self._stamp_drafts(drafts, segment, at)
        offsets = write_lines(fd, lines)
        end = disk.position_of_descriptor(fd)
        self._clock.record_write(segment.status, end, at, highest)
        disk.unlock(fd)
        # After unlocking, so that the syncs of several writers merge. A failed sync is never retried: the
        # kernel may have dropped the pages and would report success.
        if self.durability == "fsync":
            disk.sync_data(fd)
        # Recorded only after the sync: a power cut may remove bytes that are not durable.
        self._rotation.remember_size_of_segment(segment, end)
        name = segment.name.filename
        return [
            Position(item.id, stream, name, offset, self.durability, item.memory_id, warnings=item.warnings)
            for item, offset in zip(drafts, offsets, strict=True)
        ]

    def _stamp_drafts(self, drafts: list[Draft], segment: LockedSegment, at: str) -> tuple[list[bytes], str]:
        """Return the lines of `drafts`, and the stream's new highest precedence ("" if none is a change)."""
        if not any(item.change_ts for item in drafts):
            return [item.build_line(at) for item in drafts], ""
        lines, highest = [], self._clock.highest_precedence(segment.folder, segment.names)
        now = timestamps.now()
        for item in drafts:
            if not item.change_ts:
                lines.append(item.build_line(at))
                continue
            wins = next_precedence(item.change_ts, now, highest, is_dated=item.is_dated)
            highest = max(highest, wins)
            lines.append(item.build_line(at, wins, highest if highest > wins else None))
        return lines, highest

    def _mark_known_ids(self, stream: str, drafts: list[Draft], positions: list[Position]) -> list[Position]:
        """Mark as duplicates or conflicts the positions of events whose given id was already in use."""
        given = [item.id for item in drafts if item.content]
        known = self._look_up(stream, given) if given and self._look_up is not None else {}
        if not known:
            return positions
        return [
            mark_position_if_id_known(position, item.content, known.get(item.id))
            for item, position in zip(drafts, positions, strict=True)
        ]

    def sync(self, positions: Iterable[Position]) -> None:
        """Sync events that were appended with the durability `os`, and the names of their segments.

        Raises LogError.
        """
        segments = dict.fromkeys((position.stream, position.segment) for position in positions)
        parents = {(self.path / stream).parent for stream, _ in segments}
        try:
            for stream, segment in segments:
                with opening_folders_of_stream(self.path, stream) as folders:
                    with closing_descriptor(
                        open_regular_file(segment, disk.APPEND, folder=folders[-1])
                    ) as fd:
                        disk.sync_data(fd)
                    disk.sync(folders[-1])
            for folder in sorted(parents | {self.path}, reverse=True):
                sync_folder(folder)
            self._rotation.sync_store_names()
        except OSError as error:
            message = f"{error.strerror or error}: the last events may not survive a power cut"
            raise LogError(message, hint="try again: what is stored is not written again") from error

    def record_sizes(self) -> None:
        """Record the segments' sizes, so that `verify` detects later losses. Never raises."""
        self._rotation.record_sizes()

    def read_own_writer_names(self) -> tuple[str, ...]:
        """Return this copy's writer name, followed by its retired names; () before the first append."""
        return self._rotation.writer.read_own_names()


def split_into_batches(
    items: Iterable[T], length: Callable[[T], int], least: int, most: float = math.inf
) -> Iterator[list[T]]:
    """Yield `items` in batches that end once their total length reaches `least` or their count `most`."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += length(item)
        if size >= least or len(batch) == most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _storage_error(error: OSError, item: Draft) -> LogError:
    message = f"{item.stream}: {error.strerror or error}: event {item.id} may not have been stored"
    if error.errno in _CANNOT_CREATE:
        hint = "make the store's folder writable and move away what blocks its log, or use another folder:"
        hint += " memlog.open(PATH)"
        return LogError(message, hint=hint, code="cannot_create", retryable=False)
    return LogError(message, hint=f"try again with the same id {item.id}")


NumberedLine = tuple[int, bytes | None]
"""A line's number, from 1, and its bytes, or None if the line was too long to keep."""


def append_lines(log: Log, lines: Sequence[NumberedLine]) -> Iterator[tuple[int, Position | RefusedLine]]:
    """Append all non-blank `lines`; once they are durable, yield each line's number and outcome, in order."""
    bare = ((number, None if line is None else strip_bom(line)) for number, line in lines)
    checked = [(number, _draft_line(log, line)) for number, line in bare if line is None or line.strip()]
    stored = iter(log.append_drafts_individually([item for _, item in checked if isinstance(item, Draft)]))
    for number, item in checked:
        if isinstance(item, RefusedLine):
            yield number, item
            continue
        outcome = next(stored)
        yield number, outcome if isinstance(outcome, Position) else RefusedLine(outcome, item.id)


def _draft_line(log: Log, line: bytes | None) -> Draft | RefusedLine:
    if line is None:
        return RefusedLine(TOO_LONG, None)
    try:
        return log.draft_event(line)
    except MemlogError as error:
        return RefusedLine(error, _find_id_in_line(line))


class _Identified(msgspec.Struct):
    id: str | None = None


def _find_id_in_line(line: bytes) -> str | None:
    # Imported here: most lines are valid.
    from memlog.eventlog.secrets.detection import mask_keys

    given = decode_json(line, _Identified)
    return None if given is None or given.id is None else mask_keys(given.id)
