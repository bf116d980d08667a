"""The status of every file below the log, and the streams that changed between two looks."""

import stat
from collections.abc import Iterable
from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.layout import CONVERSATIONS
from memlog.eventlog.streams import is_utf8, may_be_stream

FileState = tuple[str, int, int, int, int]
"""The path, its mode, inode, size in bytes, and the time of its last change in nanoseconds."""


def state_of(log: Path) -> list[FileState]:
    """The state of each file and folder that a reader of `log` may look at; empty where there is no log.

    Where it is the same as before, nothing has come, changed or gone. It may differ where nothing has: the
    system lists a folder in any order.

    An entry is asked for its status as it is listed. That keeps the interpreter's lock, so that a thread with
    hundreds of segments to look at does not wait hundreds of times for other threads.

    Raises:
        OSError: a folder cannot be listed.
    """
    found: list[FileState] = []
    conversations = str(log / CONVERSATIONS)
    for stream in _add_entries(str(log), found):
        below = _add_entries(stream, found)
        for conversation in below if stream == conversations else ():
            _add_entries(conversation, found)
    return found


def changed_streams(log: Path, before: Iterable[FileState], now: Iterable[FileState]) -> set[str] | None:
    """The streams whose folder or files differ between two states of `log`.

    None if anything else differs: seals, the format, or a file where a stream's folder belongs.
    """
    streams = set()
    for path, mode, *_ in set(before) ^ set(now):
        stream, is_folder = _stream_at(path.removeprefix(f"{log}/")), stat.S_ISDIR(mode)
        top, _, rest = stream.partition("/")
        is_within = path != f"{log}/{stream}"
        if not is_utf8(stream) or not (is_folder or is_within):
            return None
        if may_be_stream(rest or top) and stream != CONVERSATIONS:
            streams.add(stream)
    return streams


def _stream_at(path: str) -> str:
    """The stream that a path below the log is in, or is the folder of."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] == CONVERSATIONS else parts[:1])


def _add_entries(folder: str, found: list[FileState]) -> list[str]:
    """Add the states of what stands in a folder, and return the folders in it that may be streams."""
    below = []
    try:
        with disk.entries(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                mtime = status.st_mtime_ns
                found.append((entry.path, status.st_mode, status.st_ino, status.st_size, mtime))
                if entry.is_dir(follow_symlinks=False) and may_be_stream(entry.name):
                    below.append(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        return []  # it has gone since it was listed, and the next state tells so
    return below
