"""SQLite, from a package that can load extensions; knows nothing about the schema.

Many builds of Python cannot load extensions, so the first of pysqlite3, sqlean and sqlite3 that can is used.
If none can, everything except vectors works.
"""

import errno
import os
import sqlite3
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import msgspec

from memlog.eventlog.errors import DatabaseError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.file_io import status_at, write_all
from memlog.eventlog.files.forks import keep_object_alive

Connection = sqlite3.Connection
"""A connection; the classes of pysqlite3 and sqlean have the same methods."""

Mode = Literal["bulk", "write", "immutable", "alone", "look"]
"""`bulk`: a new, unpublished file. `immutable`: a file in a read-only folder. `alone`: a file with a WAL but
no room for its index: SQLite keeps the index in memory, and no other process can open the file. `look`: reads
a few rows, and no vectors."""

_MINIMUM = (3, 40)
_FULL = 13  # SQLITE_FULL
_DISK_ERRORS = (10, _FULL)  # with SQLITE_IOERR, which a file size limit gives
_NOT_DAMAGE = (3, 4, 5, 6, 9, 10, 13, 14, 15, 22, 23)
"""SQLITE_PERM, ABORT, BUSY, LOCKED, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, NOLFS, AUTH: not caused by
the bytes of the file. https://www.sqlite.org/rescode.html"""
DAMAGED: Final = "damaged"
"""The code of an error after which the read model must be replaced."""
NO_ROOM: Final = "no_room"
"""The code of the error raised if the file system has no space or inodes left for SQLite's side files."""
INHERITED: Final = "inherited"
"""The code of the error raised if the parent process had the file open when it forked."""
_OUT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SIDE_FILE_BYTES = 32 * 1024
"""SQLite extends -shm in steps of 32 KiB, and cannot read a database in WAL mode without the first one.
https://www.sqlite.org/walformat.html#the_wal_index_file_format"""
_NO_ROOM = "free some disk space, then run store.maintenance.project(); the log is intact"
DISPOSABLE = "rebuild the read model: store.maintenance.project(from_scratch=True)"
"""The hint of an error after which the read model must be replaced."""
_CANDIDATES = ("pysqlite3", "sqlean", "sqlite3")

_NO_TEMPORARY_FILES = "temp_store = MEMORY"
"""Otherwise SQLite would write its sorts, statement journals and VACUUM copies to the system's temporary
folder, outside the store. This is the default in pysqlite3's wheels. With 80,000 messages, a rebuild takes
122 MB, 5 MB more than with half of them."""

_PRAGMAS: dict[Mode, tuple[str, ...]] = {
    # A build is worthless after a crash; it is synced once, before publication. Foreign keys are checked as a
    # whole at the end, at a fraction of the cost.
    "bulk": (
        "journal_mode = OFF",
        "synchronous = OFF",
        "locking_mode = EXCLUSIVE",
        "cache_size = -65536",
        "foreign_keys = OFF",
    ),
    # NORMAL: after a power cut the read model may be behind its log, but never inconsistent; the next
    # catch-up reads the missing events again.
    "write": ("synchronous = NORMAL", "foreign_keys = ON"),
    "immutable": (),
    "alone": ("locking_mode = EXCLUSIVE", "query_only = ON"),
    "look": (),
}


@cache
def choose_binding() -> ModuleType:
    """Return the SQLite module to use. Raises DatabaseError if none has SQLite 3.40 or newer."""
    found = [import_module(name) for name in _CANDIDATES if find_spec(name) is not None]
    usable = [module for module in found if module.sqlite_version_info >= _MINIMUM]
    if not usable:
        raise DatabaseError(
            f"SQLite {found[-1].sqlite_version} is too old",
            hint="install 3.40 or newer: pip install pysqlite3",
        )
    return next((module for module in usable if _loads_extensions(module)), usable[0])


