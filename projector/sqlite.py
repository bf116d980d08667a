"""SQLite, from a package that can load extensions. Knows nothing of memories.

Many Pythons are built without extension loading, so the first of pysqlite3, sqlean and sqlite3 that has it is
used. Without one, everything but vectors works.
"""

import errno
import sqlite3
import threading
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
from memlog.projector.limits import connection_type, is_inherited, remember

Connection = sqlite3.Connection
"""A connection; pysqlite3's and sqlean's have the same methods as the standard library's."""

Mode = Literal["bulk", "write", "immutable", "alone", "look"]
"""`bulk`: a new file that nobody else sees yet. `immutable`: a file in a folder that cannot be written.
`alone`: a file with commits beside it, without room for an index of them: SQLite keeps that in memory, and no
other process can open the file. `look`: a few rows are read, and no vectors."""

_MINIMUM = (3, 40)
_FULL = 13  # SQLITE_FULL
_OF_THE_DISK = (10, _FULL)  # with SQLITE_IOERR, which a file size limit gives
_NOT_OF_THE_FILE = (3, 4, 5, 6, 9, 10, 13, 14, 15, 22, 23)
"""SQLITE_PERM, ABORT, BUSY, LOCKED, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, NOLFS, AUTH: not caused by
the bytes of the file. https://www.sqlite.org/rescode.html"""
DAMAGED: Final = "damaged"
"""The code of an error after which another read model is to be built."""
NO_ROOM: Final = "no_room"
"""The code of an error if a sound database cannot be written, since SQLite keeps files beside it and the file
system is out of room, or of inodes."""
INHERITED: Final = "inherited"
"""The code of an error if the parent of this process had the file open when it forked."""
_OUT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SIDE_FILE_BYTES = 32 * 1024
"""SQLite makes -shm in steps of 32 KiB, and cannot read a database in WAL mode without the first one.
https://www.sqlite.org/walformat.html#the_wal_index_file_format"""
_NO_ROOM = "make room on the disk; the log is untouched, and store.maintenance.project() goes on from there"
DISPOSABLE = "the read model is disposable: store.maintenance.project(from_scratch=True)"
"""The hint under an error after which another read model is to be built."""
_CANDIDATES = ("pysqlite3", "sqlean", "sqlite3")

_NO_TEMPORARY_FILES = "temp_store = MEMORY"
"""SQLite's sorts, statement journals and the copy that VACUUM makes would otherwise go to the folder for
temporary files, outside the store. pysqlite3's wheels are built with this value; it makes the others alike.
Measured on 80,000 messages: a rebuild takes 122 MB, 5 MB more than on half of them."""

_PRAGMAS: dict[Mode, tuple[str, ...]] = {
    # Nothing of a build is worth keeping after a crash; it is synced once, before it is shown.
    # Foreign keys are checked as a whole at the end, which costs a fraction.
    "bulk": (
        "journal_mode = OFF",
        "synchronous = OFF",
        "locking_mode = EXCLUSIVE",
        "cache_size = -65536",
        "foreign_keys = OFF",
    ),
    # NORMAL: after a power cut the read model may be some events behind its log, never inconsistent,
    # and the next catch-up reads them again.
    "write": ("synchronous = NORMAL", "foreign_keys = ON"),
    "immutable": (),
    "alone": ("locking_mode = EXCLUSIVE", "query_only = ON"),
    "look": (),
}


@cache
def binding() -> ModuleType:
    """Return the SQLite module that is used.

    Raises:
        DatabaseError: none here is 3.40 or newer.
    """
    found = [import_module(name) for name in _CANDIDATES if find_spec(name) is not None]
    usable = [module for module in found if module.sqlite_version_info >= _MINIMUM]
    if not usable:
        raise DatabaseError(
            f"SQLite {found[-1].sqlite_version} is too old",
            hint="memlog needs 3.40 or newer: pip install pysqlite3",
        )
    return next((module for module in usable if _loads_extensions(module)), usable[0])


@cache
def error_types() -> tuple[type[Exception], ...]:
    """Return the exceptions of the binding: those of pysqlite3 do not derive from `sqlite3.Error`."""
    return (binding().Error,)


