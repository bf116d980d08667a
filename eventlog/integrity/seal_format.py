"""The lines of a seals file: size and hash of a finished segment, each chained to the line before.

docs/storage/jsonl-format.md, "Seals", has a worked example in real bytes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.escapes import CRC_LENGTH, decoded, has_its_crc, with_crc
from memlog.eventlog.log.layout import SegmentRecord

BLANK = " " * 64
"""Replaces the hash of erased bytes."""

FIRST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The `prev` of a file's first line: the sha256 of nothing."""

# Plain strings, which `re` compiles at first use: `append` seals once a day. A quote in a name is escaped, so
# no name matches.
_HASH = rb',"sha256":"([0-9a-f ]{64})"'

_CRC = rb',"crc":"([0-9a-f]{8})"\}$'

_WHOLE_CRC = rb',"crc":"[0-9a-f]{8}".'

Damage = Literal[
    "torn",  # the start of a seal: a writer was killed; no damage
    "bad_crc",
    "no_seal",  # neither a seal nor the start of one
    "broken_chain",  # an earlier line was changed, removed or inserted
    "second_seal",  # a second seal that no erasure, growth or loss explains
    "no_file",  # a link, a folder or a device has the name of a seals file
]
"""Damage of a line of a seals file, or of the file."""

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f ]{64}$")]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Held(msgspec.Struct, frozen=True):
    """Size and hash of a segment's bytes. `lines` counts a last line without newline."""

    bytes: int
    lines: int
    sha256: str


class Seal(SegmentRecord, frozen=True, omit_defaults=True):
    """Size and hash of a segment when it was sealed.

    lines: includes a last line without newline. sha256: of all bytes; `BLANK` after an erasure.
    prev: `link` of the previous line. at: when it was sealed.
    lost: bytes accepted as lost since the previous seal.
    """

    bytes: _Count
    lines: _Count
    sha256: _Hash
    prev: _Hash
    at: str
    lost: _Count | None = None

    @property
    def is_blank(self) -> bool:
        """Whether an unfinished erasure has blanked its hash."""
        return self.sha256 == BLANK

    def is_of(self, held: Held) -> bool:
        """Whether it seals `held`."""
        return (self.bytes, self.lines, self.sha256) == (held.bytes, held.lines, held.sha256)


class _Brief(SegmentRecord, frozen=True, gc=False):
    """The members of a seal that determine the sealed length."""

    bytes: _Count
    lost: _Count | None = None


_T = TypeVar("_T", Seal, _Brief)


class SealLine(msgspec.Struct, frozen=True):
    """A non-blank line of a seals file.

    data: its bytes without the newline. seal: its seal, even if damaged; None without one.
    """

    file: str
    number: int
    offset: int
    data: bytes
    seal: Seal | None
    damage: Damage | None

    @property
    def counts(self) -> bool:
        """Whether its seal is intact, regardless of the chain."""
        return self.seal is not None and self.damage != "bad_crc"

    @property
    def position(self) -> str:
        """The position for messages: `seals.k7f3qz.jsonl:12`."""
        return f"{self.file}:{self.number}"


class Seals(msgspec.Struct, frozen=True):
    """The seals of a log, or of one file.

    last: by (stream, segment), the last intact seal of each file that has one; see `holding`.
    """

    lines: list[SealLine]
    last: dict[tuple[str, str], list[Seal]]

    @property
    def valid(self) -> dict[tuple[str, str], Seal]:
        """The valid seal by (stream, segment)."""
        return {name: holding(seals) for name, seals in self.last.items()}

    @property
    def damaged(self) -> list[SealLine]:
        """The damaged lines."""
        return [line for line in self.lines if line.damage is not None]


def seals_in(data: bytes, file: str) -> Seals:
    """Return the seals in a file's bytes, with their damage."""
    lines = list(_lines(data, file))
    last = {line.seal.name: [line.seal] for line in lines if line.seal is not None and line.counts}
    return Seals(lines, last)


def lengths_in(files: Iterable[bytes]) -> dict[tuple[str, str], int]:
    """Return the sealed length of each segment by (stream, segment), from the bytes of all seals files."""
    last: defaultdict[tuple[str, str], list[_Brief]] = defaultdict(list)
    for data in files:
        lines = (whole.strip(b"\0") for whole in data.split(b"\n"))
        briefs = (decoded(line, _Brief) for line in lines if has_its_crc(line))
        for name, brief in {brief.name: brief for brief in briefs if brief is not None}.items():
            last[name].append(brief)
    return {
        name: briefs[0].bytes if len(briefs) == 1 else max(brief.bytes for brief in _exclude_lost(briefs))
        for name, briefs in last.items()
    }


def holding(seals: Sequence[Seal]) -> Seal:
    """Return the valid one of a segment's last seals in several files: the longest without an accepted loss.

    It is independent of clocks, so all copies of a log agree.
    """
    return max(_exclude_lost(seals), key=lambda seal: (seal.bytes, not seal.is_blank, seal.at, seal.sha256))


def encoded(seal: Seal) -> bytes:
    """Return the line of a seal, with its newline."""
    return with_crc(msgspec.json.encode(seal)[:-1]) + b"\n"


def link(line: bytes) -> str:
    """Return the next line's `prev`: sha256 of `line` without the members that an erasure changes."""
    return sha256(re.sub(_HASH, b"", re.sub(_CRC, b"}", line))).hexdigest()


def blanked(line: bytes) -> bytes:
    """Return `line` with a blank hash, in the same length."""
    return with_crc(re.sub(_HASH, b',"sha256":"%s"' % BLANK.encode(), line[:-CRC_LENGTH]))


def _exclude_lost(seals: Sequence[_T]) -> list[_T]:
    """Return the seals except those whose bytes another file accepts as lost."""
    lost = [range(seal.bytes + 1, seal.bytes + seal.lost + 1) for seal in seals if seal.lost]
    return [seal for seal in seals if not any(seal.bytes in sizes for sizes in lost)]


def _lines(data: bytes, file: str) -> Iterator[SealLine]:
    """Yield the lines, without the NUL bytes that a power cut leaves around them.

    The last one may lack its newline: its crc shows whether it is whole.
    """
    offset, prev = 0, FIRST
    known: dict[tuple[str, str], Seal] = {}
    for number, whole in enumerate(data.split(b"\n"), start=1):
        text = whole.strip(b"\0")
        if text and not text.isspace():
            seal = decoded(text, Seal)
            nuls = len(whole) - len(whole.lstrip(b"\0"))
            yield SealLine(file, number, offset + nuls, text, seal, _damage_of(text, seal, prev, known))
            if seal is not None:
                prev = link(text)
                known[seal.name] = seal
        offset += len(whole) + 1


def _damage_of(
    line: bytes, seal: Seal | None, prev: str, known: dict[tuple[str, str], Seal]
) -> Damage | None:
    if seal is None:
        return "torn" if _is_torn(line) else "no_seal"
    if not has_its_crc(line):
        return "bad_crc"
    if seal.prev != prev:
        return "broken_chain"
    old = known.get(seal.name)
    is_renewed = old is None or old.is_blank or seal.lost is not None or seal.bytes > old.bytes
    return None if is_renewed else "second_seal"


def _is_torn(line: bytes) -> bool:
    """Whether `line` can be the start of a seal: only the closing brace follows its crc."""
    begins = line.startswith(b'{"stream":"'[: len(line)])
    return begins and not line.endswith(b"}") and re.search(_WHOLE_CRC, line) is None
