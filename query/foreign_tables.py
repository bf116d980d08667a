"""Reads tables of untrusted SQLite files: only real columns of real tables.

Views, virtual tables and generated columns compute their values, so an 8 kB file may take unlimited time and
memory. SQLite's authorizer (https://www.sqlite.org/c3ref/set_authorizer.html) denies access to them.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import pathname2url

import msgspec

from memlog.projector.sqlite import choose_binding

_PATIENCE = 2.0
"""Seconds to wait for a program that is writing to its database."""

_LONGEST = 4 * 1024 * 1024
"""The most characters of a row: an event has at most 16 MiB, and a character up to four bytes."""

_PAGE_BYTES = 4 * 1024 * 1024
"""The size of a page: the bytes of its texts and blobs."""

_TABLE = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
_REAL = "SELECT name, dflt_value FROM pragma_table_xinfo(?) WHERE hidden = 0"

_ROW_BYTES = 4
"""The least size of a row in a file: its place, its two lengths and its rowid."""

_LONGEST_DEFAULT = 100
"""The most characters of a default value that rows may return without storing it."""


class TablePage(msgspec.Struct, tag=True):
    """Some rows of a table, each a list of values.

    unknown: for each unrequested column, the number of rows with a value.
    too_long: the number of rows skipped. error: why reading stopped, if it failed.
    is_known: whether the table exists. is_last: whether this is the last page.
    """

    rows: list[list[Any]]
    unknown: dict[str, int] = {}
    too_long: int = 0
    error: str | None = None
    is_known: bool = True
    is_last: bool = False


def read_table_in_pages(path: str, table: str, known: Sequence[str]) -> Iterator[TablePage]:
    """Yield a table's rows in pages. If reading fails, the last page says why.

    known: the columns to return, in order; a column the table lacks is None. Rows too long for any event are
        skipped and counted as too long.
    """
    most = sum(Path(file).stat().st_size for file in (path, f"{path}-wal") if Path(file).exists())
    with closing(choose_binding().connect(_read_only_uri(path), uri=True, timeout=_PATIENCE)) as connection:
        connection.text_factory = lambda data: data.decode(errors="replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        made = connection.execute(_TABLE, (table,)).fetchone()
        is_real = made is not None and not str(made[1]).upper().startswith("CREATE VIRTUAL")
        table = made[0] if is_real else table
        real = dict(connection.execute(_REAL, (table,)).fetchall()) if is_real else {}
        if not real:
            yield TablePage([], is_known=False)
            return
        connection.set_authorizer(_make_authorizer(table, frozenset(real)))
        yield from _read_pages(connection, table, real, known, most)


def _read_pages(
    connection: Any,  # noqa: ANN401
    table: str,
    real: Mapping[str, str | None],
    known: Sequence[str],
    most: int,
) -> Iterator[TablePage]:
    """Yield a table's rows in pages.

    real: its columns with their defaults. most: the size of its file in bytes.
    """
    # SQLite's names are case-insensitive, in ASCII.
    wanted = {name.lower(): name for name in known}
    columns = [wanted[name.lower()] for name in real if name.lower() in wanted]
    others = [name for name in real if name.lower() not in wanted]
    picked = [*map(_quote_name, columns), *(f"{_quote_name(name)} IS NOT NULL" for name in others)]
    # Rows that are older than a column do not store it, and return its default.
    free = {
        wanted[name.lower()]: _parse_text_of_default(real[name]) for name in real if name.lower() in wanted
    }
    page, size = TablePage([]), 0
    try:
        for row in connection.execute(f"SELECT {', '.join(picked)} FROM {_quote_name(table)}"):
            values = dict(zip(columns, row, strict=False))
            for name, is_there in zip(others, row[len(columns) :], strict=True):
                if is_there:
                    page.unknown[name] = page.unknown.get(name, 0) + 1
            # A file whose pages refer to one page repeatedly has an unlimited number of rows.
            texts = {name: value for name, value in values.items() if isinstance(value, str | bytes)}
            length = sum(map(len, texts.values()))
            most -= _ROW_BYTES + sum(len(value) for name, value in texts.items() if value != free[name])
            if most < 0:
                page.error = "the table returns more data than the file contains: its pages are damaged"
                break
            if length > _LONGEST:
                page.too_long += 1
                continue
            page.rows.append([values.get(name) for name in known])
            size += length
            if size > _PAGE_BYTES or len(page.rows) >= 10_000:
                yield page
                page, size = TablePage([]), 0
    except choose_binding().Error as error:
        page.error = str(error)
    page.is_last = True
    yield page


def _parse_text_of_default(default: str | None) -> str | None:
    """Return the text of a default such as `'manual'`; None unless it is a short string literal."""
    is_text = default is not None and default[:1] == default[-1:] == "'"
    return (
        default[1:-1].replace("''", "'") if default and is_text and len(default) < _LONGEST_DEFAULT else None
    )


def _make_authorizer(table: str, real: frozenset[str]) -> Any:  # noqa: ANN401 - a callback of SQLite
    def allow_reading_table(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        # Counting rows reads a column without a name.
        is_real = action == sqlite3.SQLITE_READ and first == table and (second in real or second == "")
        return sqlite3.SQLITE_OK if is_real else sqlite3.SQLITE_DENY

    return allow_reading_table


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_only_uri(path: str) -> str:
    """Return a URI that opens a database read-only.

    A WAL database without a WAL file is opened as immutable, or SQLite would leave files next to it.
    """
    with Path(path).open("rb") as file:
        is_wal = file.read(20)[18:] == b"\2\2"
    is_idle = is_wal and not Path(f"{path}-wal").exists()
    address = f"file:{pathname2url(str(Path(path).absolute()))}?mode=ro"
    return f"{address}&immutable=1" if is_idle else address
