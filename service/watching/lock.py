"""The lock of the process that watches a store: `watch.lock` in the store's folder.

The file is never unlinked: the kernel frees the lock, also at kill -9.
"""

from pathlib import Path

from memlog.eventlog import disk, locks, permissions
from memlog.eventlog.errors import Busy
from memlog.eventlog.file_io import is_at
from memlog.eventlog.layout import WATCH_LOCK
from memlog.eventlog.streams import shown


class WatchLock:
    """The lock of the store at `store`, which is taken at once. Close it after use.

    Raises:
        Busy: another process watches the store; the message names it if the system knows it.
        OSError: the file cannot be made.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store / WATCH_LOCK
        self._fd: int | None = None
        self.take()

    def take(self) -> None:
        """Lock the present file, which is made if it is missing. Raises as the class."""
        self.close()
        self._fd = permissions.open_file(self._path, disk.WRITE | disk.CREATE)
        try:
            locks.acquire(self._fd, "the store", 0)
        except Busy as busy:
            who = locks.holder(self._fd)
            self.close()
            raise Busy(
                f"{shown(self._store)} is watched already, by {who}", hint="one watch does for all"
            ) from busy

    def close(self) -> None:
        """Let another process watch."""
        if self._fd is not None:
            disk.close(self._fd)
        self._fd = None

    def holds(self) -> bool:
        """Whether the locked store still exists: its folder may be removed and made again."""
        if self._fd is None:
            return False
        try:
            return is_at(self._path, disk.status(self._fd))
        except OSError:
            return False
