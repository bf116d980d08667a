"""Advisory file locks with a deadline, by flock: the kernel frees them at kill -9."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memlog.eventlog import disk, privacy
from memlog.eventlog.errors import Busy

_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.010
_LISTING = Path("/proc/locks")


def acquire(fd: int, what: str, timeout: float) -> None:
    """Lock the open file `fd` for this descriptor alone, waiting up to `timeout` seconds.

    Raises:
        Busy: it was not free in time; the message names the process that holds it where the system tells.
    """
    deadline = time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while not _try(fd):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise Busy(
                f"{what} is locked by {_holder(fd)}",
                hint="try again, or end that process",
            )
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, _LONGEST_PAUSE)


def release(fd: int) -> None:
    """Free what `acquire` locked."""
    disk.unlock(fd)


@contextmanager
def locked(path: Path, what: str, timeout: float) -> Iterator[None]:
    """Hold the lock file at `path`, which is made where it does not stand and is never unlinked."""
    fd = privacy.open_file(path, disk.WRITE | disk.CREATE)
    try:
        acquire(fd, what, timeout)
        yield
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


def _holder(fd: int) -> str:
    """The processes that hold a flock on this file, as Linux lists them in /proc/locks."""
    inode = f":{disk.status(fd).st_ino}"
    try:
        listing = _LISTING.read_text()
    except OSError:
        return "another process"
    fields = [line.split() for line in listing.splitlines() if " FLOCK " in line and "->" not in line]
    holders = {line[4] for line in fields if line[5].endswith(inode)}
    return f"process {', '.join(sorted(holders))}" if holders else "another process"
