"""Appending: an event is acknowledged only after its bytes are durable.

The steps and their reasons are in docs/storage/jsonl-format.md, "How memlog appends".
"""

import errno
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from memlog.eventlog import disk, locks, privacy, timestamps
from memlog.eventlog.acknowledgements import Durability as Durability
from memlog.eventlog.acknowledgements import LookUp, OnStored, compared
from memlog.eventlog.acknowledgements import Position as Position
from memlog.eventlog.damage import BadLine
from memlog.eventlog.draft import Draft, FindStream, draft, redactions_of
from memlog.eventlog.errors import Busy, LogError
from memlog.eventlog.events import Event
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.line import ends_with_crc
from memlog.eventlog.seals.reading import SealWatch
from memlog.eventlog.streams import SEALS, SegmentName, newest_segment, segment_names, segments_of
from memlog.eventlog.writing import check_regular, identity, write_lines

# What seals is imported where it is called: most appends seal nothing.
if TYPE_CHECKING:
    from memlog.eventlog.seals.file import SealFile
    from memlog.eventlog.seals.lines import Seal
    from memlog.eventlog.seals.losses import Loss

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
_TAIL_BLOCK = 64 * 1024


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
        self.path = store / "log"
        self.durability: Durability = durability
        self._lock_timeout = lock_timeout
        self._find_stream = find_stream
        self._seals = SealWatch(self.path)
        self._redact = redact
        self._look_up = look_up
        self._on_stored = on_stored
        self._synced: set[tuple[int, int]] = set()
        self._last_at: dict[tuple[int, int], tuple[int, str]] = {}

    def append(self, events: Iterable[Event | dict[str, Any] | bytes]) -> list[Position]:
        """Append `events` in their order and return where they stand, once all are durable.

        Each event is stored or not by itself; after an error some of them may be.

        Raises:
            BadInput: an event cannot be stored; none was written.
            NotFound: a redaction does not say where it goes, and no stream has its target; none was written.
            Busy: another writer held the stream for too long.
            LogError: the log could not be written. Safe to try again with the same ids.
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
            except Busy as error:
                outcomes += [error] * len(part)
            except OSError as error:
                outcomes += [_not_stored(error, item) for item in part]
        return outcomes

    def _commit(self, stream: str, drafts: list[Draft]) -> list[Position]:
        with self._locked_newest(stream) as (fd, segment):
            at = self._next_at(fd)
            offsets = write_lines(fd, [item.line(at) for item in drafts])
            self._last_at[identity(fd)] = (disk.position(fd), at)
            locks.release(fd)
            # After unlocking, so that the syncs of several writers merge. A failed sync is never tried
            # again: the kernel may have dropped the pages and would report success.
            if self.durability == "fsync":
                disk.sync_data(fd)
        return [
            Position(
                item.id,
                stream,
                segment.filename,
                offset,
                self.durability,
                memory_id=item.memory_id,
                warnings=item.warnings,
            )
            for item, offset in zip(drafts, offsets, strict=True)
        ]

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
        from memlog.eventlog.seals.file import SealFile

        made, seals = [], SealFile(self.path)
        for stream in dict.fromkeys(segment.stream for segment in segments_of(self.path)[0]):
            deadline = time.monotonic() + self._lock_timeout
            try:
                with (
                    entered(self.path, stream) as folders,
                    self._locked_last(stream, folders, deadline) as (_, segment),
                ):
                    names = [name for name in segment_names(folders[-1]) if name <= segment]
                    made += self._sealed(stream, names, deadline, seals, also_grown=True)
            except OSError as error:
                raise _not_sealed(error, stream) from error
        return made

    def accept_loss(self) -> "list[Seal]":
        """Say that what is missing of sealed segments is lost, and seal what stands; return the new seals.

        Raises:
            Busy: another writer held the seals for too long.
            LogError: a segment could not be read, or the seals not be written.
        """
        from memlog.eventlog.seals import sealing

        try:
            return sealing.accept_loss(self.path, lock_timeout=self._lock_timeout)
        except OSError as error:
            raise _not_sealed(error, self.path.name) from error

    def losses(self) -> "list[Loss]":
        """The sealed segments that are gone or shorter than their seal says, and nobody has accepted it.

        Raises:
            LogError: the seals cannot be read.
        """
        from memlog.eventlog.seals.losses import losses

        try:
            return losses(self.path)
        except OSError as error:
            message = f"{self.path.name}/{SEALS}: {error.strerror or error}"
            raise LogError(message, hint="see that it can be read") from error

    @contextmanager
    def _locked_newest(self, stream: str) -> Iterator[tuple[int, SegmentName]]:
        """The stream's newest segment, open and locked, with room for more."""
        deadline = time.monotonic() + self._lock_timeout
        with entered(self.path, stream, make=True) as folders:
            while True:
                with self._locked_last(stream, folders, deadline) as (fd, segment):
                    if self._has_room(stream, segment, fd):
                        self._sync_names(folders, fd)
                        yield fd, segment
                        return
                    # Sealed before its successor stands: a kill between the two leaves nothing unsealed.
                    self._sealed(stream, segment_names(folders[-1]), deadline)
                    successor = segment.successor(timestamps.now()[:10]).filename
                    disk.close(privacy.open_file(successor, disk.APPEND | disk.NEW, folder=folders[-1]))

    @contextmanager
    def _locked_last(
        self, stream: str, folders: list[int], deadline: float
    ) -> Iterator[tuple[int, SegmentName]]:
        """The stream's newest segment, open and locked. Where there is none, it is made."""
        while True:
            segment = newest_segment(folders[-1]) or SegmentName(timestamps.now()[:10])
            fd = privacy.open_file(segment.filename, disk.APPEND | disk.CREATE, folder=folders[-1])
            try:
                check_regular(fd)
                locks.acquire(fd, f"{stream}/{segment.filename}", max(0, deadline - time.monotonic()))
                if _is_still_newest(fd, folders[-1], segment):
                    yield fd, segment
                    return
            finally:
                disk.close(fd)
            if time.monotonic() > deadline:
                raise Busy(f"{stream} changed again and again", hint="try again")

    def _has_room(self, stream: str, segment: SegmentName, fd: int) -> bool:
        """Whether a line that comes today may stand in the locked segment."""
        is_of_today = segment.day >= timestamps.now()[:10] and disk.status(fd).st_size < SEGMENT_BYTES
        return is_of_today and not self._seals.is_sealed(stream, segment.filename)

    def _sealed(
        self,
        stream: str,
        names: list[SegmentName],
        deadline: float,
        seals: "SealFile | None" = None,
        *,
        also_grown: bool = False,
    ) -> "list[Seal]":
        from memlog.eventlog.seals import sealing
        from memlog.eventlog.seals.file import SealFile

        return sealing.seal(
            seals or SealFile(self.path),
            stream,
            [name.filename for name in names],
            lock_timeout=max(0, deadline - time.monotonic()),
            also_grown=also_grown,
        )

    def _sync_names(self, folders: list[int], fd: int) -> None:
        """Before this process's first bytes in a segment its name must be durable, whoever made it."""
        segment = identity(fd)
        # An empty file is a new one, even where it was given the inode of one that is gone.
        is_known = segment in self._synced and disk.status(fd).st_size > 0
        if self.durability == "os" or is_known:
            return
        for folder in reversed(folders):
            disk.sync(folder)
        sync_folder(self.store)
        # The store's own name, too; where the names above it may not be read, memlog has made none.
        with suppress(PermissionError):
            sync_folder(self.store.parent)
        self._synced.add(segment)

    def _next_at(self, fd: int) -> str:
        """Now, but never lower than the last `at` of the segment (clocks go back)."""
        known, last = self._last_at.get(identity(fd), (0, ""))
        size = disk.status(fd).st_size
        if size < known:  # an older copy was put back
            known, last = 0, ""
        if size > known:
            last = max(last, _last_at(fd, known, size))
        return max(timestamps.now(), last)


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


