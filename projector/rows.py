"""Writes rows, of which the column names are known."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from memlog.projector.sqlite import Connection

Row = dict[str, Any]
"""The values of a row by column."""


def as_list(values: Collection[Any]) -> str:
    """A parameter for `json_each`. `json.dumps` takes four times as long, and lets no other thread run."""
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
    """Set one column. rows: each its value, then the values of the condition `where`."""
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
