"""How long each sealed segment was."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.layout import seals_files
from memlog.eventlog.seals.format import lengths_in
from memlog.eventlog.seals.reader import bytes_of, seen


def sealed_bytes(log: Path) -> Mapping[tuple[str, str], int]:
    """How long each sealed segment was, by (stream, segment): what `read_seals` says and no more, faster.

    Raises:
        OSError: the seals cannot be read.
    """
    return _lengths(log, tuple((name, _version(log / name)) for name in seals_files(log)))


@lru_cache(maxsize=1)
def _lengths(log: Path, files: tuple[tuple[str, tuple[int, ...]], ...]) -> Mapping[tuple[str, str], int]:
    """Kept while no file changes: a catch-up asks for each stream that it replays."""
    return lengths_in(bytes_of(log, name) for name, _ in files)


def _version(file: Path) -> tuple[int, ...]:
    try:
        return seen(disk.look(file))
    except FileNotFoundError:
        return ()
