"""The vector table of a generation, and which passages still lack a vector.

`vec_memory` holds vectors of one model at a time; `meta.vector_model` is that model's id, and a search
with another model does not look into it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from memlog.projector.analysis import passage
from memlog.projector.embedding import Embedder
from memlog.projector.sqlite import Connection, count_rows, why_no_vectors


class Pending(NamedTuple):
    """A passage that has no vector yet, with its text as it is to be embedded."""

    chunk_no: int
    text: str


def model_of(db: Connection) -> str | None:
    """The id of the model whose vectors stand in `db`."""
    row = db.execute("SELECT value FROM meta WHERE name = 'vector_model'").fetchone()
    return row[0] if row else None


def use_model(db: Connection, embedder: Embedder) -> None:
    """Make the vector table for `embedder`. Vectors of another model go, and all passages wait anew."""
    if model_of(db) == embedder.id:
        return
    db.execute("DROP TABLE IF EXISTS vec_memory")
    db.execute(
        f"CREATE VIRTUAL TABLE vec_memory USING vec0"
        f" (embedding float[{embedder.dimension}] distance_metric = cosine)"
    )
    db.execute("INSERT OR REPLACE INTO meta VALUES ('vector_model', ?)", (embedder.id,))
    db.execute("INSERT OR IGNORE INTO embed_queue SELECT chunk_no FROM memory_chunks")


def pending(db: Connection, after: int, limit: int) -> list[Pending]:
    """Up to `limit` passages without a vector, in the order of their numbers, behind number `after`."""
    rows = db.execute(
        "SELECT chunk_no, label, content FROM embed_queue JOIN memory_chunks USING (chunk_no)"
        " WHERE chunk_no > ? ORDER BY chunk_no LIMIT ?",
        (after, limit),
    )
    return [Pending(chunk_no, passage(label, content)) for chunk_no, label, content in rows]


def count_pending(db: Connection) -> int:
    """How many passages have no vector yet."""
    return count_rows(db, "embed_queue")


def store(db: Connection, vectors: Sequence[tuple[int, bytes]]) -> int:
    """Store float32 vectors by chunk number, and return how many.

    A passage that no longer waits (it was replaced, or another process was faster) is left out.
    """
    stored = 0
    for chunk_no, vector in vectors:
        if db.execute("DELETE FROM embed_queue WHERE chunk_no = ?", (chunk_no,)).rowcount:
            db.execute("INSERT INTO vec_memory (rowid, embedding) VALUES (?, ?)", (chunk_no, vector))
            stored += 1
    return stored


def remove(db: Connection, where: str, values: tuple[Any, ...]) -> None:
    """Remove the vectors of the chunks that `where` names.

    Where this SQLite has no vectors they stay behind without a chunk, and no search can find them.
    """
    if model_of(db) is not None and why_no_vectors() is None:
        db.execute(
            f"DELETE FROM vec_memory WHERE rowid IN (SELECT chunk_no FROM memory_chunks WHERE {where})",
            values,
        )
