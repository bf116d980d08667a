"""Identifies the writer of each copy of a store. Writers never share a file: each has its own segments.

`<store>/writers/` has two files for each machine: one with the writer's name, one with the segments that it
created. Both are valid only in this copy: in any other (made by cp, rsync, git or a backup), the next append
creates a new writer, which is always safe. Losing the folder is also safe.

A restore, however, may write older bytes into the existing files, which keep their inodes. That is why the
second file also records the size of each segment, and the change time of the first file, which no program
can set.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from memlog.eventlog.escapes import decode_json
from memlog.eventlog.files import disk, folders, locks
from memlog.eventlog.files.file_io import closing_descriptor, status_at
from memlog.eventlog.files.folders import Origin, make_folder_and_parents, read_unless_copied
from memlog.eventlog.log.layout import WRITERS, SegmentRecord, is_writer_name
from memlog.eventlog.log.streams import SegmentName, parse_writer_in_filename

_FIRST = b"abcdefghijklmnopqrstuvwxyz"
_OTHERS = b"234567" + _FIRST
_LENGTH = 6
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/random/boot_id")
"""Files with the machine's id. The last one is the kernel's, since a container has no id of its own and gets
a new host name on each run."""
_NO_ID = (b"", b"uninitialized")
"""Contents of the file in system images; the second one stays until systemd has started once."""
_LONGEST_ID = 4096
_MOST_RETIRED = 4096
_SETTLING_NS = 3600 * 10**9
"""How long after its creation the name file may change, because file syncs set attributes of new files. A
later restore is detected; a program that keeps touching the file costs at most one name an hour."""
_BEGINNING = 512
"""The number of bytes to read from the segments file for its first two lines, which take fewer than 150."""
_SPARE_LINES = 1024
"""Once the segments file has more lines than this plus two per stream, it is rewritten with only the last
segment of each stream; the seals know the sizes of the others."""


class _Identity(msgspec.Struct, frozen=True):
    """A writer's name. retired: the earlier names of this copy."""

    writer: str
    retired: tuple[str, ...] = ()


class _Changed(msgspec.Struct, frozen=True):
    changed_ns: int


class Written(SegmentRecord, frozen=True):
    """A segment created by the writer, and its last recorded size in bytes."""

    inode: int
    generation: int | None
    bytes: int

    def matches_open_file(self, fd: int) -> bool:
        """Whether the open file is the recorded segment and is not shorter than recorded."""
        return (
            Origin(self.inode, self.generation) == Origin.of_open_file(fd)
            and disk.status_of_descriptor(fd).st_size >= self.bytes
        )


