"""What stands below the log, as far as the status of its files tells."""

import os
from collections.abc import Iterator
from pathlib import Path

from memlog.eventlog import disk

FileState = tuple[str, int, int, int, int]
"""The path below the log, its mode, inode, size in bytes, and the time of its last change in nanoseconds."""

_DEPTH = 3
"""`conversations`, a stream's folder, its segments."""


def state_of(log: Path) -> list[FileState]:
    """The state of each file and folder below `log`, sorted; empty where there is no log.

    Where it is the same as before, nothing has come, changed or gone.

    An entry is asked for its status as it is listed. That keeps the interpreter's lock, so that a thread with
    hundreds of segments to look at does not wait hundreds of times for other threads.

    Raises:
        OSError: a folder cannot be listed.
    """
    return sorted(_states(log, "", _DEPTH))


def _states(folder: Path, prefix: str, depth: int) -> Iterator[FileState]:
    try:
        with disk.entries(folder) as entries:
            listed = [(entry, entry.stat(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry, status in listed:
        name = f"{prefix}{entry.name}"
        yield name, status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _states(Path(entry.path), f"{name}{os.sep}", depth - 1)
