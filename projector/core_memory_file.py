"""The core memory as a file, model/core_memory.json, for people and programs to read.

It is a view: the log decides. What memlog wrote there last is kept beside it, so that a change by hand is
known, reported, and left in place until it is imported or deleted.
"""

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from shlex import quote

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.layout import CORE_VIEW, CORE_VIEW_PENDING, CORE_VIEW_WRITTEN, PROJECTOR_LOCK
from memlog.eventlog.locks import locked
from memlog.eventlog.streams import shown
from memlog.projector import atomic_file
from memlog.projector.sqlite import Connection

Sections = dict[str, dict[str, str]]
"""The values by key, of `user` and of `agent`."""


def core_memory(db: Connection) -> Sections:
    """The core memory as the log leaves it, keys in order."""
    sections: Sections = {"user": {}, "agent": {}}
    for section, key, value in db.execute(
        "SELECT section, key, value FROM core_memory ORDER BY section, key"
    ):
        sections[section][key] = value
    return sections


class Shown(msgspec.Struct):
    """What the view says, and what memlog wrote there before it was changed by hand, in bytes.

    base: None where that is not known.
    """

    view: bytes
    base: bytes | None


class CoreView:
    """The view of the store at `store`.

    Three files, written in this order, so that a kill between two of them is never taken for a change by
    hand: `pending`, what the view is about to say; `path`, the view; `written`, what it says by then.

    Every write is under the projector lock, which is waited for `lock_timeout` seconds.
    """

    def __init__(self, store: Path, lock_timeout: float) -> None:
        self.path = store / CORE_VIEW
        self._written = store / CORE_VIEW_WRITTEN
        self._pending = store / CORE_VIEW_PENDING
        self._lock = store / PROJECTOR_LOCK
        self._lock_timeout = lock_timeout
        self._told: bytes | None = None

    def is_up_to(self, db: Connection) -> bool:
        """Whether it says what `db` does, and is known to: a look without the lock."""
        due = _rendered(core_memory(db))
        return atomic_file.read(self.path) == atomic_file.read(self._written) == due

    def state(self) -> list[tuple[int, int, int] | None]:
        """Inode, size and time of change of its files; None for one that is missing."""
        return [_state(path) for path in (self.path, self._written)]

    def bring_up(self, db: Connection) -> str | None:
        """Write what `db` says. Under the projector lock.

        Returns what to tell of a change by hand, which is left in place: once for each, as long as this view
        is in use; else None.

        Raises:
            OSError: it cannot be read, or written.
        """
        due = _rendered(core_memory(db))
        view = atomic_file.read(self.path)
        if view not in (None, due, atomic_file.read(self._written), atomic_file.read(self._pending)):
            return self._told_of(view)
        atomic_file.write(self._pending, due)
        if view != due:
            atomic_file.replace(self.path, due)
        disk.rename(self._pending, self._written)
        return None

    def read(self) -> Shown | None:
        """The view and what it was before a change by hand, which is then no news; None where none stands.

        Raises:
            Busy: a projector held the lock for too long.
        """
        with self._locked():
            view, written = atomic_file.read(self.path), atomic_file.read(self._written)
            if view is None:
                return None
            self._told = view
            return Shown(view, view if view == atomic_file.read(self._pending) else written)

    def take_over(self, view: bytes) -> None:
        """What the view says has been appended: it is as if memlog had written it.

        Nothing changes where it says something else by now.

        Raises:
            Busy: a projector held the lock for too long.
        """
        with self._locked():
            if atomic_file.read(self.path) == view:
                atomic_file.replace(self._written, view)

    def leave_no_older(self, db: Connection) -> None:
        """Remove what a kill left beside the view, which may say what was set before.

        A view that was changed by hand stays, as does what memlog wrote there last.

        Raises:
            Busy: a projector held the lock for too long.
        """
        with self._locked():
            for path in (self.path, self._written):
                with suppress(FileNotFoundError):
                    disk.unlink(path.with_name(f"{path.name}.new"))
            if self.is_up_to(db):
                with suppress(FileNotFoundError):
                    disk.unlink(self._pending)

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._lock, "the read model", self._lock_timeout)

    def _told_of(self, edited: bytes | None) -> str | None:
        if edited == self._told:
            return None
        self._told = edited
        path = shown(self.path)
        return (
            f"{path} was changed by hand: memlog core import {quote(path)} appends the changes,"
            " deleting the file drops them"
        )


def _rendered(sections: Sections) -> bytes:
    return msgspec.json.format(msgspec.json.encode(sections), indent=2) + b"\n"


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = disk.look(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
