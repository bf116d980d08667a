"""Seals: what a segment held when it got no more lines. `log/seals.jsonl` has a line a seal, chained.

docs/storage/jsonl-format.md, "Seals", has a worked example in real bytes.
"""

import errno
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from memlog.eventlog import disk, locks, privacy, timestamps
from memlog.eventlog.errors import LogError
from memlog.eventlog.folders import entered, sync_folder
from memlog.eventlog.streams import SEALS
from memlog.eventlog.writing import check_regular, identity, overwrite_all, write_lines

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


class _Brief(msgspec.Struct, frozen=True, gc=False):
    stream: str
    segment: str
    bytes: _Count


_T = TypeVar("_T", Seal, _Brief)


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
    except FileExistsError:
        return Seals([SealLine(0, 0, b"", None, "no_file")], {})


def _read_bytes(log: Path) -> bytes:
    """Nothing, too, where the file is none: `read_seals` tells of it."""
    try:
        with _opened(log, disk.READ) as fd:
            return _all_of(fd)
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        return b""


def _says(log: Path, stream: str, segment: str) -> bool:
    """Whether there is a seal of `segment`. Where no line looks like one, none is decoded."""
    data = _read_bytes(log)
    beginning = msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
    return beginning in data and (stream, segment) in seals_in(data).standing


class Loss(msgspec.Struct, frozen=True):
    """A sealed segment that is gone, or shorter than its seal says. Its stream stops until that is accepted.

    sealed: how many bytes it had. bytes: how many it has; None where it is gone.
    """

    stream: str
    segment: str
    sealed: int
    bytes: int | None

    @property
    def why(self) -> str:
        """For people."""
        now = "is gone" if self.bytes is None else f"has {self.bytes}"
        return f"{self.segment}, sealed with {self.sealed} bytes, {now}"


class Unlike(msgspec.Struct, frozen=True):
    """A sealed segment whose bytes are not those that were sealed. held: None where it is gone."""

    seal: Seal
    held: Held | None

    @property
    def why(self) -> str:
        """For people."""
        sealed = self.seal.bytes
        if self.held is None:
            return f"sealed with {sealed} bytes, is gone"
        if self.held.bytes != sealed:
            return f"sealed with {sealed} bytes, has {self.held.bytes}"
        return f"its {sealed} bytes are not those that were sealed"


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


def sealed_bytes(log: Path) -> dict[tuple[str, str], int]:
    """How long each sealed segment was, by (stream, segment): what `read_seals` says and no more, faster.

    Raises:
        OSError: the seals cannot be read.
    """
    found = {}
    for line in _read_bytes(log).split(b"\n"):
        brief = _decoded(line, _Brief) if _has_its_crc(line) else None
        if brief is not None:
            found[brief.stream, brief.segment] = brief.bytes
    return found


def losses(log: Path) -> list[Loss]:
    """The sealed segments that are gone or shorter than their seal says, and nobody has accepted it.

    Raises:
        OSError: the seals, or a segment's folder, cannot be read.
    """
    found = []
    for (stream, segment), sealed in sealed_bytes(log).items():
        size = _size_of(log, stream, segment)
        if (size is None and sealed > 0) or (size is not None and size < sealed):
            found.append(Loss(stream, segment, sealed, size))
    return found


def loss_error(found: Sequence[Loss]) -> LogError:
    """The error that says which streams stop."""
    return LogError(
        "; ".join(f"{loss.stream} stops: {loss.why}" for loss in found),
        hint="put back what is missing, or accept the loss: memlog seal --accept-loss",
        code="loss",
        retryable=False,
    )


def unlike(log: Path) -> list[Unlike]:
    """The sealed segments whose bytes are not those that were sealed; every byte is read. Where a hash is
    blank, the length alone is compared.

    Raises:
        OSError: the seals or a segment cannot be read.
    """
    found = []
    for old in read_seals(log).standing.values():
        held = _held_by(log, old.stream, old.segment)
        if not _is_like(old, held):
            found.append(Unlike(old, held))
    return found


