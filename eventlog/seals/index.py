"""Finds the seals of one segment in the bytes of seals.jsonl without decoding the other lines."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from memlog.eventlog.seals.format import Seal, has_its_crc, seal_of

_LINE = rb'^(?:(\{"stream":"[^"\\\n]+","segment":"[^"\\\n]+"),"bytes":|[^\n])'
"""The beginning of a line that is not empty, with the names of its segment where they have no escapes.

Decoding each of 36,500 lines takes 0.1 s of CPU, at the first append of a day to each stream; this 0.03 s.
"""


class SealPlace(msgspec.Struct, frozen=True):
    """A seal and the offset of its line, which may be damaged; data: the line without its newline."""

    offset: int
    data: bytes
    seal: Seal


class SealIndex:
    """The lines of seals.jsonl by the segment that they name."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray()
        self._offsets: list[int] = []
        self._offsets_of: defaultdict[bytes, list[int]] = defaultdict(list)
        self.extend(data)

    def __len__(self) -> int:
        """The length of the indexed bytes."""
        return len(self._data)

    def extend(self, data: bytes) -> None:
        """Index `data`, which begins a line, behind the bytes that are indexed."""
        start = len(self._data)
        self._data += data
        for line in re.compile(_LINE, re.MULTILINE).finditer(data):
            offset = start + line.start()
            key = line[1] or _key_of(self._line(offset))
            if key:
                self._offsets.append(offset)
                self._offsets_of[key].append(offset)

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes in place: a line whose hash was blanked names the same segment."""
        self._data[offset : offset + len(data)] = data

    def of(self, stream: str, segment: str) -> list[SealPlace]:
        """Every seal of one segment, also from a damaged line."""
        return list(self._seals_at(self._offsets_of.get(_key(stream, segment), [])))

    def standing(self, stream: str, segment: str) -> Seal | None:
        """The last seal of a segment from a line whose checksum is right."""
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
            text = line.strip(b"\0")  # a power cut may have left them around it
            seal = seal_of(text)
            if seal is not None:
                yield SealPlace(offset + line.find(text), text, seal)


def _key_of(line: bytes) -> bytes:
    """Of a line that `encoded` did not write, or with NUL bytes before it; nothing where it holds no seal."""
    seal = seal_of(line.strip(b"\0"))
    return b"" if seal is None else _key(seal.stream, seal.segment)


def _key(stream: str, segment: str) -> bytes:
    return msgspec.json.encode({"stream": stream, "segment": segment})[:-1]
