"""A file of seals: read, locked, added to, and hashes of it blanked."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog import disk, locks, timestamps
from memlog.eventlog.file_io import identity, keeping_time, overwrite_all, write_lines
from memlog.eventlog.folders import sync_folder
from memlog.eventlog.layout import seals_files
from memlog.eventlog.seals.format import FIRST, Seal, SealLine, Seals, blanked, encoded, link, seals_in
from memlog.eventlog.seals.index import SealIndex, SealPlace
from memlog.eventlog.seals.reader import all_of, bytes_of, opened, seen

LOCK_TIMEOUT = 10.0


def read_seals(log: Path) -> Seals:
    """The seals in all files of `log`, each with a chain of its own, and all that is wrong with them.

    Raises:
        OSError: it cannot be read.
    """
    found = Seals([], {})
    for name in seals_files(log):
        one = _read(log, name)
        found.lines.extend(one.lines)
        for segment, seals in one.last.items():
            found.last.setdefault(segment, []).extend(seals)
    return found


def _read(log: Path, name: str) -> Seals:
    try:
        with opened(log, disk.READ, name) as fd:
            return seals_in(all_of(fd), name)
    except (FileNotFoundError, NotADirectoryError):
        return Seals([], {})
    except FileExistsError:
        return Seals([SealLine(name, 0, 0, b"", None, "no_file")], {})


class SealFile:
    """One file of seals, for a caller that adds some: it is read once, and again only where another process
    changed it. So the cost of sealing does not grow with the number of seals that stand.
    """

    def __init__(self, log: Path, name: str) -> None:
        self.log = log
        self._name = name
        self._index = SealIndex()
        self._indexed: tuple[int, ...] = ()

    def of(self, stream: str, segment: str) -> list[SealPlace]:
        """Every seal of one segment, also from a damaged line, as of the last `refresh` or `locked`."""
        return self._index.of(stream, segment)

    def standing(self, stream: str, segment: str) -> Seal | None:
        """The last whole seal of one segment, as of the last `refresh` or `locked`."""
        return self._index.standing(stream, segment)

    def refresh(self) -> None:
        """Read what other processes changed.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            status = disk.look(self.log / self._name)
        except (FileNotFoundError, NotADirectoryError):
            self._index, self._indexed = SealIndex(), ()
            return
        self._index_again(status, lambda: bytes_of(self.log, self._name))

    @contextmanager
    def locked(self, timeout: float) -> Iterator[int]:
        """A descriptor that appends to the locked file; made where it does not stand, its name durable.

        Raises:
            Busy: another process held it for too long.
            OSError: it cannot be made or read.
        """
        while True:
            with opened(self.log, disk.APPEND | disk.CREATE, self._name) as fd:
                locks.acquire(fd, f"{self.log.name}/{self._name}", timeout)
                if not _still_stands(self.log / self._name, fd):
                    continue
                sync_folder(self.log)
                sync_folder(self.log.parent)
                self._index_again(disk.status(fd), lambda: all_of(fd))
                yield fd
                return

    def add(self, fd: int, drafts: list[Seal]) -> list[Seal]:
        """Append `drafts` to the locked file, chained to its last seal, and sync; return what was written.

        Raises:
            OSError: it cannot be written.
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
        # Also where nothing is new: another process may have been killed between its write and its sync.
        disk.sync_data(fd)
        return made

    def blank_hashes(self, places: list[SealPlace], *, keeps_time: bool = False) -> None:
        """Take the hashes out of seals of the locked file, in place: not a byte moves.

        keeps_time: see `keeping_time`.

        Raises:
            OSError: it cannot be written.
        """
        with opened(self.log, disk.WRITE, self._name) as fd, keeping_time(fd, keeps_time):
            for place in places:
                data = blanked(place.data)
                if data != place.data:
                    overwrite_all(fd, data, place.offset)
                    self._index.overwrite(place.offset, data)
            disk.sync_data(fd)
        # Behind `keeping_time`, which changes the file's times once more.
        self._indexed = seen(disk.look(self.log / self._name))

    def _index_again(self, status: os.stat_result, read: Callable[[], bytes]) -> None:
        if seen(status) != self._indexed:
            self._index, self._indexed = SealIndex(read()), seen(status)

    def _write(self, fd: int, lines: list[bytes]) -> None:
        known = len(self._index)
        self._indexed = ()
        write_lines(fd, lines)
        data, status = b"".join(lines), disk.status(fd)
        # Otherwise a torn line stands between: read the file again.
        if status.st_size == known + len(data):
            self._index.extend(data)
            self._indexed = seen(status)


def _still_stands(path: Path, fd: int) -> bool:
    with suppress(FileNotFoundError):
        standing = disk.look(path)
        return identity(standing) == identity(disk.status(fd))
    return False
