"""The status of every file below the log, and the streams that changed between two looks."""

import stat
from collections.abc import Iterable
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.layout import CONVERSATIONS
from memlog.eventlog.streams import is_utf8, may_be_stream

FileState = tuple[str, int, int, int, int, int]
"""The path, its mode, inode, size in bytes, mtime and ctime in nanoseconds; a program can set the mtime."""


def state_of(log: Path) -> list[FileState]:
    """The state of each file and folder that a reader of `log` may look at; [] without a log. Raises OSError.

    An equal state means that nothing was added, changed or removed; it may differ without a change, since the
    system lists a folder in any order. DirEntry.stat keeps the interpreter's lock: a thread with hundreds of
    segments does not wait hundreds of times for other threads.
    """
    states: list[FileState] = []
    conversations = str(log / CONVERSATIONS)
    for stream in _add_entries(str(log), states):
        below = _add_entries(stream, states)
        for conversation in below if stream == conversations else ():
            _add_entries(conversation, states)
    return states


def changed_streams(log: Path, before: Iterable[FileState], now: Iterable[FileState]) -> set[str] | None:
    """The streams whose folder or files differ between two states of `log`.

    None if anything else differs: seals, the format, or a file where a stream's folder belongs.
    """
    streams = set()
    for path, mode, *_ in set(before) ^ set(now):
        parts = path.removeprefix(f"{log}/").split("/")
        stream = "/".join(parts[:2] if parts[0] == CONVERSATIONS else parts[:1])
        is_within = path != f"{log}/{stream}"
        if not is_utf8(stream) or not (stat.S_ISDIR(mode) or is_within):
            return None
        if stream != CONVERSATIONS:
            streams.add(stream)
    return streams


def _add_entries(folder: str, states: list[FileState]) -> list[str]:
    """Add the states of a folder's entries; return its folders that may be streams."""
    below = []
    try:
        with disk.entries(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not may_be_stream(entry.name):
                        continue
                    below.append(entry.path)
                status = entry.stat(follow_symlinks=False)
                times = status.st_mtime_ns, status.st_ctime_ns
                states.append((entry.path, status.st_mode, status.st_ino, status.st_size, *times))
    except (FileNotFoundError, NotADirectoryError):
        return []  # removed since it was listed; the next state differs
    except PermissionError:
        if not states:
            raise
        return []  # its own state differs once it can be read
    return below
