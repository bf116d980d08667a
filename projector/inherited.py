"""Connections that a forked child has from its parent.

SQLite keeps in memory which locks a process has on a file. A child has the memory and not the
locks, so it may neither use nor close such a connection, nor open its file: all would count on those locks.
https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
"""

import os
import sqlite3
import weakref
from functools import cache
from pathlib import Path
from types import ModuleType

from memlog.eventlog.file_io import status_at
from memlog.eventlog.forks import keep_for_ever

_FileId = tuple[int, int]
_open: dict[int, tuple["weakref.ref[sqlite3.Connection]", _FileId]] = {}
_inherited: set[_FileId] = set()


@cache
def connection_type(binding: ModuleType) -> type[sqlite3.Connection]:
    """The binding's connections, which are no longer remembered once they are closed."""
    base: type[sqlite3.Connection] = binding.Connection

    class Connection(base):  # type: ignore[valid-type,misc]
        def close(self) -> None:
            super().close()
            _open.pop(id(self), None)

    return Connection


def remember(db: sqlite3.Connection, path: Path) -> None:
    """Remember that a connection to the file at `path` is open, until it is closed or goes."""
    status = status_at(path)
    if status is not None:
        number = id(db)
        ref = weakref.ref(db, lambda _: _open.pop(number, None))
        _open[number] = ref, (status.st_dev, status.st_ino)


def is_inherited(path: Path) -> bool:
    """Whether the parent of this process had the file at `path` open when it forked."""
    status = status_at(path) if _inherited else None
    return status is not None and (status.st_dev, status.st_ino) in _inherited


def _abandon() -> None:
    """Leave every connection to the parent: one that goes is closed."""
    for ref, file_id in _open.values():
        db = ref()
        if db is not None:
            keep_for_ever(db)
            _inherited.add(file_id)
    _open.clear()


os.register_at_fork(after_in_child=_abandon)