@cache
def error_types_of_binding() -> tuple[type[Exception], ...]:
    """Return the binding's exception types; pysqlite3's do not derive from `sqlite3.Error`."""
    return (choose_binding().Error,)


def describe_binding() -> str:
    """Return the name of the binding and its SQLite version, such as `pysqlite3 3.53.4`."""
    return f"{choose_binding().__name__} {choose_binding().sqlite_version}"


def why_no_vectors() -> str | None:
    """Return the reason why vector search does not work with this SQLite; None if it does."""
    if not _loads_extensions(choose_binding()):
        return f"{describe_binding()} cannot load extensions; pysqlite3 and sqlean.py can"
    path = _vec0_path()
    return "the package sqlite-vec is not installed" if path is None else _why_not_loaded(path)


def version_of_sqlite_vec(db: Connection) -> str | None:
    """Return the version of sqlite-vec; None if vector search does not work."""
    if why_no_vectors() is not None:
        return None
    (version,) = db.execute("SELECT vec_version()").fetchone()
    return str(version).removeprefix("v")


def connect(path: Path | None, mode: Mode) -> Connection:
    """Open the existing database at `path`, or a new one in memory if `path` is None.

    Threads may share the connection, but must take turns. Raises DatabaseError; if its code is NO_ROOM,
    `connect_without_side_files` can still read the file.
    """
    try:
        return _open_database(path, mode)
    except DatabaseError as error:
        why = _why_no_side_file(path) if path is not None and mode == "write" else None
        if why is None:
            raise
        message = f"{path}: SQLite cannot create a file beside it: {why}"
        raise DatabaseError(message, hint=_NO_ROOM, code=NO_ROOM) from error


def connect_without_side_files(path: Path) -> Connection:
    """Open a database for reading without room for SQLite's side files. Raises DatabaseError."""
    has_commits_beside = _file_size(path.with_name(f"{path.name}-wal")) > 0
    return connect(path, "alone" if has_commits_beside and not _has_wal_index(path) else "immutable")


def _open_database(path: Path | None, mode: Mode) -> Connection:
    if path is not None and has_inherited_connection(path):
        message = f"{path}: another thread had it open when this process was forked"
        raise DatabaseError(message, hint="fork while no thread is reading, or use spawn", code=INHERITED)
    uri = "file::memory:" if path is None else f"{path.absolute().as_uri()}?{_access_mode(path, mode)}"
    with converting_errors(path or "a database in memory"):
        db: Connection = choose_binding().connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=5.0,
            factory=make_connection_type(choose_binding()),
        )
        if path is not None:
            track_connection(db, path)
        for pragma in (_NO_TEMPORARY_FILES, *_PRAGMAS[mode]):
            db.execute(f"PRAGMA {pragma}")
        if mode != "look" and why_no_vectors() is None:
            _load_vec0(db)
    return db


def _why_no_side_file(path: Path) -> str | None:
    """Return the reason why the file system has no room for another side file; None if it has room."""
    # Zeros, which SQLite does not take for a journal if a kill leaves them.
    probe = path.with_name(f"{path.name}-journal")
    try:
        fd = file_io.open_file(probe, disk.WRITE | disk.NEW)
        try:
            write_all(fd, bytes(_SIDE_FILE_BYTES))
        finally:
            disk.close(fd)
            disk.unlink(probe)
    except OSError as error:
        return error.strerror if error.errno in _OUT_OF_ROOM else None
    return None


def _access_mode(path: Path, mode: Mode) -> str:
    if mode == "look":
        return "mode=ro"
    if mode != "immutable":
        return "mode=rw"
    # A writer, running or killed, has commits in the WAL, which immutable ignores. SQLite needs both side
    # files to read them, and cannot create or extend one here.
    return (
        "mode=ro" if _has_wal_index(path) and path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    )


def measure_database(db: Connection) -> int:
    """Return the size of a database in bytes, including pages that are still in its WAL."""
    ((pages,), (page_size,)) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
    )
    return int(pages * page_size)