def accept_loss(log: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> list[Seal]:
    """Seal what stands of the segments that are unlike their seals: a person says that the rest is lost.
    Return the new seals, once they are durable.

    Raises:
        Busy, OSError: as `seal`.
    """
    differing = unlike(log)
    if not differing:
        return []
    nothing = Held(0, 0, FIRST)
    drafts = [
        _draft(each.seal.stream, each.seal.segment, held, max(0, each.seal.bytes - held.bytes))
        for each in differing
        for held in (each.held or nothing,)
    ]
    with _locked(log, lock_timeout) as fd:
        return _add(fd, seals_in(_all_of(fd)), drafts)


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
    with _opened_segment(log, stream, segment) as (fd, _):
        return _held(fd)


def seal(
    log: Path,
    stream: str,
    segments: Sequence[str],
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    also_grown: bool = False,
) -> list[Seal]:
    """Seal those of a stream's `segments` that have no seal; return the new seals, once they are durable.

    also_grown: and those that have, to which a writer that takes no lock has added something since.

    The caller holds the lock of the newest, so that no line comes to it. What a seal speaks of is made
    durable before it, since a power cut would otherwise make a loss of what nobody was promised.

    Raises:
        Busy: another process held seals.jsonl for too long.
        OSError: it could not be written, or a segment not be read; no seal is known to be stored.
    """
    standing = read_seals(log).standing
    due = [
        segment
        for segment in segments
        if (stream, segment) not in standing or (also_grown and _has_grown(log, standing[stream, segment]))
    ]
    if not due:
        return []
    held = {segment: _made_durable(log, stream, segment) for segment in due}
    with _locked(log, lock_timeout) as fd:
        before = seals_in(_all_of(fd))
        # Another process may have been faster.
        new = [
            segment
            for segment in due
            if before.standing.get((stream, segment)) == standing.get((stream, segment))
        ]
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
                overwrite_all(fd, data, line.offset)
        disk.sync_data(fd)


def _lines(data: bytes) -> Iterator[SealLine]:
    """The lines, also one without a newline: its crc says whether it is whole.

    NUL bytes around a line, which a power cut leaves, are none of its own.
    """
    offset, prev = 0, FIRST
    known: dict[tuple[str, str], Seal] = {}
    for number, whole in enumerate(data.split(b"\n"), start=1):
        text = whole.strip(b"\0")
        if text and not text.isspace():
            said = _decoded(text, Seal)
            nuls = len(whole) - len(whole.lstrip(b"\0"))
            yield SealLine(number, offset + nuls, text, said, _damage(text, said, prev, known))
            if said is not None:
                prev = link(text)
                known[said.name] = said
        offset += len(whole) + 1


def _damage(line: bytes, said: Seal | None, prev: str, known: dict[tuple[str, str], Seal]) -> Damage | None:
    if said is None:
        return "torn" if _is_torn(line) else "no_seal"
    if not _has_its_crc(line):
        return "bad_crc"
    if said.prev != prev:
        return "broken_chain"
    old = known.get(said.name)
    is_renewed = old is None or old.is_blank or said.lost is not None or said.bytes > old.bytes
    return None if is_renewed else "second_seal"


def _has_its_crc(line: bytes) -> bool:
    return line.endswith(b',"crc":"%08x"}' % zlib.crc32(line[:-_TRAILER_LENGTH]))


def _decoded(line: bytes, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_torn(line: bytes) -> bool:
    """Whether `line` can be the beginning of a seal and no more: behind its crc comes the brace alone."""
    begins = line.startswith(b'{"stream":"'[: len(line)])
    return begins and not line.endswith(b"}") and re.search(_WHOLE_CRC, line) is None


def _made_durable(log: Path, stream: str, segment: str) -> Held:
    """What a segment holds, once that and its name are durable."""
    with _opened_segment(log, stream, segment) as (fd, folders):
        disk.sync_data(fd)
        for folder in reversed(folders):
            disk.sync(folder)
        sync_folder(log.parent)
        return _held(fd)


@contextmanager
def _opened_segment(log: Path, stream: str, segment: str) -> Iterator[tuple[int, list[int]]]:
    """A descriptor of a segment, and those of the folders on the way to it."""
    with entered(log, stream) as folders:
        fd = disk.open(segment, disk.READ, folder=folders[-1])
        try:
            yield fd, folders
        finally:
            disk.close(fd)


def _size_of(log: Path, stream: str, segment: str) -> int | None:
    """How long a segment is; None where none stands."""
    try:
        # A text: there are many, and making a path takes longer than looking.
        status = disk.look(f"{log}/{stream}/{segment}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _held_by(log: Path, stream: str, segment: str) -> Held | None:
    """What a segment holds; None where none stands, or what stands there is a link."""
    if _size_of(log, stream, segment) is None:
        return None
    with suppress(FileNotFoundError):
        return measured(log, stream, segment)
    return None


def _is_like(old: Seal, held: Held | None) -> bool:
    if held is None:
        # What was accepted as lost whole may be gone.
        return old.lost is not None and old.bytes == 0
    return old.bytes == held.bytes if old.is_blank else old.is_of(held)


def _has_grown(log: Path, old: Seal) -> bool:
    """Whether a segment has all that it was sealed with, and more."""
    with suppress(FileNotFoundError), _opened_segment(log, old.stream, old.segment) as (fd, _):
        return disk.status(fd).st_size > old.bytes and old.is_of(_held(fd, old.bytes))
    return False


def _held(fd: int, end: int | None = None) -> Held:
    """What the open file holds, or its first `end` bytes."""
    from hashlib import sha256

    check_regular(fd)
    found, size, lines, last = sha256(), 0, 0, b"\n"
    while block := disk.read(fd, _READ_BLOCK if end is None else min(_READ_BLOCK, end - size), size):
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
        return (privacy.open_file if flags & disk.CREATE else disk.open)(log / SEALS, flags)
    except OSError as error:
        # A link, which is not followed; a socket; a folder that is to be written.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileExistsError(errno.EEXIST, f"{SEALS} is no regular file") from error
        raise
