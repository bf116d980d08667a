"""The canonical dump of a read model, and its digest: equal wherever the log and projection id are.

Numbers that SQLite gives to rows, checkpoints, vectors and the inside of the full text are left out.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from memlog.eventlog.hashing import sha256
from memlog.projector import schema
from memlog.projector.sqlite import Connection

_LEFT_OUT = (
    "checkpoints",  # how far the read model has come, and what the file system tells about the files
    "meta",  # the projection id, and the last number of a passage
    "memory_chunks_queue",  # which passages wait for a vector depends on the model and the cache
    "doc_chunks_queue",
)
"""The only tables that are no part of the dump."""

_ORDERS = {
    "events": "stream, day, number, writer, offset",
    "messages": "channel, chat_id, created_at, day, number, writer, offset, stream",
    "memory_chunks": "stream, memory_id, message_id, summary_id, fact_id, daily_event_id, document_id,"
    " chunk_index",
    "doc_chunks": "document_id, chunk_index",
}
"""How tables are ordered whose rows are not dumped in the order of their primary key: `events` by position;
messages and passages because SQLite gives their keys. A table with such a key that is not listed is
ordered by all its columns."""

_ABOUT_BYTES = {"nul_runs"}
"""Tables of bytes that say nothing."""

_WHERE_AND_WHEN_APPENDED = {
    *("day", "number", "writer", "segment", "offset", "length", "line", "position"),
    *("at", "precedence", "salience_precedence"),
}
"""Columns that say where an event stands and when it was appended, but not what it says."""


def dump(db: Connection, *, content: bool = False) -> Iterator[str]:
    """Every table as its name and then a row a line: a JSON object of its columns.

    content: leave out where events stand and when they were appended, and order rows by what is left.
    """
    for name, table in schema.tables().items():
        if name in _LEFT_OUT or (content and name in _ABOUT_BYTES):
            continue
        columns = [column for column in table.columns if not (content and column in _WHERE_AND_WHEN_APPENDED)]
        listed = ", ".join(columns)
        order = listed if content else _ORDERS.get(name) or ", ".join(table.key or columns)
        yield f"# {name}"
        for row in db.execute(f"SELECT {listed} FROM {name} ORDER BY {order}"):
            yield msgspec.json.encode(dict(zip(columns, map(_readable, row), strict=True))).decode()


def digest(db: Connection, *, content: bool = False) -> str:
    """sha256 over the dump, in hex.

    content: of the content of events alone, so that it is equal for two stores with the same events.
    """
    result = sha256()
    for line in dump(db, content=content):
        result.update(line.encode() + b"\n")
    return result.hexdigest()


_ENTRIES = {
    "messages_fts": "SELECT message_no AS no, stream, messages.id AS owner, 0 AS part FROM messages",
    "memory_chunks_fts": "SELECT chunk_no AS no, stream, chunk_index AS part,"
    " coalesce(memory_id, summary_id, fact_id, daily_event_id, document_id) AS owner FROM memory_chunks",
    "doc_chunks_fts": "SELECT chunk_no AS no, stream, chunk_index AS part, document_id AS owner"
    " FROM doc_chunks",
}
"""The owner and the part of it that each entry of a full-text table is made from."""


def fulltext_digest(db: Connection) -> str:
    """A hash over the full text, in hex.

    It covers every word with its place in which message or memory, the length of each entry, and the totals
    that ranking divides by (which alone show some wrong deletes). It is the sum of the hashes of all rows, so
    that nobody has to sort them: 80,000 messages have 3.6 million words, whose sort took 400 MB.

    https://www.sqlite.org/fts5.html#fts5_data_structures
    """
    total = 0
    for table, entries in _ENTRIES.items():
        db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_words USING fts5vocab(main, {table}, instance)"
        )
        words = (
            f"SELECT stream, owner, part, offset, term FROM temp.{table}_words"
            f" LEFT JOIN ({entries}) ON no = doc"
        )
        lengths = f"SELECT stream, owner, part, sz FROM {table}_docsize LEFT JOIN ({entries}) ON no = id"
        # No rows and no words, as two varints, or as nothing where there never was a row.
        totals = f"SELECT coalesce(nullif(block, x''), x'0000') FROM {table}_data WHERE id = 1"
        for sql in (words, lengths, totals):
            for row in db.execute(sql):
                encoded = msgspec.json.encode([table, *map(_readable, row)])
                total += int.from_bytes(sha256(encoded).digest(), "big")
    return f"{total % 2**256:064x}"


def _readable(value: Any) -> Any:  # noqa: ANN401 - whatever SQLite holds
    return value.hex() if isinstance(value, bytes) else value
