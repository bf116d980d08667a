"""The vector tables of a generation.

They hold vectors of one model at a time; `meta.vector_model` is that model's id, and a search with another
model does not look into them. The vectors of the next model gather in the cache, and replace them in one
transaction.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from memlog.projector.embedding.models import Model
from memlog.projector.sqlite import Connection, count_rows, why_no_vectors

TABLES = ("vec_memory", "vec_docs")

_CHUNK = 64
"""Vectors for which vec0 reserves space at once. With its default of 1,024 a table of one vector of 384
dimensions takes 1.5 MB. https://alexgarcia.xyz/sqlite-vec/features/vec0.html"""


_NEXT = "next_vectors"


class Pending(NamedTuple):
    """A passage that has no vector yet, with its text as it is to be embedded.

    category: of its memory.
    """

    chunk_no: int
    text: str
    category: str | None = None


def model_of(db: Connection) -> str | None:
    """The id of the model that the vector tables of `db` are for; None where there are none."""
    row = db.execute("SELECT value FROM meta WHERE name = 'vector_model'").fetchone()
    return row[0] if row else None


def tables(db: Connection) -> tuple[str, ...]:
    """Return the vector tables of `db` that this SQLite can read."""
    return () if model_of(db) is None or why_no_vectors() is not None else TABLES


def count(db: Connection) -> int:
    """Return how many passages have a vector."""
    return sum(count_rows(db, table) for table in tables(db))


def use_model(db: Connection, model: Model) -> bool:
    """Make the vector tables for `model`; False if they are there.

    If True, vectors of another model are gone, and all passages wait anew.
    """
    if model_of(db) == model.id:
        return False
    for table in TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
        db.execute(
            f"CREATE VIRTUAL TABLE {table} USING vec0"
            f" (embedding float[{model.dimension}] distance_metric = cosine, chunk_size = {_CHUNK})"
        )
    db.execute("INSERT OR REPLACE INTO meta VALUES ('vector_model', ?)", (model.id,))
    db.execute("DELETE FROM meta WHERE name = ?", (_NEXT,))
    return True


def gathered(db: Connection, model: Model) -> dict[str, int]:
    """Up to which passage of each table the cache has the vectors of a model that is to be the next one."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (_NEXT,)).fetchone()
    numbers, _, name = row[0].partition(" ") if row else ("", "", "")
    if name != model.id:
        return dict.fromkeys(TABLES, 0)
    return dict(zip(TABLES, map(int, numbers.split(",")), strict=True))


def note_gathered(db: Connection, model: Model, upto: Mapping[str, int]) -> None:
    """Note what `gathered` gives."""
    numbers = ",".join(str(upto[table]) for table in TABLES)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NEXT, f"{numbers} {model.id}"))


def why_unlike(db: Connection, model: Model) -> str | None:
    """Why the vectors in `db` cannot be compared with `model`'s; None if they can, or there are none."""
    stored = model_of(db)
    if stored in (None, model.id):
        return None
    return f"the vectors are of {stored}, the model is {model.id}: project the log"


def store(
    db: Connection, table: str, queue: str, passages: Iterable[Pending], known: Mapping[str, bytes]
) -> list[Pending]:
    """Store the float32 vectors that are known by text; return the passages that have theirs now.

    A passage that no longer waits in `queue` (it was replaced or forgotten, or another process was faster) is
    left out.
    """
    stored = []
    for passage in passages:
        chunk_no, text, _ = passage
        if text in known and db.execute(f"DELETE FROM {queue} WHERE chunk_no = ?", (chunk_no,)).rowcount:
            db.execute(f"INSERT INTO {table} (rowid, embedding) VALUES (?, ?)", (chunk_no, known[text]))
            stored.append(passage)
    return stored


def remove(db: Connection, table: str, chunk_numbers: str, values: tuple[Any, ...]) -> bool:
    """Remove the vectors of the chunks that the query `chunk_numbers` gives; return whether others stay.

    A SQLite that cannot load sqlite-vec gives all vectors up, lest some stay without a chunk: all passages
    have to wait anew. One that can makes the tables anew, from the cache.
    """
    if model_of(db) is None:
        return True
    if why_no_vectors() is not None:
        db.execute("DELETE FROM meta WHERE name = 'vector_model'")
        return False
    db.execute(f"DELETE FROM {table} WHERE rowid IN ({chunk_numbers})", values)
    return True
