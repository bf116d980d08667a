"""Writes rows, of which the column names are known."""

from collections.abc import Iterable, Sequence
from typing import Any

from memlog.projector.sqlite import Connection

Row = dict[str, Any]
"""The values of a row by column."""


def insert(db: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Add rows, each the values of `columns`."""
    db.executemany(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
    )


def upsert(db: Connection, table: str, key: Sequence[str], row: Row, *, newer_by: str | None = None) -> None:
    """Add a row, or replace the one that has the same `key`.

    newer_by: the column with the time of its event; the row is then replaced only by one whose
        (time, segment, offset) is greater.
    """
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
    order = f"({newer_by}, segment_no, offset)"
    newest = f"(excluded.{newer_by}, excluded.segment_no, excluded.offset)"
    db.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(':' + name for name in row)})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        + (f" WHERE {newest} > {order}" if newer_by else ""),
        row,
    )
