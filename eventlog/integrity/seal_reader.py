"""Reads the raw bytes of seals files, and the lengths of sealed segments, which is all an append needs."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from memlog.eventlog.files import disk
from memlog.eventlog.files.file_io import (
    closing_descriptor,
    file_version,
    open_regular_file,
    read_all,
    status_at,
)
from memlog.eventlog.log.layout import list_seals_files


def read_sealed_lengths(log: Path) -> Mapping[tuple[str, str], int]:
    """Return sealed byte lengths, keyed by (stream, segment); faster than `read_seals`. Raises OSError."""
    return _read_lengths(
        log, tuple((name, file_version(status_at(log / name))) for name in list_seals_files(log))
    )


@lru_cache(maxsize=1)
def _read_lengths(log: Path, files: tuple[tuple[str, tuple[int, ...]], ...]) -> Mapping[tuple[str, str], int]:
    # The cache holds until a file changes, as a catch-up asks once per stream. Imported here: an append
    # decodes no seal.
    from memlog.eventlog.integrity.seal_format import parse_sealed_lengths

    return parse_sealed_lengths(read_seals_file(log, name) for name, _ in files)


def read_seals_file(log: Path, name: str) -> bytes:
    """Read a seals file; return b"" if it is missing or not a regular file. Raises OSError."""
    try:
        with closing_descriptor(open_regular_file(log / name, disk.READ)) as fd:
            return read_all(fd)
    except (FileNotFoundError, NotADirectoryError, FileExistsError):
        return b""
