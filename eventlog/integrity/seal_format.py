"""The lines of a seals file: the size and hash of a finished segment, and a link to the previous line.

docs/storage/jsonl-format.md, "Seals", has a worked example, byte by byte.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.escapes import CRC_LENGTH, append_crc, decode_json, ends_with_correct_crc
from memlog.eventlog.log.layout import SegmentRecord

BLANK = " " * 64
"""Replaces a hash that covers erased bytes."""

FIRST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The `prev` of a file's first line: the SHA-256 of no bytes."""

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
"""Damage to a line of a seals file, or to the file itself."""

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f ]{64}$")]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Held(msgspec.Struct, frozen=True):
    """The size and hash of a segment's bytes. `lines` includes a last line without a newline."""

    bytes: int
    lines: int
    sha256: str


class Seal(SegmentRecord, frozen=True, omit_defaults=True):
    """The size and hash of a segment at the time it was sealed.

    lines: includes a last line without a newline. sha256: the hash of all bytes; `BLANK` during an erasure.
    prev: the SHA-256 of the previous line, which chains the seals. at: when the segment was sealed.
    lost: the bytes accepted as lost since the previous seal.
    """

    bytes: _Count
    lines: _Count
    sha256: _Hash
    prev: _Hash
    at: str
    lost: _Count | None = None

    @property
    def is_blank(self) -> bool:
        """Whether an erasure has blanked the hash."""
        return self.sha256 == BLANK

    def is_of(self, held: Held) -> bool:
        """Whether the seal has the size, line count and hash of `held`."""
        return (self.bytes, self.lines, self.sha256) == (held.bytes, held.lines, held.sha256)


class _Brief(SegmentRecord, frozen=True, gc=False):
    """The seal members that determine a segment's sealed length."""

    bytes: _Count
    lost: _Count | None = None


_T = TypeVar("_T", Seal, _Brief)


class SealLine(msgspec.Struct, frozen=True):
    """A non-blank line of a seals file.

    data: the bytes without the newline. seal: the seal, even if damaged; None if the line does not hold one.
    """

    file: str
    number: int
    offset: int
    data: bytes
    seal: Seal | None
    damage: Damage | None

    @property
    def has_intact_seal(self) -> bool:
        """Whether the line's seal is intact, whatever the state of the chain."""
        return self.seal is not None and self.damage != "bad_crc"

    @property
    def position(self) -> str:
        """The position as shown in messages, such as `seals.k7f3qz.jsonl:12`."""
        return f"{self.file}:{self.number}"


class Seals(msgspec.Struct, frozen=True):
    """The seals of a log or of one file.

    last: the last intact seals, one from each file, keyed by (stream, segment); see `choose_seal`.
    """

    lines: list[SealLine]
    last: dict[tuple[str, str], list[Seal]]

    @property
    def valid_seals(self) -> dict[tuple[str, str], Seal]:
        """The valid seal of each segment, keyed by (stream, segment)."""
        return {name: choose_seal(seals) for name, seals in self.last.items()}

    @property
    def damaged_lines(self) -> list[SealLine]:
        """The damaged lines."""
        return [line for line in self.lines if line.damage is not None]


def parse_seals(data: bytes, file: str) -> Seals:
    """Parse the bytes of a seals file, noting any damage."""
    lines = list(_parse_lines(data, file))
    last = {line.seal.name: [line.seal] for line in lines if line.seal is not None and line.has_intact_seal}
    return Seals(lines, last)


def parse_sealed_lengths(files: Iterable[bytes]) -> dict[tuple[str, str], int]:
    """Return each segment's sealed length, keyed by (stream, segment), from the bytes of all seals files."""
    last: defaultdict[tuple[str, str], list[_Brief]] = defaultdict(list)
    for data in files:
        lines = (whole.strip(b"\0") for whole in data.split(b"\n"))
        briefs = (decode_json(line, _Brief) for line in lines if ends_with_correct_crc(line))
        for name, brief in {brief.name: brief for brief in briefs if brief is not None}.items():
            last[name].append(brief)
    return {
        name: briefs[0].bytes if len(briefs) == 1 else max(brief.bytes for brief in _exclude_lost(briefs))
        for name, briefs in last.items()
    }


def choose_seal(seals: Sequence[Seal]) -> Seal:
    """Choose which of a segment's last seals counts: the longest whose bytes were not accepted as lost.

    Does not depend on clocks, so all copies of a log agree.
    """
    return max(_exclude_lost(seals), key=lambda seal: (seal.bytes, not seal.is_blank, seal.at, seal.sha256))


def encode_seal(seal: Seal) -> bytes:
    """Encode a seal as a line, including the newline."""
    return append_crc(msgspec.json.encode(seal)[:-1]) + b"\n"


def compute_link_hash(line: bytes) -> str:
    """Return the next line's `prev`: the SHA-256 of `line` without the members that an erasure changes."""
    return sha256(re.sub(_HASH, b"", re.sub(_CRC, b"}", line))).hexdigest()


def blank_hash(line: bytes) -> bytes:
    """Return `line` with its hash blanked and its crc updated; the length stays the same."""
    return append_crc(re.sub(_HASH, b',"sha256":"%s"' % BLANK.encode(), line[:-CRC_LENGTH]))


def _exclude_lost(seals: Sequence[_T]) -> list[_T]:
    """Drop the seals whose bytes another seal accepts as lost."""
    lost = [range(seal.bytes + 1, seal.bytes + seal.lost + 1) for seal in seals if seal.lost]
    return [seal for seal in seals if not any(seal.bytes in sizes for sizes in lost)]


def _parse_lines(data: bytes, file: str) -> Iterator[SealLine]:
    """Yield the non-blank lines, stripped of the NUL bytes that a power cut may leave around them.

    The last line may lack its newline, since the crc shows whether it is complete.
    """
    offset, prev = 0, FIRST
    known: dict[tuple[str, str], Seal] = {}
    for number, whole in enumerate(data.split(b"\n"), start=1):
        text = whole.strip(b"\0")
        if text and not text.isspace():
            seal = decode_json(text, Seal)
            nuls = len(whole) - len(whole.lstrip(b"\0"))
            yield SealLine(file, number, offset + nuls, text, seal, _find_damage(text, seal, prev, known))
            if seal is not None:
                prev = compute_link_hash(text)
                known[seal.name] = seal
        offset += len(whole) + 1


def _find_damage(
    line: bytes, seal: Seal | None, prev: str, known: dict[tuple[str, str], Seal]
) -> Damage | None:
    if seal is None:
        return "torn" if _is_torn(line) else "no_seal"
    if not ends_with_correct_crc(line):
        return "bad_crc"
    if seal.prev != prev:
        return "broken_chain"
    old = known.get(seal.name)
    is_renewed = old is None or old.is_blank or seal.lost is not None or seal.bytes > old.bytes
    return None if is_renewed else "second_seal"


def _is_torn(line: bytes) -> bool:
    """Whether `line` may be the beginning of a seal: it has no closing brace, and nothing follows its crc."""
    begins = line.startswith(b'{"stream":"'[: len(line)])
    return begins and not line.endswith(b"}") and re.search(_WHOLE_CRC, line) is None
