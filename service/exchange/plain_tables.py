"""Exports plain tables as an SQLite file."""

import os
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.streams import shown
from memlog.projector.sqlite import Connection, binding, error_types
from memlog.query.plain_tables import PLAIN_TABLES, plain_rows


class ExportReport(msgspec.Struct, kw_only=True):
    """What an export wrote. tables: the number of rows of each."""

    path: str
    tables: dict[str, int]
    bytes: int


def write_tables(db: Connection, path: Path, *, replace: bool) -> ExportReport:
    """See `ExportDatabase`. The file appears as a whole, or not at all."""
    from sqlite_utils import Database

    if path.exists() and not replace:
        raise BadInput(f"{shown(path)} exists", hint="name another file, or replace it: replace=True")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with closing(binding().connect(str(unfinished))) as connection:
            made = Database(connection)
            counts = {}
            for table in PLAIN_TABLES:
                columns, rows = plain_rows(db, table)
                made.table(table).insert_all(rows)
                if not made.table(table).exists():
                    made.table(table).create(dict.fromkeys(columns, str))
                counts[table] = made.table(table).count
            connection.commit()
        size = unfinished.stat().st_size
        unfinished.replace(path)
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
