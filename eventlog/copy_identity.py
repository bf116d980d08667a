"""The writer of a copy of a store: each has segments of its own, so that no two copies write to one file.

`<store>/writers/` holds two files for each machine that writes to the store: its writer's name, and the
segments that it has made. Both speak of this copy alone (`copy_files`): in another one (cp, rsync, git, a
restored backup) the next append mints a new writer, which is always safe. To lose the folder is safe, too.

A restore may also write older bytes into the files that there are, and keep their inodes. So the second file
says how long each segment was, and when the first file changed last, a time that no program can set.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memlog.eventlog import copy_files, disk, locks
from memlog.eventlog.copy_files import decoded, lines_in
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
"""How long after its making the file of a writer's name may change: file syncs set attributes of new files. A
restore that comes later is seen, and a program that touches files costs a name an hour at most."""


class _Identity(msgspec.Struct, frozen=True):
    """retired: names given up here."""

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
        """The writer's name; minted where the store has none of this machine, or a copied one.

        Raises:
            Busy: another process was minting it for too long. OSError: it cannot be stored.
        """
        identity = self._proven() or self._minted(None)
        return identity.writer

    def known_name(self) -> str | None:
        """The writer's name; None where the next append will mint one."""
        identity = self._proven()
        return None if identity is None else identity.writer

    def own_names(self) -> tuple[str, ...]:
        """The writer's name and those that it has given up: nobody else has appended under them here."""
        identity = self._proven()
        return () if identity is None else (identity.writer, *identity.retired)

    def retire(self, name: str) -> None:
        """Mint another writer in the place of the one that has this `name`.

        Raises as `name`.
        """
        self._minted(name)

    def has_made(self, stream: str, segment: str) -> bool:
        """Whether the writer has made a segment of this name in this copy, so that other copies may have it.

        Raises:
            OSError: what was made cannot be read.
        """
        return self._segments.is_known(stream, segment)

    def has_written(self, stream: str, segment: str, fd: int) -> bool:
        """Whether the open segment, which the caller has locked, is the file that the writer made under this
        name, and no shorter than it left it. An empty one of a new name is made now.

        Raises:
            Busy, OSError: what was written cannot be read, or not be stored.
        """
        if disk.status(fd).st_size == 0 and not self._segments.is_known(stream, segment):
            self.remember(stream, segment, fd, lock_timeout=self._lock_timeout)
        return self._segments.is_intact(stream, segment, fd)

    def remember(self, stream: str, segment: str, fd: int, *, lock_timeout: float) -> None:
        """Note how long the open segment is. Raises as `has_written`."""
        with self._locked(lock_timeout):
            self._segments.add(stream, segment, fd)

    def _proven(self) -> _Identity | None:
        """The identity of which the file is the original."""
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
        # Known only now: to rename a file changes its time.
        self._segments.begin(disk.look(self._path).st_ctime_ns)
        return identity

    @contextmanager
    def _locked(self, timeout: float) -> Iterator[None]:
        folder = disk.open(self._folder, disk.FOLDER)
        try:
            locks.acquire(folder, str(self._folder), timeout)
            yield
        finally:
            disk.close(folder)


def _new_name() -> str:
    return name_from(os.urandom(_LENGTH))


def name_from(drawn: bytes) -> str:
    """The name of a writer that the first six of these bytes make.

    Its first character is a letter, so that no name can be read as a segment's number.
    """
    first, others = drawn[0], drawn[1:_LENGTH]
    return chr(_FIRST[first % len(_FIRST)]) + "".join(chr(_OTHERS[byte % len(_OTHERS)]) for byte in others)


def _machine() -> str:
    """Tells the machines apart that share a store; of the machine's id it tells no more than 32 bits."""
    for path in _MACHINE_IDS:
        try:
            fd = disk.open(path, disk.READ, follow=True)
        except OSError:
            continue
        try:
            found = disk.read(fd, _LONGEST_ID, 0).strip()
        except OSError:
            continue
        finally:
            disk.close(fd)
        if found:
            return f"{zlib.crc32(found):08x}"
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