def is_file_of_wal(name: str) -> bool:
    """Whether this is a file that SQLite keeps beside a database while a process has it open."""
    return name.endswith(("-wal", "-shm"))


def _has_wal_index(path: Path) -> bool:
    """Whether the -shm file has its initial size; on a full disk, SQLite leaves one of 3 bytes."""
    return _file_size(path.with_name(f"{path.name}-shm")) >= _SIDE_FILE_BYTES


def _file_size(path: Path) -> int:
    status = status_at(path)
    return 0 if status is None else status.st_size


@contextmanager
def converting_errors(path: Path | str) -> Iterator[None]:
    """Convert SQLite errors in the context to DatabaseError. path: the file to name in messages."""
    try:
        yield
    except error_types_of_binding() as error:
        result = _result_code(error)
        raise DatabaseError(
            f"{path}: {error}",
            hint=_NO_ROOM if result in _DISK_ERRORS else DISPOSABLE,
            code=NO_ROOM if result == _FULL else DAMAGED if _is_damage_error(error) else None,
        ) from error


def _result_code(error: Exception) -> int | None:
    """Return SQLite's primary result code; None if the binding itself raised the error."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy_error(error: Exception) -> bool:
    """Whether another process held the lock for too long (SQLITE_BUSY, SQLITE_LOCKED)."""
    return _result_code(error) in (5, 6)


def is_statement_error(error: Exception) -> bool:
    """Whether the SQL statement itself is wrong (SQLITE_ERROR, or an error raised by the binding)."""
    return _result_code(error) in (None, 1)


def _is_damage_error(error: Exception) -> bool:
    """Whether the error means that the file is damaged.

    This includes missing tables and violated constraints, since memlog's statements are correct.
    """
    code = _result_code(error)
    if code is None:
        return str(error).startswith("Could not decode")
    return code not in _NOT_DAMAGE


def fetch_required_row(rows: sqlite3.Cursor) -> tuple[Any, ...]:
    """Return the first row of a query that must have one in every intact read model.

    Raises DatabaseError with the code DAMAGED if there is none.
    """
    row: tuple[Any, ...] | None = rows.fetchone()
    if row is None:
        raise DatabaseError("a row of the read model is missing", hint=DISPOSABLE, code=DAMAGED)
    return row


def count_rows(db: Connection, rows: str) -> int:
    """Count rows. rows: the name of a table, optionally followed by a WHERE clause."""
    (count,) = db.execute(f"SELECT count(*) FROM {rows}").fetchone()
    return int(count)


def remove_database(path: Path) -> None:
    """Remove a closed database file and its side files."""
    for side in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            disk.unlink(path.with_name(path.name + side))


@contextmanager
def transaction(db: Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """Run a transaction that commits at the end of the context and rolls back on any error.

    With DEFERRED, it joins a transaction that is already open.
    """
    if kind == "DEFERRED" and db.in_transaction:
        yield
        return
    db.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


_probe_lock = threading.Lock()


@cache
def _loads_extensions(module: ModuleType) -> bool:
    with _probe_lock:
        db = module.connect(":memory:")
        try:
            db.enable_load_extension(True)
        except (AttributeError, module.NotSupportedError):
            return False
        finally:
            db.close()
        return True


@cache
def _why_not_loaded(path: Path) -> str | None:
    """Return SQLite's error if sqlite-vec is damaged or built for another platform; otherwise None."""
    db = choose_binding().connect(":memory:")
    try:
        _load_vec0(db)
    except error_types_of_binding() as error:
        return f"{describe_binding()} cannot load {path}: {error}"
    finally:
        db.close()
    return None


def _load_vec0(db: Connection) -> None:
    db.enable_load_extension(True)
    try:
        db.load_extension(str(_vec0_path()))
    finally:
        # So that no SQL can load another extension.
        db.enable_load_extension(False)


