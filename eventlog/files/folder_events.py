"""Waits for the file system to report changes in folders.

The reports are only hints: some arrive late, the first ones for a new folder may be missing, and the kernel
silently drops those that overflow its queue (16,384 on Linux). So callers must also poll occasionally.
"""

import stat
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from threading import Event

from memlog.eventlog.files import disk

STEP_MS = 20
GROUP_MS = 60
"""Milliseconds of quiet before changes are reported, and the longest delay."""

_TICK_MS = 100
_RETRY_SECONDS = 60.0

_RESTS_AFTER = 10.0
_RESTING_STEP_MS = 500
_RESTING_TICK_MS = 2000
"""After 10 quiet seconds, check for changes twice a second, so that an idle folder takes .03% of a core
instead of .24%."""

_Identity = tuple[int, int]
_Changes = Generator[set[str], None, None]


class ChangeHints:
    """Waits for changes in folders. Must be closed after use.

    is_deep: also watch subfolders, including new ones. Only folders are watched, never single files.
    stop: an event that another thread sets to stop waiting.
    step_ms, group_ms: see STEP_MS and GROUP_MS. tick_ms: how much longer than requested a wait may take.
    rests: whether to check less often after a quiet period.
    """

    def __init__(
        self,
        *,
        is_deep: bool,
        stop: Event,
        step_ms: int = STEP_MS,
        group_ms: int = GROUP_MS,
        tick_ms: int = _TICK_MS,
        rests: bool = True,
    ) -> None:
        self._is_deep = is_deep
        self._stop = stop
        self._step_ms, self._group_ms, self._tick_ms = step_ms, group_ms, tick_ms
        self._watched: dict[Path, _Identity] = {}
        self._changes: _Changes | None = None
        self._next_try = 0.0
        self._rests, self.is_resting = rests, False
        self._changed = time.monotonic()

    @property
    def works(self) -> bool:
        """Whether the system reports changes; it may not, for example if it has run out of watches."""
        return self._changes is not None

    def wait_for_changes(self, folders: Iterable[Path], seconds: float) -> set[str]:
        """Return the paths that changed; an empty set if no change was reported within `seconds`.

        folders: the folders to watch from now on, which may be missing and may differ between calls. If they
          differ from those of the last call, or one was recreated, all are returned, since changes may have
          gone unnoticed.
        """
        existing = _identify_folders(folders)
        if self._rests and self.is_resting != (time.monotonic() - self._changed > _RESTS_AFTER):
            self.is_resting = not self.is_resting
            self._watch_folders(existing)
            return {str(folder) for folder in existing}
        if existing != self._watched or (not self.works and existing and time.monotonic() >= self._next_try):
            self._watch_folders(existing)
            return {str(folder) for folder in existing}
        return self._next_changes(time.monotonic() + seconds)

    def close(self) -> None:
        """Stop watching."""
        if self._changes is not None:
            self._changes.close()
        self._watched, self._changes = {}, None

    def _next_changes(self, deadline: float) -> set[str]:
        if self._changes is None:
            self._stop.wait(max(0.0, deadline - time.monotonic()))
            return set()
        try:
            for changed in self._changes:
                if changed:
                    self._changed = time.monotonic()
                if changed or time.monotonic() >= deadline:
                    return changed
        except RuntimeError:
            # Raised by watchfiles, for example if no watch is left for a new folder.
            self._postpone_watching()
        return set()

    def _watch_folders(self, folders: dict[Path, _Identity]) -> None:
        self.close()
        if not folders:
            return
        times = (
            (_RESTING_STEP_MS, self._group_ms, _RESTING_TICK_MS)
            if self.is_resting
            else (self._step_ms, self._group_ms, self._tick_ms)
        )
        changes = _watch_changes(list(folders), self._stop, times, is_deep=self._is_deep)
        self._watched, self._changes = folders, changes
        try:
            # The watch is active once the first answer has come.
            next(changes, None)
        except FileNotFoundError:
            # A folder was removed meanwhile: the next call retries.
            self.close()
            self._stop.wait(_TICK_MS / 1000)
        except (OSError, RuntimeError):
            self._postpone_watching()

    def _postpone_watching(self) -> None:
        self._changes = None
        self._next_try = time.monotonic() + _RETRY_SECONDS


def _watch_changes(
    folders: list[Path], stop: Event, times: tuple[int, int, int], *, is_deep: bool
) -> _Changes:
    """Yield the changed paths after each change, and an empty set after each tick.

    times: step, group and tick, in milliseconds.
    """
    step_ms, group_ms, tick_ms = times
    # Imported here: an append watches nothing.
    from watchfiles import watch

    for changes in watch(
        *folders,
        watch_filter=None,
        debounce=group_ms,
        step=step_ms,
        rust_timeout=tick_ms,
        yield_on_timeout=True,
        stop_event=stop,
        recursive=is_deep,
        ignore_permission_denied=True,
    ):
        yield {path for _, path in changes}


def _identify_folders(folders: Iterable[Path]) -> dict[Path, _Identity]:
    existing = {}
    for folder in folders:
        try:
            status = disk.status_of_path(folder, follow=True)
        except OSError:
            # Missing, or not accessible.
            continue
        if stat.S_ISDIR(status.st_mode):
            existing[folder] = (status.st_dev, status.st_ino)
    return existing
