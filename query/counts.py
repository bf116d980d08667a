"""Counts of the rows of a read model."""

from memlog.projector.sqlite import Connection, count_rows

Counts = dict[str, int]
"""Numbers by name, in the order of the names."""


def count_by(db: Connection, column: str, rows: str) -> Counts:
    """The number of rows for each value of a column; `rows` is a table, and may go on with a condition."""
    return dict(db.execute(f"SELECT {column}, count(*) FROM {rows} GROUP BY 1 ORDER BY 1").fetchall())


def counters(db: Connection, events_by_type: Counts) -> Counts:
    """Counters for programs that watch a memory. They count events, so a replay gives the same.

    memory.saved.count: saves, also of memories that existed or were deleted.
    memory.retrieved.count: memories given to an agent, each as often as it was.
    memory.extraction.success: requests to a language model whose answer became events;
    memory.extraction.tokens: what they, merges and profiles took.
    """
    success, tokens = db.execute(
        "SELECT coalesce(sum(type = 'memories_extracted'), 0), coalesce(sum(tokens_in + tokens_out), 0)"
        " FROM closed_extractions"
    ).fetchone()
    (retrieved,) = db.execute("SELECT coalesce(sum(reads), 0) FROM memory_events").fetchone()
    return {
        "memory.saved.count": events_by_type.get("memory_saved", 0)
        - count_rows(db, "held_events WHERE event ->> 'type' = 'memory_saved'"),
        "memory.retrieved.count": retrieved,
        "memory.extraction.success": success,
        "memory.extraction.tokens": tokens,
    }
