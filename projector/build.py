"""Builds a read model from scratch in an empty file."""

from pathlib import Path

from memlog.eventlog.errors import DatabaseError
from memlog.projector import catchup, projection_id, schema
from memlog.projector.catchup import Bounds, CatchUp, Progress
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, transaction


def build(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
) -> CatchUp:
    """Build the read model of `log` in the empty file of `db`, up to `bounds` if they are given.

    Raises:
        DatabaseError: a foreign key has no target.
    """
    with transaction(db):
        schema.create_tables(db)
        projection_id.store_projection_id(db, sizes)
        report = catchup.catch_up(db, log, sizes, bounds=bounds, progress=progress)
        schema.create_indexes(db)
    dangling = db.execute("PRAGMA foreign_key_check").fetchone()
    if dangling:
        raise DatabaseError(f"a row of {dangling[0]} refers to a row of {dangling[2]} that does not exist")
    return report
