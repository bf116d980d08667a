"""The writer of a copy of a store. Each has its own segments, so that no two copies write to one file.

`<store>/writers/` has two files for each machine: the writer's name, and the segments that it has made. Both
are valid in this copy alone (`copy_files`): in another one (cp, rsync, git, a restored backup) the next
append mints a new writer, which is always safe. Losing the folder is safe, too.

A restore may also write older bytes into existing files and keep their inodes. So the second file has the
size of each segment, and the change time of the first file, which no program can set.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog import copy_files, disk, locks
from memlog.eventlog.copy_files import decoded, lines_in
from memlog.eventlog.file_io import closing
from memlog.eventlog.folders import make_path
from memlog.eventlog.layout import WRITERS, is_writer
from memlog.eventlog.own_segments import OwnSegments

_FIRST = b"abcdefghijklmnopqrstuvwxyz"
_OTHERS = b"234567" + _FIRST
_LENGTH = 6
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_LOCK_TIMEOUT = 10.0
_LONGEST_ID = 4096
_MOST_RETIRED = 4096
_SETTLING_NS = 3600 * 10**9
"""How long after its creation the file of a writer's name may change: file syncs set attributes of new files.
A later restore is noticed; a program that touches files costs at most one name an hour."""


class _Identity(msgspec.Struct, frozen=True):
    """retired: former names of this copy."""

    writer: str
    retired: tuple[str, ...] = ()


class Writer:
    """The writer of the store at `store` on this machine.

    lock_timeout: seconds to wait for another process that mints it.
    """

    def __init__(self, store: Path, *, lock_timeout: float = _LOCK_TIMEOUT) -> None:
        self._lock_timeout = lock_timeout
        self._folder = store / WRITERS
        self._path = self._folder / _machine()
        self._segments = OwnSegments(self._path.with_suffix(".segments"))
        self._known: tuple[_Identity, int, int] | None = None

    def name(self) -> str:
        """The writer's name; minted if this machine has none in this copy.

        Raises:
            Busy: another process was minting it for too long. OSError: it cannot be stored.
        """
        identity = self._proven() or self._minted(None)
        return identity.writer

    def known_name(self) -> str | None:
        """The writer's name; None if the next append will mint one."""
        identity = self._proven()
        return None if identity is None else identity.writer

    def own_names(self) -> tuple[str, ...]:
        """The writer's name, then its retired names; () before the first append."""
        identity = self._proven()
        return () if identity is None else (identity.writer, *identity.retired)

    def retire(self, name: str) -> None:
        """Replace the writer `name` by a new one. Raises as `name`."""
        self._minted(name)

    def has_made(self, stream: str, segment: str) -> bool:
        """Whether the writer has made a segment of this name, which other copies may have. Raises OSError."""
        return self._segments.is_known(stream, segment)

    def has_written(self, stream: str, segment: str, fd: int) -> bool:
        """Whether the open, locked segment is the file that the writer made, and no shorter than recorded.
        Records a new empty one. Raises Busy and OSError.
        """
        if disk.status(fd).st_size == 0 and not self._segments.is_known(stream, segment):
            self.remember(stream, segment, fd, lock_timeout=self._lock_timeout)
        return self._segments.is_intact(stream, segment, fd)

    def remember(self, stream: str, segment: str, fd: int, *, lock_timeout: float) -> None:
        """Record the size of the open segment. Raises Busy and OSError."""
        with self._locked(lock_timeout):
            self._segments.add(stream, segment, fd)

    def _proven(self) -> _Identity | None:
        """The identity, if its file is the original and no copy."""
        try:
            status = disk.look(self._path)
            if self._known is not None and self._known[1:] == (status.st_ino, status.st_ctime_ns):
                return self._known[0]
            identity = decoded(lines_in(self._path).partition(b"\n")[2], _Identity)
            changed_ns = self._segments.changed_ns()
        except OSError:
            return None
        if identity is None or not is_writer(identity.writer) or changed_ns is None:
            return None
        # A hard link is a copy, too.
        if status.st_nlink > 1 or abs(status.st_ctime_ns - changed_ns) > _SETTLING_NS:
            return None
        self._known = identity, status.st_ino, status.st_ctime_ns
        return identity

    def _minted(self, retired: str | None) -> _Identity:
        self._known = None
        make_path(self._folder)
        with self._locked(self._lock_timeout):
            identity = self._proven()
            # Another process may have been faster.
            if identity is None:
                return self._write(())
            if identity.writer == retired:
                return self._write((*identity.retired, identity.writer)[-_MOST_RETIRED:])
            return identity

    def _write(self, retired: tuple[str, ...]) -> _Identity:
        identity = _Identity(_new_name(), retired)
        copy_files.replace(self._path, [identity])
        # Known only now: renaming a file changes its time.
        self._segments.begin(disk.look(self._path).st_ctime_ns)
        return identity

    @contextmanager
    def _locked(self, timeout: float) -> Iterator[None]:
        with closing(disk.open(self._folder, disk.FOLDER)) as folder:
            locks.acquire(folder, str(self._folder), timeout)
            yield


def _new_name() -> str:
    return name_from(os.urandom(_LENGTH))


def name_from(drawn: bytes) -> str:
    """The writer's name made of the first six bytes. It begins with a letter, so it is never a segment's
    number."""
    first, others = drawn[0], drawn[1:_LENGTH]
    return chr(_FIRST[first % len(_FIRST)]) + "".join(chr(_OTHERS[byte % len(_OTHERS)]) for byte in others)


def _machine() -> str:
    """Identifies the machine among those that share a store, by 32 bits of its id."""
    for path in _MACHINE_IDS:
        with suppress(OSError), closing(disk.open(path, disk.READ, follow=True)) as fd:
            machine_id = disk.read(fd, _LONGEST_ID, 0).strip()
            if machine_id:
                return f"{zlib.crc32(machine_id):08x}"
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
