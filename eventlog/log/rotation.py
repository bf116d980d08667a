"""Chooses the segment for an append; starts a new one if the last is full, sealed, or from an earlier day.

docs/storage/jsonl-format.md, "How memlog appends", explains the steps.
"""

import atexit
import errno
import math
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import Busy
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import (
    file_identity,
    file_version,
    is_same_file_at,
    open_regular_file,
    status_at,
)
from memlog.eventlog.files.folders import opening_folders_of_stream, sync_folder
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_reader import read_seals_file
from memlog.eventlog.log.layout import LOG, name_of_seals_file
from memlog.eventlog.log.order import CAP, Clock
from memlog.eventlog.log.streams import SegmentName, list_segment_names, select_current_segments

if TYPE_CHECKING:
    from memlog.eventlog.integrity.seal_file import SealFiles
    from memlog.eventlog.integrity.seal_format import Seal


class SealWatch:
    """Tells whether a writer has sealed one of its segments.

    Since every append asks, it only compares the seals file's status, and reads the file after a change.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._version: tuple[int, ...] = ()
        self._unsealed: set[tuple[str, str]] = set()
        self._files: SealFiles | None = None

    def seals_files(self, writer: str) -> "SealFiles":
        """Return the seals files, indexed once for all segments; `writer` adds new seals."""
        # Imported here: most appends neither seal nor find a seal.
        from memlog.eventlog.integrity.seal_file import SealFiles

        if self._files is None or self._files.writer != writer:
            self._files = SealFiles(self._log, writer)
        return self._files

    def is_sealed(self, stream: str, segment: str, writer: str) -> bool:
        """Whether a writer's segment is sealed; the caller must hold its lock. Raises OSError."""
        # Joining paths takes 2 of the 100 microseconds of an append.
        version = file_version(status_at(f"{self._log}/{name_of_seals_file(writer)}"))
        if not version:
            return False
        if version != self._version:
            self._unsealed.clear()
            self._version = version
        if (stream, segment) not in self._unsealed:
            if self._has_seal(stream, segment, writer):
                return True
            self._unsealed.add((stream, segment))
        return False

    def _has_seal(self, stream: str, segment: str, writer: str) -> bool:
        if self._files is None:
            names = msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
            if names not in read_seals_file(self._log, name_of_seals_file(writer)):
                return False
        own = self.seals_files(writer).own
        own.refresh()
        return own.index.find_valid_seal(stream, segment) is not None


# Strategy: every writer appends to segments of its own, so two copies of a store never write to one file,
# and files from both merge by copying. The current segment is the writer's last by number: the clock may go
# back.
#
# `locking_current_segment` locks the file first and then verifies that the path still names it and that it
# has no successor, since another process may have rotated between listing and locking. A segment that is
# full, sealed or of an earlier day is closed under its own lock: seal it, create the successor, start
# again. The seal comes first, so that a kill in between leaves a sealed last segment, to which the next
# append adds a successor, and never an unsealed segment with a successor, which `verify` would report.
#
# A restored or copied file may lack lines that another copy has under the same name. So if the file is not
# the one that the writer made, is shorter than recorded, or was deleted, the writer gives up its name and
# continues under a new one, which is always safe.
#
# The common case opens one file without listing the folder twice: the name of the last append is cached, and
# the one listing happens under the lock. Sizes are recorded once a second, since each record is a write.

SEGMENT_BYTES = 64 * 1024 * 1024
"""The size at which a segment is full and gets no more lines."""

_SHORT_TIMEOUT = 0.1  # seconds to wait for a lock that an append can proceed without
_SECONDS_BETWEEN_RECORDS = 1.0
"""The least time between two records of a segment's size. If a backup is restored, the next process cannot
notice the loss of what was appended since the last record."""


class LockedSegment(msgspec.Struct, frozen=True):
    """An open, locked segment.

    status: the file's status under the lock. folder: the descriptor of the stream's folder.
    names: all segments in that folder.
    """

    fd: int
    status: os.stat_result
    stream: str
    name: SegmentName
    folder: int
    names: list[SegmentName]