def described() -> str:
    """Return the binding and its SQLite: `pysqlite3 3.53.4`."""
    return f"{binding().__name__} {binding().sqlite_version}"


def why_no_vectors() -> str | None:
    """Return why vector search cannot work with this SQLite; None if it can."""
    if not _loads_extensions(binding()):
        return f"{described()} cannot load extensions; pysqlite3 and sqlean.py can"
    path = _vec0_path()
    return "the package sqlite-vec is not installed" if path is None else _why_not_loaded(path)


def vec_version(db: Connection) -> str | None:
    """Return the version of sqlite-vec; None if vector search cannot work."""
    if why_no_vectors() is not None:
        return None
    (version,) = db.execute("SELECT vec_version()").fetchone()
    return str(version).removeprefix("v")


def connect(path: Path | None, mode: Mode) -> Connection:
    """Open the database file at `path`, which must exist; None: a new database in memory.

    The connection may be used from several threads, one at a time.

    Raises:
        DatabaseError: it cannot be opened; with the code NO_ROOM `connect_without_room` can read it.
    """
    try:
        return _connected(path, mode)
    except DatabaseError as error:
        why = _why_no_side_file(path) if path is not None and mode == "write" else None
        if why is None:
            raise
        message = f"{path}: SQLite cannot create a file beside it: {why}"
        raise DatabaseError(message, hint=_NO_ROOM, code=NO_ROOM) from error


def connect_without_room(path: Path) -> Connection:
    """Open a database for reading, without room for the files that SQLite keeps beside it.

    Raises:
        DatabaseError: it cannot be opened.
    """
    has_commits_beside = _size(path.with_name(f"{path.name}-wal")) > 0
    return connect(path, "alone" if has_commits_beside and not _has_index(path) else "immutable")


def _connected(path: Path | None, mode: Mode) -> Connection:
    if path is not None and is_inherited(path):
        message = f"{path}: another thread had it open when this process was forked"
        raise DatabaseError(message, hint="fork while no thread reads, or start with spawn", code=INHERITED)
    uri = "file::memory:" if path is None else f"{path.absolute().as_uri()}?{_access(path, mode)}"
    with wrapped(path or "a database in memory"):
        db: Connection = binding().connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=5.0,
            factory=connection_type(binding()),
        )
        if path is not None:
            remember(db, path)
        for pragma in (_NO_TEMPORARY_FILES, *_PRAGMAS[mode]):
            db.execute(f"PRAGMA {pragma}")
        if mode != "look" and why_no_vectors() is None:
            _load_vec0(db)
    return db


def _why_no_side_file(path: Path) -> str | None:
    """Return why the file system has no room for another file beside the database; None if it has."""
    # Zeros, which SQLite takes for no journal whatever the name: a kill may leave them.
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


def _access(path: Path, mode: Mode) -> str:
    if mode == "look":
        return "mode=ro"
    if mode != "immutable":
        return "mode=rw"
    # A writer, running or killed, has commits beside the file, where immutable does not look.
    # SQLite needs both side files for them, and cannot make or extend one here.
    return "mode=ro" if _has_index(path) and path.with_name(f"{path.name}-wal").exists() else "immutable=1"


def _has_index(path: Path) -> bool:
    """Whether the -shm file has its initial size. On a full disk, SQLite leaves one of 3 bytes."""
    return _size(path.with_name(f"{path.name}-shm")) >= _SIDE_FILE_BYTES


def _size(path: Path) -> int:
    status = status_at(path)
    return 0 if status is None else status.st_size