class Writer:
    """The writer of the store at `store` on this machine.

    lock_timeout: seconds to wait while another process creates the name.
    """

    def __init__(self, store: Path, *, lock_timeout: float = locks.TIMEOUT) -> None:
        self._lock_timeout = lock_timeout
        self._folder = store / WRITERS
        self._path = self._folder / _hash_machine_id()
        self._segments = _OwnSegments(self._path.with_suffix(".segments"))
        self._known: tuple[_Identity, int, int] | None = None

    def find_or_create_name(self) -> str:
        """Return the writer's name, creating it if this machine has none. Raises Busy and OSError."""
        return (self._read_proven_identity() or self._create_identity(None)).writer

    def read_own_names(self) -> tuple[str, ...]:
        """Return the writer's name, followed by its retired names; () before the first append."""
        identity = self._read_proven_identity()
        return () if identity is None else (identity.writer, *identity.retired)

    def retire_name(self, name: str) -> None:
        """Replace the writer's name `name` with a new one, if it is still in use. Raises Busy and OSError."""
        self._create_identity(name)

    def has_ever_created_segment(self, stream: str, segment: str) -> bool:
        """Whether this writer ever created a segment with this name; copies may have too. Raises OSError."""
        return self._segments.find_last_record(stream, segment) is not None

    def has_created_open_segment(self, stream: str, segment: str, fd: int) -> bool:
        """Whether the open, locked segment is the file created by the writer and not shorter than recorded.

        Records a new, empty segment first. Raises Busy and OSError.
        """
        known = self._segments.find_last_record(stream, segment)
        if known is None and disk.status_of_descriptor(fd).st_size == 0:
            self.record_size(stream, segment, fd, lock_timeout=self._lock_timeout)
            known = self._segments.find_last_record(stream, segment)
        return known is not None and known.matches_open_file(fd)

    def record_size(
        self, stream: str, segment: str, fd: int, size: int | None = None, *, lock_timeout: float
    ) -> None:
        """Record that an open segment has `size` bytes (None: its current size). Raises Busy and OSError."""
        here = Origin.of_open_file(fd)
        size = disk.status_of_descriptor(fd).st_size if size is None else size
        self._append_record(Written(stream, segment, here.inode, here.generation, size), lock_timeout)

    def record_growth(self, stream: str, segment: str, size: int, *, lock_timeout: float) -> None:
        """Record the new size of a segment, unless it belongs to a retired name of the writer.

        The loss of such a segment may have been accepted. Raises Busy and OSError.
        """
        known = self._segments.find_last_record(stream, segment)
        if known is not None and parse_writer_in_filename(segment) == self.find_or_create_name():
            self._append_record(replace(known, bytes=size), lock_timeout)

    def recorded_segments(self) -> dict[tuple[str, str], Written]:
        """Return the recorded segments of this copy, under all its names; most sealed ones are left out.

        Raises OSError.
        """
        return self._segments.list_last_records()

    def set_recorded_sizes(self, sizes: dict[tuple[str, str], int]) -> None:
        """Set the recorded sizes of segments to `sizes`. Raises Busy and OSError."""
        if sizes.keys() & self.recorded_segments().keys():
            with self._locking_identity(self._lock_timeout):
                self._segments.replace_recorded_sizes(sizes)

    def _append_record(self, written: Written, lock_timeout: float) -> None:
        with self._locking_identity(lock_timeout):
            self._segments.append_record(written)

    def _read_proven_identity(self) -> _Identity | None:
        """Return the identity if its file is provably the original; None if it may be a copy."""
        try:
            status = disk.status_of_path(self._path)
            if self._known is not None and self._known[1:] == (status.st_ino, status.st_ctime_ns):
                return self._known[0]
            identity = decode_json(read_unless_copied(self._path).partition(b"\n")[2], _Identity)
            changed_ns = self._segments.read_change_time_ns()
        except OSError:
            return None
        if identity is None or not is_writer_name(identity.writer) or changed_ns is None:
            return None
        # A hard link is a copy, too.
        if status.st_nlink > 1 or abs(status.st_ctime_ns - changed_ns) > _SETTLING_NS:
            return None
        self._known = identity, status.st_ino, status.st_ctime_ns
        return identity

    def _create_identity(self, retired: str | None) -> _Identity:
        self._known = None
        make_folder_and_parents(self._folder)
        with self._locking_identity(self._lock_timeout):
            identity = self._read_proven_identity()
            # Another process may have been faster.
            if identity is None:
                return self._write_identity(())
            if identity.writer == retired:
                return self._write_identity((*identity.retired, identity.writer)[-_MOST_RETIRED:])
            return identity

    def _write_identity(self, retired: tuple[str, ...]) -> _Identity:
        identity = _Identity(writer_name_from_bytes(os.urandom(_LENGTH)), retired)
        folders.replace_lines(self._path, [identity])
        # Only now, because renaming a file sets its change time.
        self._segments.replace_all_records(
            disk.status_of_path(self._path).st_ctime_ns, self._segments.list_last_records().values()
        )
        return identity

    @contextmanager
    def _locking_identity(self, timeout: float) -> Iterator[None]:
        with closing_descriptor(disk.open(self._folder, disk.FOLDER)) as folder:
            locks.lock_file(folder, str(self._folder), timeout)
            yield


