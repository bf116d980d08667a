"""The schema of the read model: its statements and tables, and how they are created."""

from contextlib import closing
from functools import cache
from pathlib import Path

import msgspec

from memlog.projector.sqlite import Connection, connect


class TableSchema(msgspec.Struct, frozen=True):
    """An ordinary table.

    columns: in order, except generated columns and SQLite's rowid.
    key: the columns of the primary key; empty if the rowid is the key.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]


@cache
def read_schema() -> str:
    """Return the text of schema.sql, including comments."""
    return Path(__file__).with_name("schema.sql").read_bytes().decode()


def list_statements() -> tuple[str, ...]:
    """Return the SQL statements of schema.sql, each on one line and without comments."""
    return _split_statements(read_schema())


def list_tables() -> dict[str, TableSchema]:
    """Return the tables in schema.sql, except virtual ones, in order and keyed by name."""
    return _describe_tables(list_statements())


def create_tables(db: Connection) -> None:
    """Create all tables in an empty file, with only the indexes that handlers need."""
    for statement in list_statements():
        if not _is_index_for_queries_only(statement):
            db.execute(statement)


def create_indexes(db: Connection) -> None:
    """Create the remaining indexes once all rows exist, which is cheaper than updating them row by row."""
    for statement in list_statements():
        if _is_index_for_queries_only(statement):
            db.execute(statement)


@cache
def _split_statements(sql: str) -> tuple[str, ...]:
    """Split SQL into statements; no literal in schema.sql may contain `;`, `--` or a run of spaces."""
    code = "\n".join(row.partition("--")[0] for row in sql.splitlines())
    on_one_line = (" ".join(statement.split()) for statement in code.split(";"))
    return tuple(statement for statement in on_one_line if statement)


@cache
def _describe_tables(statements: tuple[str, ...]) -> dict[str, TableSchema]:
    with closing(connect(None, "bulk")) as db:
        for statement in statements:
            if statement.startswith("CREATE TABLE "):
                db.execute(statement)
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: _describe_table(db, name) for name in names}


def _describe_table(db: Connection, name: str) -> TableSchema:
    rows = db.execute(f"PRAGMA table_info({name})").fetchall()
    key = [column for _, column, _, _, _, place in sorted(rows, key=lambda row: row[5]) if place]
    is_row_number = [kind for _, _, kind, _, _, place in rows if place] == ["INTEGER"]
    columns = [row[1] for row in rows if not (is_row_number and row[1] in key)]
    return TableSchema(tuple(columns), () if is_row_number else tuple(key))


_HANDLER_INDEXES = (
    "memory_chunks_by_memory",
    "memory_chunks_by_fact",
    "memory_chunks_by_document",
    "doc_chunks_by_document",
    "documents_by_source",
)
"""Indexes that handlers use to find rows to change. Without them, each change to a memory would read every
passage: 8,000 changes after 100,000 messages took four minutes."""


def _is_index_for_queries_only(statement: str) -> bool:
    """Whether a statement creates an index that only queries need, so that a rebuild can create it last."""
    is_index = statement.startswith(("CREATE INDEX", "CREATE UNIQUE INDEX"))
    return is_index and statement.split("INDEX ")[1].split()[0] not in _HANDLER_INDEXES
