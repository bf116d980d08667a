"""Seals: what a segment held when it got no more lines. `log/seals.jsonl` has a line a seal, chained.

docs/storage/jsonl-format.md, "Seals", has a worked example in real bytes.
"""

import errno
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from memlog.eventlog import disk, locks, timestamps
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.streams import SEALS
from memlog.eventlog.writing import check_regular, identity, write_lines

BLANK = " " * 64
"""In the place of a hash whose bytes were erased."""

FIRST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The `prev` of a file's first line: the sha256 of nothing."""

LOCK_TIMEOUT = 10.0

# Texts, which `re` compiles when they are first needed: `append` seals once a day. A quote in a name is
# escaped, so that neither can be part of one.
_HASH = rb',"sha256":"([0-9a-f ]{64})"'
_CRC = rb',"crc":"([0-9a-f]{8})"\}$'
_WHOLE_CRC = rb',"crc":"[0-9a-f]{8}".'
_TRAILER_LENGTH = len(b',"crc":"00000000"}')
_READ_BLOCK = 1024 * 1024

Damage = Literal[
    "torn",  # the beginning of a seal: a writer was killed; no damage
    "bad_crc",
    "no_seal",  # neither a seal nor the beginning of one
    "broken_chain",  # a line before it was changed, removed or put in
    "second_seal",  # its segment has one, and neither an erasure, nor growth, nor a loss is why
    "no_file",  # seals.jsonl is a link, a folder or a device
]
"""What is wrong with a line of seals.jsonl, or with the file."""

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f ]{64}$")]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Held(msgspec.Struct, frozen=True):
    """What a segment holds. lines: with one that has no newline."""

    bytes: int
    lines: int
    sha256: str


class Seal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a segment held when it was sealed.

    lines: with one that has no newline. sha256: of all its bytes; `BLANK` where some were erased since.
    prev: `link` of the line before. at: when it was sealed.
    lost: how many bytes less than the seal before it says; a person has accepted that.
    """

    stream: str
    segment: str
    bytes: _Count
    lines: _Count
    sha256: _Hash
    prev: _Hash
    at: str
    lost: _Count | None = None

    @property
    def name(self) -> tuple[str, str]:
        """Stream and segment."""
        return self.stream, self.segment

    @property
    def is_blank(self) -> bool:
        """Whether an erasure has taken its hash, and no new seal has come: it is not finished."""
        return self.sha256 == BLANK

    def is_of(self, held: Held) -> bool:
        """Whether `held` is what it says."""
        return (self.bytes, self.lines, self.sha256) == (held.bytes, held.lines, held.sha256)


class SealLine(msgspec.Struct, frozen=True):
    """A line of seals.jsonl that is not blank.

    data: its bytes without the newline. seal: what it says, also where it is damaged; None where it says
    nothing. damage: what is wrong with it.
    """

    number: int
    offset: int
    data: bytes
    seal: Seal | None
    damage: Damage | None

    @property
    def counts(self) -> bool:
        """Whether its seal is to be believed, whatever stands before it."""
        return self.seal is not None and self.damage != "bad_crc"


class Seals(msgspec.Struct, frozen=True):
    """All of seals.jsonl. standing: of each (stream, segment) the last seal that is whole."""

    lines: list[SealLine]
    standing: dict[tuple[str, str], Seal]

    @property
    def damaged(self) -> list[SealLine]:
        """The lines with which something is wrong."""
        return [line for line in self.lines if line.damage is not None]

    def of(self, stream: str, segment: str) -> list[SealLine]:
        """Every line about one segment, also a damaged one."""
        return [line for line in self.lines if line.seal is not None and line.seal.name == (stream, segment)]


def read_seals(log: Path) -> Seals:
    """What stands in the seals of `log`, with all that is wrong with it. No seals where there is no file.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with _opened(log, disk.READ) as fd:
            return seals_in(_all_of(fd))
    except (FileNotFoundError, NotADirectoryError):
        return Seals([], {})
    except (FileExistsError, IsADirectoryError):
        return Seals([SealLine(0, 0, b"", None, "no_file")], {})