class _OwnSegments:
    """The segments file at `path`, to which other processes may append. The last line for a segment counts.

    The file's second line has the change time of the file with the writer's name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clear_index()

    def _clear_index(self) -> None:
        self._inode = self._size = self._lines = 0
        self._is_torn = False
        self._changed: _Changed | None = None
        self._of_segment: dict[tuple[str, str], Written] = {}
        self._of_writer: dict[tuple[str, str | None], Written] = {}

    def replace_all_records(self, changed_ns: int, written: Iterable[Written]) -> None:
        """Replace the file's contents. Raises OSError."""
        folders.replace_lines(self._path, [_Changed(changed_ns), *written])
        self._clear_index()
        self._read_new_lines()

    def read_change_time_ns(self) -> int | None:
        """Return the recorded change time; None if the file is missing or a copy. Raises OSError."""
        _, _, lines = read_unless_copied(self._path, _BEGINNING).partition(b"\n")
        changed = decode_json(lines.partition(b"\n")[0], _Changed)
        return None if changed is None else changed.changed_ns

    def list_last_records(self) -> dict[tuple[str, str], Written]:
        """Return the last record of each segment, keyed by (stream, segment). Raises OSError."""
        self._read_new_lines()
        return self._of_segment

    def find_last_record(self, stream: str, segment: str) -> Written | None:
        """Return a segment's last record, or None. Raises OSError."""
        if (stream, segment) not in self._of_segment:
            self._read_new_lines()
        return self._of_segment.get((stream, segment))

    def replace_recorded_sizes(self, sizes: dict[tuple[str, str], int]) -> None:
        """Replace the recorded sizes of segments; the caller must hold the lock. Raises OSError."""
        accepted = [
            replace(each, bytes=sizes.get(name, each.bytes))
            for name, each in self.list_last_records().items()
        ]
        # Without the change time the name is not proven, and the next append mints a new one.
        self.replace_all_records(0 if self._changed is None else self._changed.changed_ns, accepted)

    def append_record(self, written: Written) -> None:
        """Record a segment's size; the caller must hold the lock. Raises OSError."""
        self._read_new_lines()
        if self._changed is not None and self._lines > 2 * len(self._of_writer) + _SPARE_LINES:
            self.replace_all_records(self._changed.changed_ns, self._of_writer.values())
        added = folders.append_lines(self._path, [written], is_torn=self._is_torn)
        if self._is_torn:
            self._read_new_lines()
        else:
            self._size += len(added)
            self._index_record(written)

    def _read_new_lines(self) -> None:
        status = status_at(self._path)
        if status is None:
            self._clear_index()
            return
        if (status.st_ino, status.st_size) == (self._inode, self._size):
            return
        data = read_unless_copied(self._path)
        end = data.rfind(b"\n") + 1
        if status.st_ino != self._inode or end < self._size:
            self._clear_index()
        for line in data[self._size : end].split(b"\n"):
            if (written := decode_json(line, Written)) is not None:
                self._index_record(written)
            elif self._changed is None:
                self._changed = decode_json(line, _Changed)
        self._inode, self._size, self._is_torn = status.st_ino, end, end < len(data)

    def _index_record(self, written: Written) -> None:
        self._lines += 1
        known = self._of_segment.get(written.name)
        # When two processes append, the one that wrote first may record last.
        if known is not None and known.inode == written.inode and known.bytes > written.bytes:
            return
        self._of_segment[written.name] = written
        made = written.stream, parse_writer_in_filename(written.segment)
        if made not in self._of_writer or _sort_key_by_age(self._of_writer[made]) <= _sort_key_by_age(
            written
        ):
            self._of_writer[made] = written


def _sort_key_by_age(written: Written) -> tuple[int, str]:
    name = SegmentName.parse(written.segment)
    return (0, written.segment) if name is None else (name.number, name.day)


def writer_name_from_bytes(drawn: bytes) -> str:
    """Make a writer's name from six bytes; it starts with a letter, unlike a segment number."""
    first, others = drawn[0], drawn[1:_LENGTH]
    return chr(_FIRST[first % len(_FIRST)]) + "".join(chr(_OTHERS[byte % len(_OTHERS)]) for byte in others)


def _hash_machine_id() -> str:
    """Return a 32-bit hash of the machine's id or host name, which distinguishes a store's machines."""
    for path in _MACHINE_IDS:
        with suppress(OSError), closing_descriptor(disk.open(path, disk.READ, follow=True)) as fd:
            machine_id = disk.read(fd, _LONGEST_ID, 0).strip()
            if machine_id not in _NO_ID:
                return f"{zlib.crc32(machine_id):08x}"
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