def _is_still_newest(fd: int, folder: int, segment: SegmentName) -> bool:
    """Whether, under the lock, the name is still that of the locked file and no newer segment was made."""
    try:
        standing = disk.look(segment.filename, folder=folder)
    except FileNotFoundError:
        return False
    return (standing.st_dev, standing.st_ino) == identity(fd) and newest_segment(folder) == segment


class _Stamp(msgspec.Struct):
    at: str | None = None


def _last_at(fd: int, start: int, end: int) -> str:
    """The `at` of the last line of memlog's from `start`, where a line begins, to `end`; "" where none is."""
    begin = max(start, end - _TAIL_BLOCK)
    while True:
        lines = disk.read(fd, end - begin, begin).split(b"\n")
        for line in reversed(lines if begin == start else lines[1:]):
            at = _at_of(line)
            if at:
                return at
        if begin == start:
            return ""
        begin = max(start, end - 8 * (end - begin))


def _at_of(line: bytes) -> str:
    """Of a damaged or foreign line none: it could date all that follows to the year 9999."""
    line = line.strip(b"\0")  # a power cut may have left them around it
    try:
        at = msgspec.json.decode(line, type=_Stamp).at if ends_with_crc(line) else None
    except (BadLine, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return at if at is not None and timestamps.is_written_form(at) else ""


def _not_sealed(error: OSError, stream: str) -> LogError:
    message = f"{stream}: {error.strerror or error}: not known to be sealed"
    return LogError(message, hint="see that the log can be read and written, then try again")


def _not_stored(error: OSError, item: Draft) -> LogError:
    message = f"{item.stream}: {error.strerror or error}: event {item.id} is not known to be stored"
    if error.errno in _CANNOT_CREATE:
        hint = "make the store's folder writable, and free of what stands in the way of its log"
        return LogError(message, hint=hint, code="cannot_create", retryable=False)
    return LogError(message, hint=f"try again with the same id {item.id}")