class Rotation:
    """Opens and locks the current segment of each stream of the store at `store`, for this copy's writer.

    Safe for concurrent use by threads and processes.

    clock: remembers the earlier lengths of segments. syncs: whether to sync a segment's name before its first
      bytes are written.
    """

    def __init__(
        self, store: Path, clock: Clock | None = None, *, lock_timeout: float, syncs: bool = True
    ) -> None:
        self._store = store
        self.log = store / LOG
        self.writer = Writer(store, lock_timeout=lock_timeout)
        self._clock = clock or Clock()
        self._lock_timeout = lock_timeout
        self._syncs = syncs
        self._seals = SealWatch(self.log)
        self._current: dict[tuple[str, str], SegmentName] = {}
        self._synced: set[tuple[int, int]] = set()
        self._remembered: dict[tuple[str, str, int], float] = {}
        self._unrecorded: dict[tuple[str, str], int] = {}

    @contextmanager
    def locking_current_segment(self, stream: str) -> Iterator[LockedSegment]:
        """Yield the writer's current segment of a stream, locked and with room for more lines.

        Raises Busy and OSError.
        """
        writer = self.writer.find_or_create_name()
        deadline = time.monotonic() + self._lock_timeout
        with opening_folders_of_stream(self.log, stream, make=True) as folders:
            while True:
                try:
                    with self.locking_last_segment(stream, writer, folders, deadline) as segment:
                        self._check_own_segment(segment)
                        if self._has_room_for_lines(segment):
                            self._sync_names(folders, segment.status)
                            yield segment
                            return
                        self.seal_segment_and_older_ones(segment, deadline)
                        following = segment.name.next_segment_name(timestamps.today())
                        # Invariant: the successor is the writer's last segment, so no append goes back.
                        assert following.age_key > segment.name.age_key
                        self._check_name_unused(stream, following, folders[-1])
                        disk.close(_open_own_segment(following, disk.APPEND | disk.NEW, folders[-1]))
                except _NameTakenError:
                    self.record_sizes()
                    self.writer.retire_name(writer)
                    writer = self.writer.find_or_create_name()
                    deadline = time.monotonic() + self._lock_timeout

    @contextmanager
    def locking_last_segment(
        self, stream: str, writer: str, folders: list[int], deadline: float
    ) -> Iterator[LockedSegment]:
        """Yield a writer's last segment of a stream, locked, creating it if missing.

        Raises Busy and OSError.
        """
        while True:
            name, flags = self._current.pop((stream, writer), None), disk.APPEND
            if name is None:
                name = select_current_segments(list_segment_names(folders[-1])).get(writer)
                flags = disk.APPEND | disk.CREATE
            if name is None:
                name = SegmentName(timestamps.today(), 0, writer)
                self._check_name_unused(stream, name, folders[-1])
            try:
                fd = _open_own_segment(name, flags, folders[-1])
            except FileNotFoundError:
                if flags & disk.CREATE:
                    raise
                continue
            try:
                locks.lock_file(fd, f"{stream}/{name.filename}", max(0, deadline - time.monotonic()))
                status, names = disk.status_of_descriptor(fd), list_segment_names(folders[-1])
                is_here = is_same_file_at(name.filename, status, folder=folders[-1])
                if is_here and select_current_segments(names).get(writer) == name:
                    self._current[stream, writer] = name
                    yield LockedSegment(fd, status, stream, name, folders[-1], names)
                    return
            finally:
                disk.close(fd)
            if time.monotonic() > deadline:
                raise Busy(f"{stream}: its current segment keeps changing", hint="try again")

    def seal_segment_and_older_ones(
        self, segment: LockedSegment, deadline: float, *, also_grown: bool = False
    ) -> "list[Seal]":
        """Seal a locked segment and the older ones of the same writer; see `SealFiles.seal_segments`."""
        own = [name for name in segment.names if name.writer == segment.name.writer]
        return self._seals.seals_files(self.writer.find_or_create_name()).seal_segments(
            segment.stream,
            [name.filename for name in own if name.age_key <= segment.name.age_key],
            lock_timeout=max(0, deadline - time.monotonic()),
            also_grown=also_grown,
        )

    def remember_size_of_segment(self, segment: LockedSegment, size: int) -> None:
        """Record a segment's size for other processes, at most once a second."""
        now, key, name = time.monotonic(), _file_key(segment), (segment.stream, segment.name.filename)
        if now < self._remembered.get(key, -math.inf) + _SECONDS_BETWEEN_RECORDS:
            self._unrecorded[name] = size
            _unclosed.add(self)
            return
        # The append has succeeded; without the record, the only risk is that a later loss goes unnoticed.
        try:
            self.writer.record_size(*name, segment.fd, size, lock_timeout=_SHORT_TIMEOUT)
            self._unrecorded.pop(name, None)
        except (OSError, Busy):
            self._unrecorded[name] = size
        self._remembered[key] = now

    def record_sizes(self, lock_timeout: float | None = None) -> None:
        """Record the sizes that `remember_size_of_segment` has postponed."""
        timeout = self._lock_timeout if lock_timeout is None else lock_timeout
        for name, size in list(self._unrecorded.items()):
            with suppress(OSError, Busy):
                self.writer.record_growth(*name, size, lock_timeout=timeout)
                self._unrecorded.pop(name, None)

    def _check_own_segment(self, segment: LockedSegment) -> None:
        """Raise _NameTakenError if the writer did not create this file, or if it has become shorter."""
        is_empty = segment.status.st_size == 0
        is_own = not self._clock.has_shrunk(segment.status)
        # An empty file may reuse the inode of a deleted one.
        if is_own and (is_empty or _file_key(segment) not in self._remembered):
            is_own = self.writer.has_created_open_segment(segment.stream, segment.name.filename, segment.fd)
        if not is_own:
            raise _NameTakenError(errno.EEXIST, "another file has its name", segment.name.filename)
        if is_empty:
            self._remembered[_file_key(segment)] = -math.inf

    def _has_room_for_lines(self, segment: LockedSegment) -> bool:
        now, name = timestamps.now(), segment.name
        # A clock that steps back over midnight, by at most CAP, does not start a new segment.
        is_of_today = now[:10] == name.day or now[:10] < name.day <= timestamps.shift_timestamp(now, CAP)[:10]
        has_room = is_of_today and segment.status.st_size < SEGMENT_BYTES
        return has_room and not self._seals.is_sealed(segment.stream, name.filename, name.writer)

    def _check_name_unused(self, stream: str, name: SegmentName, folder: int) -> None:
        """Raise _NameTakenError if a deleted segment had the name of the one to be created."""
        # Check in this order, because another process may be creating it.
        if self.writer.has_ever_created_segment(stream, name.filename) and name not in list_segment_names(
            folder
        ):
            raise _NameTakenError(errno.ENOENT, "a deleted segment had its name", name.filename)

    def _sync_names(self, folders: list[int], status: os.stat_result) -> None:
        """Sync a segment's name to disk before this process first writes to it, whoever created it."""
        segment = file_identity(status)
        # An empty file is new, even if its inode is already known.
        is_known = segment in self._synced and status.st_size > 0
        if not self._syncs or is_known:
            return
        for folder in reversed(folders):
            disk.sync(folder)
        self.sync_store_names()
        self._synced.add(segment)

    def sync_store_names(self) -> None:
        """Sync the names of the log and the store."""
        sync_folder(self._store)
        # If the parent cannot be read, memlog did not create the store.
        with suppress(PermissionError):
            sync_folder(self._store.parent)


_unclosed: "weakref.WeakSet[Rotation]" = weakref.WeakSet()


@atexit.register
def _record_sizes_at_exit() -> None:
    for rotation in list(_unclosed):
        rotation.record_sizes(_SHORT_TIMEOUT)


class _NameTakenError(OSError):
    """Another file uses, or used, the name of a writer's segment."""


def _file_key(segment: LockedSegment) -> tuple[str, str, int]:
    return segment.stream, segment.name.filename, segment.status.st_ino


def _open_own_segment(name: SegmentName, flags: int, folder: int) -> int:
    """Open a writer's segment. Raises OSError; _NameTakenError if it is not a regular file."""
    try:
        return open_regular_file(name.filename, flags, folder=folder)
    except FileExistsError as error:
        raise _NameTakenError(errno.EEXIST, "another file has its name", name.filename) from error
