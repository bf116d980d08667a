"""One seals file: reads it, locks it, appends seals and blanks hashes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog import disk, locks, timestamps
from memlog.eventlog.file_io import (
    file_version,
    identity,
    keeping_time,
    overwrite_all,
    read_all,
    write_lines,
)
from memlog.eventlog.folders import sync_folder
from memlog.eventlog.layout import seals_files
from memlog.eventlog.seals.format import FIRST, Seal, SealLine, Seals, blanked, encoded, link, seals_in
from memlog.eventlog.seals.index import SealIndex, SealPlace
from memlog.eventlog.seals.reader import bytes_of, opened

LOCK_TIMEOUT = 10.0


def read_seals(log: Path) -> Seals:
    """The seals in all files of `log`, each a chain of its own, with their damage. Raises OSError."""
    seals = Seals([], {})
    for name in seals_files(log):
        in_file = _read(log, name)
        seals.lines.extend(in_file.lines)
        for segment, last in in_file.last.items():
            seals.last.setdefault(segment, []).extend(last)
    return seals


def _read(log: Path, name: str) -> Seals:
    try:
        with opened(log, disk.READ, name) as fd:
            return seals_in(read_all(fd), name)
    except (FileNotFoundError, NotADirectoryError):
        return Seals([], {})
    except FileExistsError:
        return Seals([SealLine(name, 0, 0, b"", None, "no_file")], {})


class SealFile:
    """One seals file, indexed. It is read once, and again only after another process has changed it, so the
    cost of sealing does not grow with the number of seals.
    """

    def __init__(self, log: Path, name: str) -> None:
        self.log = log
        self._name = name
        self._index = SealIndex()
        self._indexed: tuple[int, ...] = ()

    def of(self, stream: str, segment: str) -> list[SealPlace]:
        """All seals of a segment, damaged lines included, as of the last `refresh` or `locked`."""
        return self._index.of(stream, segment)

    def valid(self, stream: str, segment: str) -> Seal | None:
        """The last intact seal of a segment, as of the last `refresh` or `locked`."""
        return self._index.valid(stream, segment)

    def refresh(self) -> None:
        """Read what other processes changed. Raises OSError."""
        try:
            status = disk.look(self.log / self._name)
        except (FileNotFoundError, NotADirectoryError):
            self._index, self._indexed = SealIndex(), ()
            return
        self._index_again(status, lambda: bytes_of(self.log, self._name))

    @contextmanager
    def locked(self, timeout: float) -> Iterator[int]:
        """A context with a descriptor that appends to the locked file, which is created if it is missing.

        Raises:
            Busy: another process held it for too long. OSError: it cannot be created or read.
        """
        while True:
            with opened(self.log, disk.APPEND | disk.CREATE, self._name) as fd:
                locks.acquire(fd, f"{self.log.name}/{self._name}", timeout)
                if not _has_path(fd, self.log / self._name):
                    continue
                sync_folder(self.log)
                sync_folder(self.log.parent)
                self._index_again(disk.status(fd), lambda: read_all(fd))
                yield fd
                return

    def add(self, fd: int, drafts: list[Seal]) -> list[Seal]:
        """Append `drafts` to the locked file, chained to its last seal, and sync. Returns the written seals.

        Raises OSError.
        """
        last = self._index.last()
        prev = FIRST if last is None else link(last.data)
        at = timestamps.now() if last is None else max(timestamps.now(), last.seal.at)
        made, lines = [], []
        for item in drafts:
            made.append(msgspec.structs.replace(item, prev=prev, at=at))
            lines.append(encoded(made[-1]))
            prev = link(lines[-1][:-1])
        if lines:
            self._write(fd, lines)
        # Even without drafts: another process may have been killed between its write and its sync.
        disk.sync_data(fd)
        return made

    def blank_hashes(self, places: list[SealPlace], *, keeps_time: bool = False) -> None:
        """Overwrite hashes of the locked file with spaces, in place.

        keeps_time: see `keeping_time`.

        Raises OSError.
        """
        with opened(self.log, disk.WRITE, self._name) as fd, keeping_time(fd, keeps_time):
            for place in places:
                data = blanked(place.data)
                if data != place.data:
                    overwrite_all(fd, data, place.offset)
                    self._index.overwrite(place.offset, data)
            disk.sync_data(fd)
        # After `keeping_time`, which changes the file's times again.
        self._indexed = file_version(disk.look(self.log / self._name))

    def _index_again(self, status: os.stat_result, read: Callable[[], bytes]) -> None:
        if file_version(status) != self._indexed:
            self._index, self._indexed = SealIndex(read()), file_version(status)

    def _write(self, fd: int, lines: list[bytes]) -> None:
        known = len(self._index)
        self._indexed = ()
        write_lines(fd, lines)
        data, status = b"".join(lines), disk.status(fd)
        # Otherwise a torn line lies between: the file is read again.
        if status.st_size == known + len(data):
            self._index.extend(data)
            self._indexed = file_version(status)


def _has_path(fd: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return identity(disk.look(path)) == identity(disk.status(fd))
    return False
