"""Finds keys in the log."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from memlog.eventlog.reader import entry_of, reading, segments_about
from memlog.eventlog.secrets import kinds_in_line, masked
from memlog.eventlog.segment import read_lines


class SecretPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What looks like a key of some `kind`, and where. The key itself is not in it.

    id: of the event; of a line that holds none its position.
    offset, line: where the line begins in its segment, in bytes, and its number from 1.
    """

    kind: str
    id: str
    stream: str
    segment: str
    offset: int
    line: int


def secrets_in(log: Path) -> Iterator[SecretPlace]:
    """Every line with a key, once for each kind, in log order: also lines that repeat an event, that hold
    none, or that were forgotten and not yet overwritten."""
    for segment in segments_about(log):
        with reading(segment) as fd:
            for line in read_lines(fd, tail_is_a_line=True):
                kinds = kinds_in_line(line.data or b"")
                entry = entry_of(segment, line) if kinds else None
                if entry is not None:
                    for kind in kinds:
                        yield SecretPlace(
                            kind=kind,
                            id=masked(entry.id),
                            stream=masked(entry.segment.stream),
                            segment=entry.segment.name.filename,
                            offset=entry.line.offset,
                            line=entry.line.number,
                        )
