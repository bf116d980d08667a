"""Exports plain tables as an SQLite file."""

import os
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.streams import shown
from memlog.projector.sqlite import Connection, binding, error_types
from memlog.query.plain_tables import PLAIN_TABLES, plain_rows

_TYPES = {
    **dict.fromkeys(("rank", "access_count", "raw_tokens"), int),
    **dict.fromkeys(("importance", "salience"), float),
}
"""Of columns that hold no text."""


class ExportReport(msgspec.Struct, kw_only=True):
    """What an export wrote. tables: the number of rows of each."""

    path: str
    tables: dict[str, int]
    bytes: int


def write_tables(db: Connection, path: Path, *, replace: bool) -> ExportReport:
    """See `ExportDatabase`. The file appears as a whole, or not at all."""
    from sqlite_utils import Database

    if os.path.lexists(path) and not replace:
        raise BadInput(f"{shown(path)} exists", hint="name another file, or replace it: replace=True")
    if path.name.endswith(("-wal", "-shm", "-journal")):
        raise BadInput(
            f"{shown(path)} is a name that SQLite gives to files of its own", hint="name a .db file"
        )
    try:
        is_in_use = path.with_name(f"{path.name}-wal").exists()
        handle, name = tempfile.mkstemp(prefix=".export.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    unfinished = Path(name)
    try:
        if is_in_use:
            raise BadInput(f"{shown(path)} is in use by another program", hint="end that program")
        counts = {}
        with closing(binding().connect(name)) as connection:
            made = Database(connection)
            for table in PLAIN_TABLES:
                columns, rows = plain_rows(db, table)
                made.table(table).create({column: _TYPES.get(column, str) for column in columns})
                made.table(table).insert_all(rows)
                counts[table] = made.table(table).count
            connection.commit()
        size = unfinished.stat().st_size
        if replace:
            unfinished.replace(path)
        else:
            os.link(unfinished, path)  # refuses a file that has come meanwhile
    except OSError as error:
        raise _unwritable(path, error) from error
    except error_types() as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return ExportReport(path=str(path), tables=counts, bytes=size)


def _unwritable(path: Path, error: Exception) -> BadInput:
    return BadInput(f"{shown(path)} cannot be written: {error}", hint="name a file in a folder of yours")
