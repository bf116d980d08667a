"""The passages that are embedded and searched, and all that is kept in step with them: full text, vectors,
and the queue of those that wait for a vector."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memlog.projector import fulltext, vectors
from memlog.projector.analysis import passage
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection, count_rows
from memlog.projector.vectors import Pending


@dataclass(frozen=True)
class Shelf:
    """The tables of one kind of passages.

    chunks: a row per passage. columns: those that are given when one is added.
    has_fulltext: which of its rows have an entry of their own in `fulltext`, as a condition.
    queue: a row per passage without a vector. vectors: the vec0 table.
    """

    chunks: str
    columns: tuple[str, ...]
    fulltext: str
    has_fulltext: str
    vectors: str

    @property
    def queue(self) -> str:
        """The table of the passages that wait for a vector."""
        return f"{self.chunks}_queue"


MEMORY = Shelf(
    chunks="memory_chunks",
    columns=("stream", "memory_id", "message_id", "summary_id", "document_id", "source", "chat_id", "label")
    + ("created_at", "updated_at", "chunk_index", "section", "content", "start_char", "end_char"),
    fulltext="memory_chunks_fts",
    # Whole messages have a full text of their own.
    has_fulltext="message_id IS NULL",
    vectors="vec_memory",
)
"""Of messages, memories, summaries, and documents of sources of kind `memory`."""

DOCS = Shelf(
    chunks="doc_chunks",
    columns=("stream", "document_id", "file", "version", "label", "created_at", "updated_at")
    + ("chunk_index", "section", "content", "start_char", "end_char", "start_line", "end_line"),
    fulltext="doc_chunks_fts",
    has_fulltext="1",
    vectors="vec_docs",
)
"""Of documents of sources of kind `docs`."""

SHELVES = (MEMORY, DOCS)


def add(db: Connection, shelf: Shelf, rows: list[tuple[Any, ...]]) -> None:
    """Add passages: the values of `shelf.columns` of each. They wait for a vector from now on."""
    if not rows:
        return
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    insert(db, shelf.chunks, shelf.columns, rows)
    db.execute(f"INSERT INTO {shelf.queue} SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no > ?", (last,))
    fulltext.add(db, shelf.fulltext, _entries(db, shelf, "chunk_no > ?", (last,)))


def remove(db: Connection, shelf: Shelf, where: str, values: tuple[Any, ...]) -> None:
    """Remove the passages that `where` names, before their owners' rows go or change.

    Their vectors go too, which no cascade reaches.
    """
    fulltext.remove(db, shelf.fulltext, _entries(db, shelf, where, values))
    chunk_numbers = f"SELECT chunk_no FROM {shelf.chunks} WHERE {where}"
    if not vectors.remove(db, shelf.vectors, chunk_numbers, values):
        queue_all(db)
    db.execute(f"DELETE FROM {shelf.queue} WHERE chunk_no IN ({chunk_numbers})", values)
    db.execute(f"DELETE FROM {shelf.chunks} WHERE {where}", values)


def queue_all(db: Connection) -> None:
    """Have every passage wait for a vector anew."""
    for shelf in SHELVES:
        db.execute(f"INSERT OR IGNORE INTO {shelf.queue} SELECT chunk_no FROM {shelf.chunks}")


def waiting(db: Connection, size: int) -> Iterator[tuple[Shelf, list[Pending]]]:
    """The passages without a vector, in the order of their numbers, up to `size` at a time."""
    for shelf in SHELVES:
        after = 0
        while batch := _pending(db, shelf, after, size):
            yield shelf, batch
            after = batch[-1].chunk_no


def count_pending(db: Connection) -> int:
    """How many passages have no vector yet."""
    return sum(count_rows(db, shelf.queue) for shelf in SHELVES)


def _entries(db: Connection, shelf: Shelf, where: str, values: tuple[Any, ...]) -> Iterable[fulltext.Entry]:
    rows = db.execute(
        f"SELECT chunk_no, label, content FROM {shelf.chunks} WHERE ({where}) AND {shelf.has_fulltext}",
        values,
    )
    return [fulltext.entry(chunk_no, label, content) for chunk_no, label, content in rows]


def _pending(db: Connection, shelf: Shelf, after: int, limit: int) -> list[Pending]:
    rows = db.execute(
        f"SELECT chunk_no, label, content FROM {shelf.queue} JOIN {shelf.chunks} USING (chunk_no)"
        " WHERE chunk_no > ? ORDER BY chunk_no LIMIT ?",
        (after, limit),
    )
    return [Pending(chunk_no, passage(label, content)) for chunk_no, label, content in rows]
