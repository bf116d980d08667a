"""The vector tables of a generation: one set for the store's model, one for the multilingual model.

A set holds the vectors of one model at a time, whose id is in a row of `meta`; searches with another model do
not use them. The vectors of the next model are collected in the cache, and replace them in one transaction.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from memlog.projector.embedding.models import Model, is_multilingual_model
from memlog.projector.sqlite import Connection, count_rows, why_no_vectors

VERSION = 2
"""Increment whenever the sets of tables change: an unknown set would keep the vectors of forgotten texts."""


class VectorSet(NamedTuple):
    """The tables for the vectors of one model.

    model, following: the names of the `meta` rows for this model and for the next one. tables: the vector
      tables.
    queues: the tables of passages without a vector yet, created with the set; those of the first set are in
      the schema.
    """

    model: str
    following: str
    tables: tuple[str, str]
    queues: tuple[str, ...] = ()


FIRST = VectorSet("vector_model", "next_vectors", ("vec_memory", "vec_docs"))
MULTILINGUAL = VectorSet(
    "multilingual_model",
    "next_multilingual_vectors",
    ("vec_memory_multilingual", "vec_docs_multilingual"),
    ("memory_chunks_multilingual_queue", "doc_chunks_multilingual_queue"),
)
SETS = (FIRST, MULTILINGUAL)

_CHUNK = 64
"""The number of vectors for which vec0 allocates space at a time. With its default of 1,024, a table with one
vector of 384 dimensions takes 1.5 MB. https://alexgarcia.xyz/sqlite-vec/features/vec0.html"""


class Pending(NamedTuple):
    """A passage to embed: its number, the text, and the category if it belongs to a memory."""

    chunk_no: int
    text: str
    category: str | None = None


def choose_vector_set_for_model(model: Model) -> VectorSet:
    """Return the tables for the vectors of a model."""
    return MULTILINGUAL if is_multilingual_model(model.id) else FIRST


def read_model_of_vectors(db: Connection, of: VectorSet = FIRST) -> str | None:
    """Return the id of the model whose vectors are in `db`, or None if it has no vectors."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (of.model,)).fetchone()
    return row[0] if row else None


def list_vector_tables(db: Connection, of: VectorSet = FIRST) -> tuple[str, ...]:
    """Return the vector tables in `db`; () if it has none, or if this SQLite cannot read them."""
    return () if read_model_of_vectors(db, of) is None or why_no_vectors() is not None else of.tables


def count_vectors(db: Connection, of: VectorSet = FIRST) -> int:
    """Return the number of passages that have a vector."""
    return sum(count_rows(db, table) for table in list_vector_tables(db, of))


def create_vector_tables_for(db: Connection, model: Model) -> bool:
    """Create the vector tables for `model`, replacing another model's; return False if they already exist.

    If it returns True, the caller must queue all passages for embedding again.
    """
    of = choose_vector_set_for_model(model)
    if read_model_of_vectors(db, of) == model.id:
        return False
    for queue in of.queues:
        db.execute(f"DROP TABLE IF EXISTS {queue}")
        db.execute(f"CREATE TABLE {queue} (chunk_no INTEGER PRIMARY KEY)")
    for table in of.tables:
        db.execute(f"DROP TABLE IF EXISTS {table}")
        db.execute(
            f"CREATE VIRTUAL TABLE {table} USING vec0"
            f" (embedding float[{model.dimension}] distance_metric = cosine, chunk_size = {_CHUNK})"
        )
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (of.model, model.id))
    db.execute("DELETE FROM meta WHERE name = ?", (of.following,))
    return True


def read_gathered_numbers(db: Connection, model: Model) -> dict[str, int]:
    """Return, for each table, the passage number up to which the next model's vectors are all cached."""
    of = choose_vector_set_for_model(model)
    row = db.execute("SELECT value FROM meta WHERE name = ?", (of.following,)).fetchone()
    numbers, _, name = row[0].partition(" ") if row else ("", "", "")
    if name != model.id:
        return dict.fromkeys(of.tables, 0)
    return dict(zip(of.tables, map(int, numbers.split(",")), strict=True))


def store_gathered_numbers(db: Connection, model: Model, upto: Mapping[str, int]) -> None:
    """Store the numbers that `read_gathered_numbers` reads."""
    of = choose_vector_set_for_model(model)
    numbers = ",".join(str(upto[table]) for table in of.tables)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (of.following, f"{numbers} {model.id}"))


def why_incomparable(db: Connection, model: Model) -> str | None:
    """Return the reason why the vectors in `db` are not comparable with those of `model`, or None."""
    stored = read_model_of_vectors(db, choose_vector_set_for_model(model))
    if stored in (None, model.id):
        return None
    return f"the vectors are those of {stored}, but the model is {model.id}: project the log"


def store_vectors(
    db: Connection, table: str, queue: str, passages: Iterable[Pending], known: Mapping[str, bytes]
) -> list[Pending]:
    """Store the vectors of `passages`; return the passages that were stored.

    Passages that are no longer in `queue` are skipped: they were replaced or forgotten, or another process
    was faster.

    known: float32 vectors, keyed by text.
    """
    stored = []
    for passage in passages:
        chunk_no, text, _ = passage
        if text in known and db.execute(f"DELETE FROM {queue} WHERE chunk_no = ?", (chunk_no,)).rowcount:
            db.execute(f"INSERT INTO {table} (rowid, embedding) VALUES (?, ?)", (chunk_no, known[text]))
            stored.append(passage)
    return stored


def remove_vectors(
    db: Connection, of: VectorSet, table: str, chunk_numbers: str, values: tuple[Any, ...]
) -> bool:
    """Remove the vectors of the passages selected by `chunk_numbers`; return False if all were removed.

    Without sqlite-vec, all vectors are dropped, since none may outlive its passage; a process that can load
    sqlite-vec later rebuilds the tables from the cache.
    """
    if read_model_of_vectors(db, of) is None:
        return True
    if why_no_vectors() is not None:
        db.execute("DELETE FROM meta WHERE name = ?", (of.model,))
        return False
    db.execute(f"DELETE FROM {table} WHERE rowid IN ({chunk_numbers})", values)
    return True
