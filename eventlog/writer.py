"""Appending: an event is acknowledged only after its bytes are durable.

The steps and their reasons are in docs/storage/jsonl-format.md, "How memlog appends".
"""

import errno
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from memlog.eventlog import disk, locks, log_format, permissions, timestamps
from memlog.eventlog.acknowledgements import Durability as Durability
from memlog.eventlog.acknowledgements import LookUp, OnStored, compared
from memlog.eventlog.acknowledgements import Position as Position
from memlog.eventlog.clock import Clock
from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.encode import Draft, FindStream, draft, redactions_of
from memlog.eventlog.errors import Busy, LogError
from memlog.eventlog.events import Event
from memlog.eventlog.file_io import identity, is_regular, write_lines
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.layout import LOG, SEALS
from memlog.eventlog.precedence import CAP, next_precedence
from memlog.eventlog.seals.reader import SealWatch
from memlog.eventlog.streams import (
    SegmentName,
    by_writer,
    current_segments,
    segment_names,
    segments_of,
)

# What seals is imported where it is called: most appends seal nothing.
if TYPE_CHECKING:
    from memlog.eventlog.seals.files import SealFiles
    from memlog.eventlog.seals.format import Seal
    from memlog.eventlog.seals.losses import Loss
    from memlog.eventlog.watermarks import OpenLoss

SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment that has passed this gets no more lines."""

_CANNOT_CREATE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENOENT,
    errno.ELOOP,
)
_COMMIT_BYTES = 8 * 1024 * 1024
_SHORTLY = 0.1  # seconds to wait for what an append can do without
_SECONDS_UNREMEMBERED = 1.0
"""A restore may hide what a process appended after this from the next process."""


class Log:
    """Appends to the log of the store at `store`. May be used from several threads and processes at once.

    lock_timeout: seconds to wait for another writer of the same stream.
    find_stream: asked where a redaction goes that does not say it.
    redact: mask what looks like a key before it is written.
    look_up: asked which ids that callers gave were known before; None: no answer says so.
    on_stored: called with what has become durable, before it is acknowledged.
    """

    def __init__(
        self,
        store: Path,
        *,
        durability: Durability = "fsync",
        lock_timeout: float = 10.0,
        find_stream: FindStream | None = None,
        redact: bool = False,
        look_up: LookUp | None = None,
        on_stored: OnStored | None = None,
    ) -> None:
        self.store = store
        self.path = store / LOG
        self.durability: Durability = durability
        self._lock_timeout = lock_timeout
        self._find_stream = find_stream
        self._seals = SealWatch(self.path)
        self._seal_files: SealFiles | None = None
        self._redact = redact
        self._look_up = look_up
        self._on_stored = on_stored
        self._synced: set[tuple[int, int]] = set()
        self._writer = Writer(store, lock_timeout=lock_timeout)
        self._clock = Clock()
        self._has_format = False
        self._current: dict[tuple[str, str], SegmentName] = {}
        self._remembered: dict[tuple[str, str, int], float] = {}

    def append(self, events: Iterable[Event | dict[str, Any] | bytes]) -> list[Position]:
        """Append `events` in their order and return where they stand, once all are durable.

        Each event is stored or not by itself; after an error some of them may be.

        Raises:
            BadInput: an event cannot be stored; none was written.
            NotFound: a redaction does not say where it goes, and no stream has its target; none was written.
            Busy: another writer held the stream for too long.
            LogError: the log could not be written. Safe to try again with the same ids, unless a newer memlog
                has written the log.
        """
        return self._all_stored([self.draft(event) for event in events])

    def append_redactions(self, targets: Iterable[tuple[str, str]], reason: str | None) -> list[Position]:
        """Append redactions of all events in `targets`, by (stream, id); raises as `append`."""
        return self.append(redactions_of(targets, reason))

    def draft(self, event: Event | dict[str, Any] | bytes) -> Draft:
        """`event`, checked and ready for `append_each`; raises what `append` does of one that is not."""
        return draft(event, self._find_stream, redact=self._redact)

    def append_each(self, drafts: Sequence[Draft]) -> list[Position | LogError | Busy]:
        """Append `drafts`; for each where it stands, or why it is not known to be stored."""
        outcomes: dict[int, Position | LogError | Busy] = {}
        numbers_of: defaultdict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(drafts):
            numbers_of[item.stream].append(number)
        for stream, numbers in numbers_of.items():
            outcomes |= zip(
                numbers, self._append_to(stream, [drafts[number] for number in numbers]), strict=True
            )
        answers = [outcomes[number] for number in range(len(drafts))]
        if self._on_stored is not None:
            self._on_stored([answer for answer in answers if isinstance(answer, Position)])
        return answers

    def _all_stored(self, drafts: list[Draft]) -> list[Position]:
        positions = []
        for outcome in self.append_each(drafts):
            if not isinstance(outcome, Position):
                raise outcome
            positions.append(outcome)
        return positions

    def _append_to(self, stream: str, drafts: list[Draft]) -> list[Position | LogError | Busy]:
        outcomes: list[Position | LogError | Busy] = []
        for part in _parts(drafts):
            try:
                outcomes += self._compared(stream, part, self._commit(stream, part))
            except (Busy, LogError) as error:
                outcomes += [error] * len(part)
            except OSError as error:
                outcomes += [_not_stored(error, item) for item in part]
        return outcomes

    def _commit(self, stream: str, drafts: list[Draft]) -> list[Position]:
        self._claim_format()
        while True:
            writer = self._writer.name()
            try:
                with self._locked_newest(stream, writer) as place:
                    return self._written(stream, drafts, place)
            except _NameTakenError:
                # Other copies may have what the other file lacks, such as an older copy: what is appended now
                # belongs in a file of another writer.
                self._writer.retire(writer)

    def _claim_format(self) -> None:
        """Once a process: an append must stay fast."""
        if not self._has_format:
            log_format.claim(self.path, lock_timeout=self._lock_timeout)
            self._has_format = True

    def _written(self, stream: str, drafts: list[Draft], place: "_Place") -> list[Position]:
        fd = place.fd
        at = self._clock.next_at(fd, place.status)
        lines, highest = self._stamped(drafts, place, at)
        offsets = write_lines(fd, lines)
        self._clock.wrote(place.status, disk.position(fd), at, highest)
        locks.release(fd)
        self._remember(stream, place)
        # After unlocking, so that the syncs of several writers merge. A failed sync is never tried
        # again: the kernel may have dropped the pages and would report success.
        if self.durability == "fsync":
            disk.sync_data(fd)
        return [
            Position(
                item.id,
                stream,
                place.segment.filename,
                offset,
                self.durability,
                memory_id=item.memory_id,
                warnings=item.warnings,
            )
            for item, offset in zip(drafts, offsets, strict=True)
        ]

    def _stamped(self, drafts: list[Draft], place: "_Place", at: str) -> tuple[list[bytes], str]:
        """The lines of `drafts`, and the highest precedence of the stream with them; "" without changes."""
        if not any(item.change_ts for item in drafts):
            return [item.line(at) for item in drafts], ""
        lines, highest = [], self._clock.highest(place.folder, place.names)
        now = timestamps.now()
        for item in drafts:
            if not item.change_ts:
                lines.append(item.line(at))
                continue
            wins = next_precedence(item.change_ts, now, highest, is_dated=item.is_dated)
            highest = max(highest, wins)
            lines.append(item.line(at, wins, highest if highest > wins else None))
        return lines, highest

    def _compared(self, stream: str, drafts: list[Draft], positions: list[Position]) -> list[Position]:
        """`positions` with what was known of the ids that callers gave."""
        given = [item.id for item in drafts if item.content]
        known = self._look_up(stream, given) if given and self._look_up is not None else {}
        if not known:
            return positions
        return [
            compared(position, item.content, known.get(item.id))
            for item, position in zip(drafts, positions, strict=True)
        ]

    def seal(self) -> "list[Seal]":
        """Close and seal every segment that has no seal, the newest of each stream too; return the new seals,
        once they are durable. The next append to a stream begins its next segment.

        Raises:
            Busy: another writer held a stream or the seals for too long.
            LogError: a segment could not be read, or the seals not be written.
        """
        log_format.check_writable(self.path)
        written = by_writer(segments_of(self.path)[0])
        if not written:
            return []
        made, seals = [], self._own_seals()
        # A plain name is no writer's, so whoever seals may close it.
        for stream, writer in written:
            if writer not in ("", seals.writer):
                continue
            deadline = time.monotonic() + self._lock_timeout
            try:
                with (
                    entered(self.path, stream) as folders,
                    self._locked_last(stream, writer, folders, deadline) as place,
                ):
                    names = place.older_and_itself()
                    made += self._sealed(stream, names, deadline, seals, also_grown=True)
            except OSError as error:
                raise _not_sealed(error, stream) from error
        return made

    def accept_loss(self) -> "list[Seal | OpenLoss]":
        """Say that what is missing is lost: what is there now of sealed segments is sealed, and of others
        taken for all that was read. Return the new seals, and what was given up of segments without one.

        Raises:
            Busy: another process held the seals, or the read model, for too long.
            LogError: a segment could not be read, or the seals not be written.
        """
        from memlog.eventlog import watermarks
        from memlog.eventlog.seals import sealing

        try:
            log_format.check_writable(self.path)
            return [
                *sealing.accept_loss(self.path, self._writer, lock_timeout=self._lock_timeout),
                *watermarks.accept_open_losses(self.store, lock_timeout=self._lock_timeout),
            ]
        except OSError as error:
            raise _not_sealed(error, self.path.name) from error

    def own_writers(self) -> tuple[str, ...]:
        """The names under which this copy of the store appends, or did; none before its first append."""
        return self._writer.own_names()

    def losses(self) -> "list[Loss | OpenLoss]":
        """The segments that are gone or shorter than their seal says, or lack what was read of them, and
        nobody has accepted it.

        Raises:
            LogError: the seals, or a segment, cannot be read.
        """
        from memlog.eventlog.seals.losses import losses
        from memlog.eventlog.watermarks import open_losses

        try:
            return [*losses(self.path), *open_losses(self.store)]
        except OSError as error:
            message = f"{error.filename or f'{self.path.name}/{SEALS}'}: {error.strerror or error}"
            raise LogError(message, hint="see that it can be read") from error

    @contextmanager
    def _locked_newest(self, stream: str, writer: str) -> Iterator["_Place"]:
        """The writer's current segment of a stream, open and locked, with room for more.

        Raises:
            _NameTakenError: it is not what the writer made of it.
        """
        deadline = time.monotonic() + self._lock_timeout
        with entered(self.path, stream, make=True) as folders:
            while True:
                with self._locked_last(stream, writer, folders, deadline) as place:
                    if not self._is_own(stream, place):
                        raise _NameTakenError(
                            errno.EEXIST, "another file has its name", place.segment.filename
                        )
                    if self._has_room(stream, place):
                        self._sync_names(folders, place.status)
                        yield place
                        return
                    # Sealed before its successor stands: a kill between the two leaves nothing unsealed.
                    self._sealed(stream, place.older_and_itself(), deadline)
                    successor = place.segment.successor(timestamps.today())
                    successor = self._unused(stream, successor, folders[-1])
                    disk.close(_open(successor, disk.APPEND | disk.NEW, folders[-1]))

    @contextmanager
    def _locked_last(
        self, stream: str, writer: str, folders: list[int], deadline: float
    ) -> Iterator["_Place"]:
        """The writer's current segment of a stream, open and locked. Where it has none, one is made."""
        while True:
            # To list a folder takes longer the more segments it has: once, under the lock, is enough.
            segment, flags = self._current.pop((stream, writer), None), disk.APPEND
            if segment is None:
                segment, flags = _current(segment_names(folders[-1]), writer), disk.APPEND | disk.CREATE
            if segment is None:
                segment = self._unused(stream, SegmentName(timestamps.today(), 0, writer), folders[-1])
            try:
                fd = _open(segment, flags, folders[-1])
            except FileNotFoundError:
                if flags & disk.CREATE:
                    raise
                continue
            try:
                locks.acquire(fd, f"{stream}/{segment.filename}", max(0, deadline - time.monotonic()))
                status, names = disk.status(fd), segment_names(folders[-1])
                if _has_its_name(status, folders[-1], segment) and _current(names, writer) == segment:
                    self._current[stream, writer] = segment
                    yield _Place(fd, status, segment, folders[-1], names)
                    return
            finally:
                disk.close(fd)
            if time.monotonic() > deadline:
                raise Busy(f"{stream} changed again and again", hint="try again")

    def _unused(self, stream: str, segment: SegmentName, folder: int) -> SegmentName:
        """The name of a segment that is to be made, unless one had it and is gone."""
        has_made = self._writer.has_made(stream, segment.filename)
        # In this order: another process may be making it.
        if has_made and segment not in segment_names(folder):
            raise _NameTakenError(errno.ENOENT, "a segment that is gone had its name", segment.filename)
        return segment

    def _is_own(self, stream: str, place: "_Place") -> bool:
        """Whether the locked segment is what this writer made of it: no other file has taken its place, and
        it is no shorter than it was."""
        if self._clock.has_shrunk(place.status):
            return False
        # An empty file may have got the inode of one that is gone.
        key = stream, place.segment.filename, place.status.st_ino
        if place.status.st_size > 0 and key in self._remembered:
            return True
        is_own = self._writer.has_written(stream, place.segment.filename, place.fd)
        if place.status.st_size == 0:
            self._remembered[key] = time.monotonic()
        return is_own

    def _remember(self, stream: str, place: "_Place") -> None:
        """Not at each append, which this process alone sees: to remember costs a write."""
        now, key = time.monotonic(), (stream, place.segment.filename, place.status.st_ino)
        if now < self._remembered.get(key, -_SECONDS_UNREMEMBERED) + _SECONDS_UNREMEMBERED:
            return
        # The lines are written: what is not remembered costs no more than the view of a loss.
        with suppress(OSError, Busy):
            self._writer.remember(stream, place.segment.filename, place.fd, lock_timeout=_SHORTLY)
        self._remembered[key] = now

    def _has_room(self, stream: str, place: "_Place") -> bool:
        """Whether a line that comes now may stand in the locked segment."""
        now, day = timestamps.now(), place.segment.day
        # A clock that goes back some seconds at midnight begins no segment.
        is_of_today = now[:10] == day or now[:10] < day <= timestamps.shifted(now, CAP)[:10]
        has_room = is_of_today and place.status.st_size < SEGMENT_BYTES
        return has_room and not self._seals.is_sealed(stream, place.segment.filename, place.segment.writer)

    def _sealed(
        self,
        stream: str,
        names: list[SegmentName],
        deadline: float,
        seals: "SealFiles | None" = None,
        *,
        also_grown: bool = False,
    ) -> "list[Seal]":
        from memlog.eventlog.seals import sealing

        return sealing.seal(
            seals or self._own_seals(),
            stream,
            [name.filename for name in names],
            lock_timeout=max(0, deadline - time.monotonic()),
            also_grown=also_grown,
        )

    def _own_seals(self) -> "SealFiles":
        """Kept, since a redaction may come to each of thousands of sealed streams: they are indexed once."""
        from memlog.eventlog.seals.files import SealFiles

        writer = self._writer.name()
        if self._seal_files is None or self._seal_files.writer != writer:
            self._seal_files = SealFiles(self.path, writer)
        return self._seal_files

    def _sync_names(self, folders: list[int], status: os.stat_result) -> None:
        """Before this process's first bytes in a segment its name must be durable, whoever made it."""
        segment = identity(status)
        # An empty file is a new one, even where it was given the inode of one that is gone.
        is_known = segment in self._synced and status.st_size > 0
        if self.durability == "os" or is_known:
            return
        for folder in reversed(folders):
            disk.sync(folder)
        sync_folder(self.store)
        # The store's own name, too; where the names above it may not be read, memlog has made none.
        with suppress(PermissionError):
            sync_folder(self.store.parent)
        self._synced.add(segment)


