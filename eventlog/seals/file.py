"""`log/seals.jsonl`: read, locked, added to, and hashes of it blanked."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog import disk, locks, privacy, timestamps
from memlog.eventlog.folders import sync_folder
from memlog.eventlog.seals.lines import FIRST, Seal, SealLine, Seals, blanked, encoded, link, seals_in
from memlog.eventlog.streams import SEALS
from memlog.eventlog.writing import check_regular, identity, overwrite_all, write_lines

LOCK_TIMEOUT = 10.0
_READ_BLOCK = 1024 * 1024


def read_seals(log: Path) -> Seals:
    """What stands in the seals of `log`, with all that is wrong with it. No seals where there is no file.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with opened(log, disk.READ) as fd:
            return seals_in(_all_of(fd))
    except (FileNotFoundError, NotADirectoryError):
        return Seals([], {})
    except FileExistsError:
        return Seals([SealLine(0, 0, b"", None, "no_file")], {})


def read_bytes(log: Path) -> bytes:
    """The bytes of the seals; nothing, too, where the file is none: `read_seals` tells of it.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with opened(log, disk.READ) as fd:
            return _all_of(fd)
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        return b""


class SealWatch:
    """Says whether a segment is sealed, to who asks at each append: a look at the file's status, and where
    that has changed one search of its bytes.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen: tuple[int, ...] = ()
        self._unsealed: set[tuple[str, str]] = set()

    def is_sealed(self, stream: str, segment: str) -> bool:
        """Whether `segment` gets no more lines. Who asks holds its lock, so that the answer stays true.

        Raises:
            OSError: the seals cannot be read.
        """
        try:
            status = disk.look(self._log / SEALS)
        except FileNotFoundError:
            return False
        seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if seen != self._seen:
            self._unsealed.clear()
            self._seen = seen
        if (stream, segment) not in self._unsealed:
            if _says(self._log, stream, segment):
                return True
            self._unsealed.add((stream, segment))
        return False


@contextmanager
def locked(log: Path, timeout: float) -> Iterator[tuple[int, Seals]]:
    """seals.jsonl, open to append and locked, and what stands in it; made where it does not stand, its name
    durable.

    Raises:
        Busy: another process held it for too long.
        OSError: it cannot be made or read.
    """
    while True:
        with opened(log, disk.APPEND | disk.CREATE) as fd:
            locks.acquire(fd, f"{log.name}/{SEALS}", timeout)
            if not _still_stands(log, fd):
                continue
            sync_folder(log)
            sync_folder(log.parent)
            yield fd, seals_in(_all_of(fd))
            return


def add(fd: int, before: Seals, drafts: list[Seal]) -> list[Seal]:
    """Append `drafts` to the locked file, behind what stands there, and sync; return what was written.

    Raises:
        OSError: it cannot be written.
    """
    says = [line for line in before.lines if line.seal is not None]
    prev = link(says[-1].data) if says else FIRST
    at = max([timestamps.now(), *(line.seal.at for line in says[-1:] if line.seal is not None)])
    made, lines = [], []
    for item in drafts:
        made.append(msgspec.structs.replace(item, prev=prev, at=at))
        lines.append(encoded(made[-1]))
        prev = link(lines[-1][:-1])
    if lines:
        write_lines(fd, lines)
    # Also where nothing is new: another process may have been killed between its write and its sync.
    disk.sync_data(fd)
    return made


def blank_hashes(log: Path, lines: list[SealLine]) -> None:
    """Take the hashes out of `lines` of the locked file, in place: not a byte moves.

    Raises:
        OSError: it cannot be written.
    """
    with opened(log, disk.WRITE) as fd:
        for line in lines:
            data = blanked(line.data)
            if data != line.data:
                overwrite_all(fd, data, line.offset)
        disk.sync_data(fd)


def _all_of(fd: int) -> bytes:
    blocks, size = [], 0
    while block := disk.read(fd, _READ_BLOCK, size):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


def _says(log: Path, stream: str, segment: str) -> bool:
    """Whether there is a seal of `segment`. Where no line looks like one, none is decoded."""
    data = read_bytes(log)
    beginning = msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
    return beginning in data and (stream, segment) in seals_in(data).standing


def _still_stands(log: Path, fd: int) -> bool:
    with suppress(FileNotFoundError):
        standing = disk.look(log / SEALS)
        return (standing.st_dev, standing.st_ino) == identity(fd)
    return False


@contextmanager
def opened(log: Path, flags: int) -> Iterator[int]:
    """A descriptor of seals.jsonl.

    Raises:
        FileExistsError: it is a link, a folder, a pipe or a device.
        OSError: it is not there, or cannot be opened.
    """
    fd = _open_file(log, flags)
    try:
        check_regular(fd)
        yield fd
    finally:
        disk.close(fd)


def _open_file(log: Path, flags: int) -> int:
    try:
        return (privacy.open_file if flags & disk.CREATE else disk.open)(log / SEALS, flags)
    except OSError as error:
        # A link, which is not followed; a socket; a folder that is to be written.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{SEALS} is no regular file") from error
        raise