def seals_in(data: bytes) -> Seals:
    """The seals of a file of these bytes, with all that is wrong with it."""
    lines = list(_lines(data))
    standing = {line.seal.name: line.seal for line in lines if line.seal is not None and line.counts}
    return Seals(lines, standing)


def encoded(seal: Seal) -> bytes:
    """The line of a seal, with its newline."""
    body = msgspec.json.encode(seal)[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def link(line: bytes) -> str:
    """What the next line has as `prev`: sha256 of `line` without its own `sha256` and `crc`, so that blanking
    a hash breaks no chain.
    """
    from hashlib import sha256

    return sha256(re.sub(_HASH, b"", re.sub(_CRC, b"}", line))).hexdigest()


def blanked(line: bytes) -> bytes:
    """`line`, as long as it is, without what its segment's hash was."""
    body = re.sub(_HASH, b',"sha256":"%s"' % BLANK.encode(), line[:-_TRAILER_LENGTH])
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def measured(log: Path, stream: str, segment: str) -> Held:
    """What a segment holds now.

    Raises:
        OSError: it is gone, or cannot be read.
    """
    with entered(log, stream) as folders:
        fd = disk.open(segment, disk.READ, folder=folders[-1])
    try:
        return _held(fd)
    finally:
        disk.close(fd)


def seal(
    log: Path, stream: str, segments: Sequence[str], *, lock_timeout: float = LOCK_TIMEOUT
) -> list[Seal]:
    """Seal those of a stream's `segments` that have no seal; return the new seals, once they are durable.

    The caller holds the lock of the newest, so that no line comes to it. What a seal speaks of is made
    durable before it, since a power cut would otherwise make a loss of what nobody was promised.

    Raises:
        Busy: another process held seals.jsonl for too long.
        OSError: it could not be written, or a segment not be read; no seal is known to be stored.
    """
    standing = read_seals(log).standing
    unsealed = [segment for segment in segments if (stream, segment) not in standing]
    if not unsealed:
        return []
    held = {segment: _made_durable(log, stream, segment) for segment in unsealed}
    with _locked(log, lock_timeout) as fd:
        before = seals_in(_all_of(fd))
        # Another process may have been faster.
        new = [segment for segment in unsealed if (stream, segment) not in before.standing]
        return _add(fd, before, [_draft(stream, segment, held[segment]) for segment in new])


def blank(log: Path, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
    """Take the hash out of a segment's seals, before its bytes are erased: until `reseal` is done, anybody
    sees that an erasure was begun.

    Raises:
        Busy, OSError: as `seal`.
    """
    with _locked(log, lock_timeout) as fd:
        _blank(log, seals_in(_all_of(fd)).of(stream, segment))


def reseal(log: Path, stream: str, segment: str, *, lock_timeout: float = LOCK_TIMEOUT) -> Seal | None:
    """Put a new seal in the place of a segment's old one, whose hash is blanked, after bytes were erased.

    Run again after a crash at any moment, it finishes. Return the seal that holds; None where there was none.

    Raises:
        Busy, OSError: as `seal`.
    """
    if not read_seals(log).of(stream, segment):
        return None
    held = _made_durable(log, stream, segment)
    with _locked(log, lock_timeout) as fd:
        before = seals_in(_all_of(fd))
        old = before.of(stream, segment)
        standing = before.standing.get((stream, segment))
        if standing is not None and standing.is_of(held):
            _blank(log, old[:-1])
            return standing
        _blank(log, old)
        (made,) = _add(fd, before, [_draft(stream, segment, held)])
        return made


def _draft(stream: str, segment: str, held: Held, lost: int | None = None) -> Seal:
    return Seal(stream, segment, held.bytes, held.lines, held.sha256, FIRST, "", lost)


def _add(fd: int, before: Seals, drafts: list[Seal]) -> list[Seal]:
    """Append `drafts` behind what stands there, and sync."""
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


def _blank(log: Path, lines: list[SealLine]) -> None:
    """Take the hashes out of `lines` in place: not a byte moves. The file is locked."""
    with _opened(log, disk.WRITE) as fd:
        for line in lines:
            data = blanked(line.data)
            if data != line.data:
                _overwrite(fd, data, line.offset)
        disk.sync_data(fd)


def _overwrite(fd: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        done = disk.overwrite(fd, left, offset)
        left, offset = left[done:], offset + done


def _lines(data: bytes) -> Iterator[SealLine]:
    """The lines, also one without a newline: its crc says whether it is whole."""
    offset, prev = 0, FIRST
    known: dict[tuple[str, str], Seal] = {}
    for number, text in enumerate(data.split(b"\n"), start=1):
        if text and not text.isspace():
            said = _decoded(text)
            yield SealLine(number, offset, text, said, _damage(text, said, prev, known))
            if said is not None:
                prev = link(text)
                known[said.name] = said
        offset += len(text) + 1


def _damage(line: bytes, said: Seal | None, prev: str, known: dict[tuple[str, str], Seal]) -> Damage | None:
    if said is None:
        return "torn" if _is_torn(line) else "no_seal"
    if not line.endswith(b',"crc":"%08x"}' % zlib.crc32(line[:-_TRAILER_LENGTH])):
        return "bad_crc"
    if said.prev != prev:
        return "broken_chain"
    old = known.get(said.name)
    is_renewed = old is None or old.is_blank or said.lost is not None or said.bytes > old.bytes
    return None if is_renewed else "second_seal"


def _decoded(line: bytes) -> Seal | None:
    try:
        return msgspec.json.decode(line, type=Seal)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_torn(line: bytes) -> bool:
    """Whether `line` can be the beginning of a seal and no more: behind its crc comes the brace alone."""
    begins = line.startswith(b'{"stream":"'[: len(line)])
    return begins and not line.endswith(b"}") and re.search(_WHOLE_CRC, line) is None


def _made_durable(log: Path, stream: str, segment: str) -> Held:
    """What a segment holds, once that and its name are durable."""
    with entered(log, stream) as folders:
        fd = disk.open(segment, disk.READ, folder=folders[-1])
        try:
            disk.sync_data(fd)
            for folder in reversed(folders):
                disk.sync(folder)
            sync_folder(log.parent)
            return _held(fd)
        finally:
            disk.close(fd)


def _held(fd: int) -> Held:
    from hashlib import sha256

    check_regular(fd)
    found, size, lines, last = sha256(), 0, 0, b"\n"
    while block := disk.read(fd, _READ_BLOCK, size):
        found.update(block)
        size += len(block)
        lines += block.count(b"\n")
        last = block[-1:]
    return Held(size, lines + (last != b"\n"), found.hexdigest())


def _all_of(fd: int) -> bytes:
    blocks, size = [], 0
    while block := disk.read(fd, _READ_BLOCK, size):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


@contextmanager
def _locked(log: Path, timeout: float) -> Iterator[int]:
    """seals.jsonl, open to append and locked; made where it does not stand, its name durable."""
    while True:
        with _opened(log, disk.APPEND | disk.CREATE) as fd:
            locks.acquire(fd, f"{log.name}/{SEALS}", timeout)
            if not _still_stands(log, fd):
                continue
            sync_folder(log)
            sync_folder(log.parent)
            yield fd
            return


def _still_stands(log: Path, fd: int) -> bool:
    with suppress(FileNotFoundError):
        standing = disk.look(log / SEALS)
        return (standing.st_dev, standing.st_ino) == identity(fd)
    return False


@contextmanager
def _opened(log: Path, flags: int) -> Iterator[int]:
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
        return disk.open(log / SEALS, flags)
    except OSError as error:
        # A link, which is not followed, and a socket.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileExistsError(errno.EEXIST, f"{SEALS} is no regular file") from error
        raise
