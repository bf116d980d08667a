"""Advisory file locks with a deadline, by flock: the kernel frees them at kill -9."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.errors import Busy

_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.010
_BETWEEN_LOOKS = 0.25
_PROC = "/proc"


def acquire(fd: int, what: str, timeout: float, *, if_stopped: float | None = None) -> None:
    """Lock the open file `fd` for this descriptor alone, waiting up to `timeout` seconds.

    if_stopped: wait no longer than so many seconds for a process that is stopped (SIGSTOP, Ctrl-Z).

    Raises:
        Busy: it was not free in time; the message names the process that holds it where the system tells.
    """
    started = time.monotonic()
    deadline = started + timeout
    next_look = started + (timeout if if_stopped is None else if_stopped)
    pause = _FIRST_PAUSE
    while not _try(fd):
        now = time.monotonic()
        remaining = deadline - now
        if now >= next_look:
            next_look = now + _BETWEEN_LOOKS
            remaining = 0 if _is_stopped(fd) else remaining
        if remaining <= 0:
            raise Busy(
                f"{what} is locked by {holder(fd)}",
                hint="try again, or end that process",
            )
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, _LONGEST_PAUSE)


def release(fd: int) -> None:
    """Free what `acquire` locked."""
    disk.unlock(fd)


@contextmanager
def locked(path: Path, what: str, timeout: float, *, if_stopped: float | None = None) -> Iterator[None]:
    """Hold the lock file at `path`, which is made where it does not stand and is never unlinked.

    Raises as `acquire`.
    """
    fd = permissions.open_file(path, disk.WRITE | disk.CREATE)
    try:
        acquire(fd, what, timeout, if_stopped=if_stopped)
        yield
    finally:
        disk.close(fd)


@contextmanager
def locked_if_there(
    path: Path, what: str, timeout: float, *, if_stopped: float | None = None
) -> Iterator[bool]:
    """Hold the lock file at `path` where it stands, also where it cannot be written; whether it does.

    Raises as `acquire`.
    """
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        yield False
        return
    try:
        acquire(fd, what, timeout, if_stopped=if_stopped)
        yield True
    finally:
        disk.close(fd)


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock file at `path`; one that does not stand is nobody's."""
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        return False
    try:
        return not _try(fd)
    finally:
        disk.close(fd)


def _try(fd: int) -> bool:
    try:
        disk.lock(fd)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
            return False
        raise
    return True


def holder(fd: int) -> str:
    """Who holds a lock on the open file `fd`, for people, as far as the system tells: `process 123`."""
    holders = _holders(fd)
    if not holders:
        return "another process"
    return f"process {', '.join(sorted(holders))}" + (", which is stopped" if _is_stopped(fd) else "")


def _is_stopped(fd: int) -> bool:
    """Whether all that hold the lock are stopped, as far as the system tells."""
    holders = _holders(fd)
    return bool(holders) and all(_state(pid) in ("T", "t") for pid in holders)


def _state(pid: str) -> str:
    """One letter, as Linux tells of a process: proc(5), /proc/pid/stat."""
    return _told_by(pid, "stat").rpartition(")")[2].strip()[:1]


def _holders(fd: int) -> set[str]:
    """The processes that hold a flock on this file, as Linux lists them in /proc/locks."""
    inode = f":{disk.status(fd).st_ino}"
    listing = _told_by("locks").splitlines()
    fields = [line.split() for line in listing if " FLOCK " in line and "->" not in line]
    return {line[4] for line in fields if line[5].endswith(inode)}


def _told_by(*path: str) -> str:
    """What a file of /proc says; nothing where there is none."""
    try:
        return Path(_PROC, *path).read_text(errors="replace")
    except OSError:
        return ""
