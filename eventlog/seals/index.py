"""Finds the seals of one segment in the bytes of a seals file without decoding the other lines."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from memlog.eventlog.encoding import decoded, has_its_crc
from memlog.eventlog.seals.format import Seal

_LINE = rb'^(?:(\{"stream":"[^"\\\n]+","segment":"[^"\\\n]+"),"bytes":|[^\n])'
"""The start of a non-empty line, with stream and segment unless they have escapes. Indexing 36,500 lines by
it takes 0.03 s of CPU; decoding them takes 0.1 s."""


class SealPlace(msgspec.Struct, frozen=True):
    """A seal, and offset and bytes of its line, which may be damaged; `data` has no newline."""

    offset: int
    data: bytes
    seal: Seal


class SealIndex:
    """The lines of a seals file by segment."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray()
        self._offsets: list[int] = []
        self._offsets_of: defaultdict[bytes, list[int]] = defaultdict(list)
        self.extend(data)

    def __len__(self) -> int:
        """The length of the indexed bytes."""
        return len(self._data)

    def extend(self, data: bytes) -> None:
        """Index `data`, which follows the indexed bytes and begins a line."""
        start = len(self._data)
        self._data += data
        for line in re.compile(_LINE, re.MULTILINE).finditer(data):
            offset = start + line.start()
            key = line[1] or _key_of(self._line(offset))
            if key:
                self._offsets.append(offset)
                self._offsets_of[key].append(offset)

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes in place; the line keeps its segment."""
        self._data[offset : offset + len(data)] = data

    def of(self, stream: str, segment: str) -> list[SealPlace]:
        """All seals of a segment, damaged lines included."""
        return list(self._seals_at(self._offsets_of.get(_key(stream, segment), [])))

    def valid(self, stream: str, segment: str) -> Seal | None:
        """The last intact seal of a segment."""
        whole = [place.seal for place in self.of(stream, segment) if has_its_crc(place.data)]
        return whole[-1] if whole else None

    def last(self) -> SealPlace | None:
        """The last seal, to which the next one is chained."""
        return next(self._seals_at(reversed(self._offsets)), None)

    def _line(self, offset: int) -> bytes:
        end = self._data.find(b"\n", offset)
        return bytes(self._data[offset : None if end < 0 else end])

    def _seals_at(self, offsets: Iterable[int]) -> Iterator[SealPlace]:
        for offset in offsets:
            line = self._line(offset)
            text = line.strip(b"\0")  # a power cut may leave NUL bytes
            seal = decoded(text, Seal)
            if seal is not None:
                yield SealPlace(offset + line.find(text), text, seal)


def _key_of(line: bytes) -> bytes:
    """The key of a line that `encoded` did not write, or with NUL bytes before it; b"" without a seal."""
    seal = decoded(line.strip(b"\0"), Seal)
    return b"" if seal is None else _key(seal.stream, seal.segment)


def _key(stream: str, segment: str) -> bytes:
    return msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
