"""The seals files of a log: reads them, and seals finished segments, and erased ones again."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memlog.eventlog import disk, locks, timestamps
from memlog.eventlog.file_io import (
    closing,
    file_version,
    is_at,
    keeping_time,
    open_regular,
    overwrite_all,
    read_all,
    status_at,
    write_lines,
)
from memlog.eventlog.folders import sync_folder
from memlog.eventlog.layout import SEALS, seals_file, seals_files
from memlog.eventlog.seals.format import (
    FIRST,
    Held,
    Seal,
    SealLine,
    Seals,
    blanked,
    encoded,
    holding,
    link,
    seals_in,
)
from memlog.eventlog.seals.index import SealIndex, SealPlace
from memlog.eventlog.seals.measure import has_grown, made_durable, measured
from memlog.eventlog.seals.reader import bytes_of


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
        with closing(open_regular(log / name, disk.READ)) as fd:
            return seals_in(read_all(fd), name)
    except (FileNotFoundError, NotADirectoryError):
        return Seals([], {})
    except FileExistsError:
        return Seals([SealLine(name, 0, 0, b"", None, "no_file")], {})


class SealFiles:
    """All seals files of a log. Seals in the file of `writer` (`own`) alone; in the others it only blanks
    hashes of erased bytes.
    """

    def __init__(self, log: Path, writer: str = "") -> None:
        self.log = log
        self.writer = writer
        own = seals_file(writer)
        self.own = SealFile(log, own)
        self._files = {own: self.own}

    def refresh(self) -> None:
        """Read the files that other processes have changed. Raises OSError."""
        for name in seals_files(self.log):
            if name not in self._files:
                self._files[name] = SealFile(self.log, name)
        for file in self._files.values():
            file.refresh()

    def last(self, stream: str, segment: str) -> list[Seal]:
        """The last intact seal of a segment in each file that has one."""
        seals = (file.index.valid(stream, segment) for file in self._files.values())
        return [seal for seal in seals if seal is not None]

    def valid(self, stream: str, segment: str) -> Seal | None:
        """The valid seal of a segment."""
        last = self.last(stream, segment)
        return holding(last) if last else None

    def seal(
        self,
        stream: str,
        segments: Sequence[str],
        *,
        lock_timeout: float = locks.TIMEOUT,
        also_grown: bool = False,
    ) -> list[Seal]:
        """Seal those of a stream's `segments` that have no seal. Returns the new seals, once durable.

        The caller holds the lock of the newest. Segments are made durable before their seal: otherwise a
        power cut would turn unacknowledged bytes into a loss.

        also_grown: seal again what a writer without the lock has extended.

        Raises Busy, and OSError: then no seal is known to be stored.
        """
        self.refresh()
        before = {segment: self.valid(stream, segment) for segment in segments}
        due = [
            segment
            for segment, old in before.items()
            if old is None or (also_grown and has_grown(self.log, old))
        ]
        if not due:
            return []
        held = {segment: made_durable(self.log, stream, segment) for segment in due}
        with self.own.locked(lock_timeout) as fd:
            # Another process may have been faster.
            new = [segment for segment in due if self.valid(stream, segment) == before[segment]]
            return self.own.add(fd, [draft(stream, segment, held[segment]) for segment in new])

    def blank(self, stream: str, segment: str, *, lock_timeout: float = locks.TIMEOUT) -> None:
        """Blank the hashes of a segment's seals before its bytes are erased: they mark an unfinished erasure
        until `reseal`. Raises Busy and OSError.
        """
        self.refresh()
        # The matching ones last: a kill in between leaves one of them, or no hash at all.
        self._blank(stream, segment, lock_timeout, but=measured(self.log, stream, segment))
        self._blank(stream, segment, lock_timeout)

    def reseal(self, stream: str, segment: str, *, lock_timeout: float = locks.TIMEOUT) -> Seal | None:
        """Seal a segment again after an erasure, and blank the hashes of its other seals. May be run again
        after a crash at any moment. Raises as `seal`.

        Returns the valid seal; None if the segment had none, or is still arriving.
        """
        self.refresh()
        # Damaged lines count: they hold a hash, too.
        if not any(file.index.of(stream, segment) for file in self._files.values()):
            return None
        before = self.valid(stream, segment)
        held = made_durable(self.log, stream, segment)
        if before is not None and held.bytes < before.bytes:
            return None
        self._blank(stream, segment, lock_timeout, but=held)
        with self.own.locked(lock_timeout) as fd:
            for seal_of_file in self.last(stream, segment):
                if seal_of_file.is_of(held):
                    return seal_of_file
            (made,) = self.own.add(fd, [draft(stream, segment, held)])
            return made

    def _blank(self, stream: str, segment: str, lock_timeout: float, *, but: Held | None = None) -> None:
        """Blank the hash of each seal of a segment, except those of `but`. Raises Busy and OSError."""

        def due(file: SealFile) -> list[SealPlace]:
            places = file.index.of(stream, segment)
            return places if but is None else [place for place in places if not place.seal.is_of(but)]

        for name, file in self._files.items():
            if any(blanked(place.data) != place.data for place in due(file)):
                with file.locked(lock_timeout):
                    file.blank_hashes(due(file), keeps_time=name not in (SEALS, seals_file(self.writer)))


class SealFile:
    """One seals file, and its index as of the last `refresh` or `locked`. It is read once, and again only
    after another process has changed it, so the cost of sealing does not grow with the number of seals.
    """

    def __init__(self, log: Path, name: str) -> None:
        self.index = SealIndex()
        self._log = log
        self._path = log / name
        self._indexed: tuple[int, ...] | None = ()

    def refresh(self) -> None:
        """Read what other processes changed. Raises OSError."""
        self._index_again(status_at(self._path), lambda: bytes_of(self._log, self._path.name))

    @contextmanager
    def locked(self, timeout: float) -> Iterator[int]:
        """A context with a descriptor that appends to the locked file, made if missing. Raises Busy."""
        while True:
            with closing(open_regular(self._path, disk.APPEND | disk.CREATE)) as fd:
                locks.acquire(fd, f"{self._log.name}/{self._path.name}", timeout)
                status = disk.status(fd)
                if not is_at(self._path, status):
                    continue
                sync_folder(self._log)
                sync_folder(self._log.parent)
                self._index_again(status, lambda: read_all(fd))
                yield fd
                return

    def add(self, fd: int, drafts: list[Seal]) -> list[Seal]:
        """Append `drafts` to the locked file, chained to its last seal, and sync. Returns them as written."""
        last = self.index.last()
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

    def blank_hashes(self, places: list[SealPlace], *, keeps_time: bool) -> None:
        """Overwrite hashes of the locked file with spaces. keeps_time: see `keeping_time`. Raises OSError."""
        with closing(open_regular(self._path, disk.WRITE)) as fd, keeping_time(fd, keeps_time):
            for place in places:
                data = blanked(place.data)
                if data != place.data:
                    overwrite_all(fd, data, place.offset)
                    self.index.overwrite(place.offset, data)
            disk.sync_data(fd)
        # After `keeping_time`, which changes the file's times again.
        self._indexed = file_version(status_at(self._path))

    def _index_again(self, status: os.stat_result | None, read: Callable[[], bytes]) -> None:
        version = file_version(status)
        if version != self._indexed:
            self.index, self._indexed = SealIndex(read()), version

    def _write(self, fd: int, lines: list[bytes]) -> None:
        known = len(self.index)
        self._indexed = None
        write_lines(fd, lines)
        data, status = b"".join(lines), disk.status(fd)
        # Otherwise a torn line lies between: the file is read again.
        if status.st_size == known + len(data):
            self.index.extend(data)
            self._indexed = file_version(status)


def draft(stream: str, segment: str, held: Held, lost: int | None = None) -> Seal:
    """A seal without its place in a chain, for `SealFile.add`."""
    return Seal(stream, segment, held.bytes, held.lines, held.sha256, FIRST, "", lost)
