"""The sealed length of each segment."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.file_io import file_version
from memlog.eventlog.layout import seals_files
from memlog.eventlog.seals.format import lengths_in
from memlog.eventlog.seals.reader import bytes_of


def sealed_bytes(log: Path) -> Mapping[tuple[str, str], int]:
    """The sealed length of each segment in bytes, by (stream, segment). Faster than `read_seals`. Raises
    OSError."""
    return _lengths(log, tuple((name, _version(log / name)) for name in seals_files(log)))


@lru_cache(maxsize=1)
def _lengths(log: Path, files: tuple[tuple[str, tuple[int, ...]], ...]) -> Mapping[tuple[str, str], int]:
    """Cached until a file changes: a catch-up asks for each stream that it replays."""
    return lengths_in(bytes_of(log, name) for name, _ in files)


def _version(file: Path) -> tuple[int, ...]:
    try:
        return file_version(disk.look(file))
    except FileNotFoundError:
        return ()