@cache
def _vec0_path() -> Path | None:
    """Find sqlite-vec without importing sqlite_vec, which would import numpy (130 ms); None if missing."""
    spec = find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "vec0"


Row = dict[str, Any]
"""A row's values, keyed by column."""


def to_json_list(values: Collection[Any]) -> str:
    """Encode values as JSON for `json_each`; `json.dumps` is four times slower and holds the GIL."""
    return msgspec.json.encode(values).decode()


def insert_rows(
    db: Connection,
    table: str,
    columns: str,
    rows: Iterable[tuple[Any, ...]],
    *,
    empty_is_null: Sequence[str] = (),
) -> None:
    """Insert rows. columns: the names of their columns, separated as in SQL.

    empty_is_null: the columns in which "" is stored as NULL. Python's sqlite3 is fast only for text, numbers
        and bytearrays; binding None or bytes takes 1.2 µs longer, and most messages have null columns.
    """
    places = ("nullif(?, '')" if name in empty_is_null else "?" for name in columns.split(", "))
    db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(places)})", rows)


def upsert_row(
    db: Connection, table: str, key: Sequence[str], row: Row, *, newer_by: str | None = None
) -> None:
    """Insert a row, or replace the one with the same `key`; with `newer_by`, only if that value increases."""
    db.execute(_upsert_sql(table, tuple(row), tuple(key), newer_by), row)


def delete_rows(db: Connection, table: str, where: str, values: Sequence[Any]) -> None:
    """Delete the rows that match `where`."""
    db.execute(f"DELETE FROM {table} WHERE {where}", values)


def update_rows(db: Connection, table: str, column: str, where: str, rows: Iterable[Sequence[Any]]) -> None:
    """Update one column. rows: for each update, the new value and the parameters of `where`."""
    db.executemany(f"UPDATE {table} SET {column} = ? WHERE {where}", rows)


# Cached: one event needs several of these statements, each with up to twenty columns.
@lru_cache
def _upsert_sql(table: str, columns: tuple[str, ...], key: tuple[str, ...], newer_by: str | None) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(':' + name for name in columns)})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        + (f" WHERE excluded.{newer_by} > {newer_by}" if newer_by else "")
    )


# SQLite keeps in memory which locks a process holds on a file. A forked child has the memory but not the
# locks, so it must neither use nor close such a connection, nor open its file: each would rely on those
# locks.
# https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_

_FileId = tuple[int, int]
_open_connections: dict[int, tuple["weakref.ref[sqlite3.Connection]", _FileId]] = {}
_inherited_files: set[_FileId] = set()


@cache
def make_connection_type(binding: ModuleType) -> type[sqlite3.Connection]:
    """Return a subclass of the binding's connection class whose connections are untracked when closed."""
    base: type[sqlite3.Connection] = binding.Connection

    class Connection(base):  # type: ignore[valid-type,misc]
        def close(self) -> None:
            super().close()
            _open_connections.pop(id(self), None)

    return Connection


def track_connection(db: sqlite3.Connection, path: Path) -> None:
    """Track an open connection to the file at `path` until it is closed or garbage-collected."""
    status = status_at(path)
    if status is not None:
        number = id(db)
        ref = weakref.ref(db, lambda _: _open_connections.pop(number, None))
        _open_connections[number] = ref, (status.st_dev, status.st_ino)


def has_inherited_connection(path: Path) -> bool:
    """Whether the parent of this process had the file at `path` open when it forked."""
    status = status_at(path) if _inherited_files else None
    return status is not None and (status.st_dev, status.st_ino) in _inherited_files


def _keep_connections_alive() -> None:
    """Leave all connections to the parent, keeping them alive, since collecting one would close it."""
    for ref, file_id in _open_connections.values():
        db = ref()
        if db is not None:
            keep_object_alive(db)
            _inherited_files.add(file_id)
    _open_connections.clear()


os.register_at_fork(after_in_child=_keep_connections_alive)