class _Place(msgspec.Struct, frozen=True):
    """A segment that is open and locked, the descriptor of its stream's folder, and the segments in that.

    status: of the segment, since the lock was taken.
    """

    fd: int
    status: os.stat_result
    segment: SegmentName
    folder: int
    names: list[SegmentName]

    def older_and_itself(self) -> list[SegmentName]:
        """The segments of its writer up to it."""
        own = [name for name in self.names if name.writer == self.segment.writer]
        return [name for name in own if name.age <= self.segment.age]


def _parts(drafts: list[Draft]) -> Iterator[list[Draft]]:
    """`drafts` in groups of some megabytes, so that a segment is not outgrown by one long list."""
    part: list[Draft] = []
    size = 0
    for item in drafts:
        part.append(item)
        size += len(item.head) + len(item.tail)
        if size >= _COMMIT_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _current(names: list[SegmentName], writer: str) -> SegmentName | None:
    return current_segments(names).get(writer)


def _has_its_name(status: os.stat_result, folder: int, segment: SegmentName) -> bool:
    """Whether, under the lock, the name is still that of the locked file."""
    try:
        standing = disk.look(segment.filename, folder=folder)
    except FileNotFoundError:
        return False
    return identity(standing) == identity(status)


class _NameTakenError(OSError):
    """Something else has the name of a writer's segment."""


def _open(segment: SegmentName, flags: int, folder: int) -> int:
    """A descriptor of a writer's segment.

    Raises:
        _NameTakenError: a folder, a link or a device has its name. OSError: it cannot be opened.
    """
    try:
        fd = permissions.open_file(segment.filename, flags, folder=folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise
        raise _NameTakenError(errno.EEXIST, "another file has its name", segment.filename) from error
    try:
        if is_regular(fd):
            return fd
    except OSError:
        disk.close(fd)
        raise
    disk.close(fd)
    raise _NameTakenError(errno.EEXIST, "no regular file has its name", segment.filename)


def _not_sealed(error: OSError, stream: str) -> LogError:
    message = f"{stream}: {error.strerror or error}: not known to be sealed"
    return LogError(message, hint="see that the log can be read and written, then try again")


def _not_stored(error: OSError, item: Draft) -> LogError:
    message = f"{item.stream}: {error.strerror or error}: event {item.id} is not known to be stored"
    if error.errno in _CANNOT_CREATE:
        hint = "make the store's folder writable, and free of what stands in the way of its log"
        return LogError(message, hint=hint, code="cannot_create", retryable=False)
    return LogError(message, hint=f"try again with the same id {item.id}")