@contextmanager
def wrapped(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into DatabaseError."""
    try:
        yield
    except error_types() as error:
        result = _result_code(error)
        raise DatabaseError(
            f"{path}: {error}",
            hint=_NO_ROOM if result in _OF_THE_DISK else DISPOSABLE,
            code=NO_ROOM if result == _FULL else DAMAGED if _is_damage(error) else None,
        ) from error


def _result_code(error: Exception) -> int | None:
    """SQLite's result code; None if the binding raised the error."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(error: Exception) -> bool:
    """Whether another process wrote for too long (SQLITE_BUSY, SQLITE_LOCKED)."""
    return _result_code(error) in (5, 6)


def is_of_the_statement(error: Exception) -> bool:
    """Whether the statement is wrong (SQLITE_ERROR, and errors of the binding)."""
    return _result_code(error) in (None, 1)


def _is_damage(error: Exception) -> bool:
    """Whether the file is unlike what memlog wrote, as far as SQLite or its binding sees.

    A missing table and a row that breaks a constraint are damage: memlog's statements are right.
    """
    code = _result_code(error)
    if code is None:
        return str(error).startswith("Could not decode")
    return code not in _NOT_OF_THE_FILE


def required_row(rows: sqlite3.Cursor) -> tuple[Any, ...]:
    """Return the first row of a query that has one in every sound read model.

    Raises:
        DatabaseError: the query has no row, so an index or a table is damaged; its code is DAMAGED.
    """
    row: tuple[Any, ...] | None = rows.fetchone()
    if row is None:
        raise DatabaseError("the read model: a row is missing", hint=DISPOSABLE, code=DAMAGED)
    return row


def count_rows(db: Connection, rows: str) -> int:
    """Return the number of rows of a table; a condition may follow its name in `rows`."""
    (count,) = db.execute(f"SELECT count(*) FROM {rows}").fetchone()
    return int(count)


def remove_database(path: Path) -> None:
    """Remove a database file that nobody has open, and what SQLite keeps beside it."""
    for side in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            disk.unlink(path.with_name(path.name + side))


@contextmanager
def transaction(db: Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """Yield one transaction: committed at the end, rolled back on any error.

    A read may be part of another one.
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
    """SQLite's error if sqlite-vec is made for another machine, or damaged."""
    db = binding().connect(":memory:")
    try:
        _load_vec0(db)
    except error_types() as error:
        return f"{described()} cannot load {path}: {error}"
    finally:
        db.close()
    return None


def _load_vec0(db: Connection) -> None:
    db.enable_load_extension(True)
    try:
        db.load_extension(str(_vec0_path()))
    finally:
        # No text of a log may ever load more.
        db.enable_load_extension(False)


@cache
def _vec0_path() -> Path | None:
    """Return the extension's path; to import sqlite_vec for it would import numpy (130 ms)."""
    spec = find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "vec0"


Row = dict[str, Any]
"""The values of a row by column."""


def as_list(values: Collection[Any]) -> str:
    """Return a parameter for `json_each`.

    `json.dumps` takes four times as long, and lets no other thread run.
    """
    return msgspec.json.encode(values).decode()


def insert(
    db: Connection,
    table: str,
    columns: str,
    rows: Iterable[tuple[Any, ...]],
    *,
    empty_is_null: Sequence[str] = (),
) -> None:
    """Add rows, each the values of `columns`, a list as in SQL.

    empty_is_null: columns that are given "" where there is nothing. Python's sqlite3 has a fast path for
        text, numbers and bytearrays alone: to bind a None or bytes was measured to take 1.2 microseconds
        more, and some columns of a message are null in most rows.
    """
    places = ("nullif(?, '')" if name in empty_is_null else "?" for name in columns.split(", "))
    db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(places)})", rows)


def upsert(db: Connection, table: str, key: Sequence[str], row: Row, *, newer_by: str | None = None) -> None:
    """Add a row, or replace the one that has the same `key`.

    newer_by: the row is replaced only by one that has a greater value in this column.
    """
    db.execute(_upsertion(table, tuple(row), tuple(key), newer_by), row)


def delete(db: Connection, table: str, where: str, values: Sequence[Any]) -> None:
    """Delete the rows that meet the condition `where`."""
    db.execute(f"DELETE FROM {table} WHERE {where}", values)


def update(db: Connection, table: str, column: str, where: str, rows: Iterable[Sequence[Any]]) -> None:
    """Set one column.

    rows: each its value, then the values of the condition `where`.
    """
    db.executemany(f"UPDATE {table} SET {column} = ? WHERE {where}", rows)


# One event needs several of these statements, and each joins the names of up to twenty columns.
@lru_cache
def _upsertion(table: str, columns: tuple[str, ...], key: tuple[str, ...], newer_by: str | None) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(':' + name for name in columns)})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        + (f" WHERE excluded.{newer_by} > {newer_by}" if newer_by else "")
    )
