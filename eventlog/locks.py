"""Advisory file locks (flock) with a deadline; the kernel frees them at kill -9."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.errors import Busy
from memlog.eventlog.file_io import closing
from memlog.eventlog.limits import LOCK_TIMEOUT

TIMEOUT = LOCK_TIMEOUT.default
"""Seconds to wait for a lock if the caller has no limit of its own."""

_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.010
_BETWEEN_LOOKS = 0.25
_PROC = "/proc"
_held_by_thread: set[tuple[int, Path]] = set()
"""The threads that hold lock files by `locked`."""
os.register_at_fork(after_in_child=_held_by_thread.clear)


def acquire(
    fd: int,
    what: str,
    timeout: float,
    *,
    if_stopped: float | None = None,
    is_held_here: Callable[[], bool] = lambda: False,
) -> None:
    """Lock an open file exclusively, waiting up to `timeout` seconds.

    what: names it in the error. if_stopped: seconds to wait for a stopped process (SIGSTOP, Ctrl-Z).
    is_held_here: whether a thread of this process holds it, which is waited for as long as it takes.

    Raises:
        Busy: the file stayed locked; the message names the holder if the system knows it.
    """
    started = time.monotonic()
    next_look = started + (timeout if if_stopped is None else if_stopped)
    pause = _FIRST_PAUSE
    while not _try(fd):
        now = time.monotonic()
        if is_held_here():
            started = now
        remaining = started + timeout - now
        if now >= next_look:
            next_look = now + _BETWEEN_LOOKS
            remaining = 0 if _is_stopped(fd) else remaining
        if remaining <= 0:
            raise Busy(f"{what} is locked by {holder(fd)}", hint="try again, or end that process")
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, _LONGEST_PAUSE)


@contextmanager
def locked(
    path: Path,
    what: str,
    timeout: float,
    *,
    if_stopped: float | None = None,
    is_held_here: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """A context that holds the lock file at `path`, made if missing, never removed; see `acquire`.

    Raises Busy at once if this thread holds it: a callback or a signal handler would wait for itself.
    """
    mine = threading.get_ident(), path.absolute()
    with closing(permissions.open_file(path, disk.WRITE | disk.CREATE)) as fd:
        if mine in _held_by_thread and not _try(fd):
            raise Busy(f"{what} is in use by this thread", hint="not in a callback or a signal handler")
        acquire(fd, what, timeout, if_stopped=if_stopped, is_held_here=is_held_here)
        try:
            _held_by_thread.add(mine)
            yield
        finally:
            _held_by_thread.discard(mine)


@contextmanager
def locked_if_there(
    path: Path, what: str, timeout: float, *, if_stopped: float | None = None
) -> Iterator[bool]:
    """As `locked`, for a file that is read-only or missing; yields whether it exists."""
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        yield False
        return
    with closing(fd):
        acquire(fd, what, timeout, if_stopped=if_stopped)
        yield True


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file at `path`; False if there is no file."""
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        return False
    with closing(fd):
        return not _try(fd)


def _try(fd: int) -> bool:
    try:
        disk.lock(fd)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
            return False
        raise
    return True


def holder(fd: int) -> str:
    """The holder of a lock on an open file, for people: `process 123`, or `another process` if unknown."""
    holders = _holders(fd)
    if not holders:
        return "another process"
    return f"process {', '.join(sorted(holders))}" + (", which is stopped" if _is_stopped(fd) else "")


def _is_stopped(fd: int) -> bool:
    """Whether all known holders of the lock are stopped."""
    holders = _holders(fd)
    return bool(holders) and all(_state(pid) in ("T", "t") for pid in holders)


def _state(pid: str) -> str:
    """A process's state letter on Linux: proc(5), /proc/pid/stat."""
    return _proc_file(pid, "stat").rpartition(")")[2].strip()[:1]


def _holders(fd: int) -> set[str]:
    """The processes that hold a flock on this file, by Linux's /proc/locks."""
    inode = f":{disk.status(fd).st_ino}"
    listing = _proc_file("locks").splitlines()
    fields = [line.split() for line in listing if " FLOCK " in line and "->" not in line]
    return {line[4] for line in fields if line[5].endswith(inode)}


def _proc_file(*path: str) -> str:
    """The text of a file below /proc; "" if it cannot be read."""
    try:
        return Path(_PROC, *path).read_text(errors="replace")
    except OSError:
        return ""
