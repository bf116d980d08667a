"""The core memory as a file, model/core_memory.json, for people and programs to read.

It is a view of the log. Next to it is a copy of the version last written by memlog, which reveals manual
changes. memlog reports these changes and leaves them in place until they are imported or the file is deleted.
"""

from contextlib import AbstractContextManager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import CORE_VIEW, CORE_VIEW_PENDING, CORE_VIEW_WRITTEN, PROJECTOR_LOCK
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.projector.sqlite import Connection

Sections = dict[str, dict[str, str]]
"""The sections `user` and `agent`, each a dict of values."""


def read_core_memory(db: Connection) -> Sections:
    """Return the store-wide core memory, sorted by key."""
    sections: Sections = {"user": {}, "agent": {}}
    rows = db.execute("SELECT section, key, value FROM core_memory WHERE chat_id = '' ORDER BY section, key")
    for section, key, value in rows:
        sections[section][key] = value
    return sections


class Shown(msgspec.Struct):
    """The bytes of the view, and of memlog's version before any manual change (`base`), if known."""

    view: bytes
    base: bytes | None


class CoreView:
    """The core memory view of the store at `store`.

    It consists of three files, written in this order, so that a kill between two writes never looks like a
    manual change: `pending`, the next version of the view; `path`, the view; `written`, a copy of it.

    Every write acquires the projector lock; lock_timeout: seconds to wait for it.
    """

    def __init__(self, store: Path, lock_timeout: float) -> None:
        self.path = store / CORE_VIEW
        self._written = store / CORE_VIEW_WRITTEN
        self._pending = store / CORE_VIEW_PENDING
        self._lock = store / PROJECTOR_LOCK
        self._lock_timeout = lock_timeout
        self._noted: bytes | None = None
        self._equal: tuple[list[tuple[int, ...]], bytes] | None = None
        """The state of the view and its copy when they were last equal, and their bytes."""

    def is_current(self, db: Connection) -> bool:
        """Whether the view and its copy match the core memory in `db`; checked without the lock."""
        due, state = _render_core_memory(read_core_memory(db)), self.read_file_versions()
        if self._equal == (state, due):
            return True
        is_equal = file_io.read_file(self.path) == file_io.read_file(self._written) == due
        self._equal = (state, due) if is_equal else None
        return is_equal

    def read_file_versions(self) -> list[tuple[int, ...]]:
        """Return the file versions of the view and its copy; see `file_version`."""
        return [file_io.file_version(file_io.status_at(path)) for path in (self.path, self._written)]

    def write_current_memory(self, db: Connection) -> str | None:
        """Write the core memory in `db` to the view; the caller must hold the projector lock. Raises OSError.

        Leaves a manual change in place, and returns a note about it the first time; otherwise returns None.
        """
        due = _render_core_memory(read_core_memory(db))
        view = file_io.read_file(self.path)
        if view not in (
            None,
            due,
            file_io.read_file(self._written),
            file_io.read_file(self._pending),
        ):
            return self._note_manual_change_once(view)
        file_io.write_new_file(self._pending, due)
        if view != due:
            file_io.replace_file(self.path, due)
        disk.rename(self._pending, self._written)
        return None

    def read_view(self) -> Shown | None:
        """Return the view and memlog's last version; None if there is no view. Notes any manual change.

        A change that was noted is not reported again. Raises Busy.
        """
        with self._holding_projector_lock():
            view, written = (
                file_io.read_file(self.path),
                file_io.read_file(self._written),
            )
            if view is None:
                return None
            self._noted = view
            return Shown(view, view if view == file_io.read_file(self._pending) else written)

    def accept_view(self, view: bytes) -> None:
        """Accept `view`, whose changes were appended, as memlog's version, unless the file has changed again.

        Raises Busy.
        """
        with self._holding_projector_lock():
            if file_io.read_file(self.path) == view:
                file_io.replace_file(self._written, view)

    def remove_stale_copies(self, db: Connection) -> None:
        """Remove files that a killed process left next to the view, which may hold older values. Raises Busy.

        A manually changed view is kept, and so is the copy of memlog's last version.
        """
        with self._holding_projector_lock():
            for path in (self.path, self._written):
                with suppress(FileNotFoundError):
                    disk.unlink(path.with_name(f"{path.name}.new"))
            if self.is_current(db):
                with suppress(FileNotFoundError):
                    disk.unlink(self._pending)

    def _holding_projector_lock(self) -> AbstractContextManager[None]:
        return holding_lock(self._lock, "the read model", self._lock_timeout)

    def _note_manual_change_once(self, edited: bytes | None) -> str | None:
        if edited == self._noted:
            return None
        self._noted = edited
        path = escape_invalid_utf8(self.path)
        return (
            f"{path} was changed by hand: store.core.import_file({str(path)!r}) appends the changes,"
            " deleting the file drops them"
        )


def _render_core_memory(sections: Sections) -> bytes:
    return msgspec.json.format(msgspec.json.encode(sections), indent=2) + b"\n"
