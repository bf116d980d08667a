"""What the file system tells of changes below folders.

Its events are hints only: some come late, a new folder's first may not come at all, and what a queue of the
kernel has no room for (16,384 of them on Linux) is dropped without a word. Who waits here looks again after a
while whatever was told.
"""

import stat
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from threading import Event

from memlog.eventlog import disk

STEP_MS = 20
GROUP_MS = 60
"""How long the file system must be quiet before changes are told, and how long they are held back at most."""

_TICK_MS = 100
_BEFORE_ANOTHER_TRY = 60.0

_Identity = tuple[int, int]
_Changes = Generator[set[str], None, None]


class ChangeHints:
    """Waits until something changes in folders. Close it after use.

    is_deep: also in the folders below them, those to come included. Folders are watched, never files.
    stop: set by another thread, it ends the waiting.
    step_ms, group_ms: see above.
    """

    def __init__(
        self, *, is_deep: bool, stop: Event, step_ms: int = STEP_MS, group_ms: int = GROUP_MS
    ) -> None:
        self._is_deep = is_deep
        self._stop = stop
        self._step_ms, self._group_ms = step_ms, group_ms
        self._watched: dict[Path, _Identity] = {}
        self._changes: _Changes | None = None
        self._next_try = 0.0

    @property
    def works(self) -> bool:
        """Whether the system tells of changes: it may have no watches left."""
        return self._changes is not None

    def wait(self, folders: Iterable[Path], seconds: float) -> set[str]:
        """The paths that have changed; none where nothing was told of for so many seconds.

        folders: those to watch from now on, which may differ from call to call, and may be missing. Where
            they are others than before, or one was made anew, all are said to have changed: nobody told of
            what happened in them meanwhile.
        """
        standing = _standing(folders)
        if standing != self._watched or (not self.works and standing and time.monotonic() >= self._next_try):
            self._watch(standing)
            return {str(folder) for folder in standing}
        return self._told(time.monotonic() + seconds)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._changes is not None:
            self._changes.close()
        self._watched, self._changes = {}, None

    def _told(self, deadline: float) -> set[str]:
        if self._changes is None:
            self._stop.wait(max(0.0, deadline - time.monotonic()))
            return set()
        try:
            for changed in self._changes:
                if changed or time.monotonic() >= deadline:
                    return changed
        except RuntimeError:
            # watchfiles': such as that a new folder found no watch left.
            self._give_up()
        return set()

    def _watch(self, folders: dict[Path, _Identity]) -> None:
        self.close()
        if not folders:
            return
        changes = _changes(list(folders), self._stop, self._step_ms, self._group_ms, is_deep=self._is_deep)
        self._watched, self._changes = folders, changes
        try:
            # The watch stands when the first answer comes, and not before.
            next(changes, None)
        except FileNotFoundError:
            # A folder went meanwhile: the next call looks which stand.
            self.close()
            self._stop.wait(_TICK_MS / 1000)
        except (OSError, RuntimeError):
            self._give_up()

    def _give_up(self) -> None:
        """Until it is time for another try."""
        self._changes = None
        self._next_try = time.monotonic() + _BEFORE_ANOTHER_TRY


def _changes(folders: list[Path], stop: Event, step_ms: int, group_ms: int, *, is_deep: bool) -> _Changes:
    """The paths that have changed, at each change, and none of them ten times a second."""
    # Imported here: appending watches nothing.
    from watchfiles import watch

    for changes in watch(
        *folders,
        watch_filter=None,
        debounce=group_ms,
        step=step_ms,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        recursive=is_deep,
        ignore_permission_denied=True,
    ):
        yield {path for _, path in changes}


def _standing(folders: Iterable[Path]) -> dict[Path, _Identity]:
    """Those of `folders` that stand, each with what tells it from one made anew under its name."""
    found = {}
    for folder in folders:
        try:
            status = disk.look(folder, follow=True)
        except OSError:
            # It is not there, or is nobody's business.
            continue
        if stat.S_ISDIR(status.st_mode):
            found[folder] = (status.st_dev, status.st_ino)
    return found
