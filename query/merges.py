"""Merges of memories, and what it takes to take one back."""

import json

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection


class Merge(msgspec.Struct):
    """A merge that stands. memory_ids: of what was merged. event_ids: of the changes that it made."""

    memory_ids: list[str]
    event_ids: list[str]


MERGED = "merge"
"""The source of memories that were merged of what a model distilled."""

DISTILLED = ("extraction", MERGED)
"""Sources of memories that nobody has saved."""

_OWN = """
SELECT m.memory_id FROM memories m
JOIN memory_events t ON (t.memory_id, t.stream, t.event_id) = (m.memory_id, m.stream, m.event_id)
JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id)
WHERE m.source NOT IN (SELECT value FROM json_each(?))
    OR (e.type = 'memory_updated' AND t.extraction_id IS NULL)
"""

_MERGES = """
SELECT d.stream, d.extraction_id, d.number, d.memory_ids, d.is_undone FROM decisions d
WHERE d.memory_id = ?1 AND EXISTS (SELECT 1 FROM merge_events m
    WHERE (m.stream, m.extraction_id, m.number) = (d.stream, d.extraction_id, d.number))
ORDER BY d.ts DESC, d.extraction_id DESC, d.number
"""

# A text of the merge stays where somebody, or another answer, has changed what it made.
_CHANGES = """
SELECT m.event_id FROM merge_events m
WHERE (m.stream, m.extraction_id, m.number) = (?1, ?2, ?3) AND NOT (
    m.type = 'memory_saved' AND EXISTS (
        SELECT 1 FROM current_versions v
        WHERE (v.stream, v.memory_id) = (m.stream, m.memory_id) AND v.field <> 'archived'
        AND v.event_id <> m.event_id AND v.precedence > m.precedence
    )
)
ORDER BY m.precedence
"""

_INTO = """
SELECT d.memory_id FROM decisions d JOIN json_each(d.memory_ids) v ON v.value = ?1
WHERE d.memory_id <> ?1 AND NOT d.is_undone AND EXISTS (SELECT 1 FROM merge_events m
    WHERE (m.stream, m.extraction_id, m.number, m.memory_id) = (d.stream, d.extraction_id, d.number, ?1))
ORDER BY d.ts DESC LIMIT 1
"""


def worded_by_somebody(db: Connection) -> set[str]:
    """Return the memories that a person or an agent has saved, or worded otherwise."""
    return {memory_id for (memory_id,) in db.execute(_OWN, (as_list(DISTILLED),))}


def last_merge(db: Connection, memory_id: str) -> Merge | None:
    """Return the newest merge into a memory that was not taken back; None where there is none."""
    for stream, extraction_id, number, memory_ids, is_undone in db.execute(_MERGES, (memory_id,)).fetchall():
        if not is_undone:
            changes = db.execute(_CHANGES, (stream, extraction_id, number))
            return Merge(json.loads(memory_ids), [event_id for (event_id,) in changes])
    return None


def merged_again_into(db: Connection, memory_id: str) -> str | None:
    """Return the memory that a memory was merged into."""
    row = db.execute(_INTO, (memory_id,)).fetchone()
    return None if row is None else str(row[0])


def parted(db: Connection) -> list[frozenset[str]]:
    """Return the events with the contents that a person has parted again, for each merge that was taken
    back."""
    rows = db.execute("SELECT event_ids FROM decisions WHERE is_undone AND memory_id IS NOT NULL")
    return [frozenset(json.loads(event_ids)) for (event_ids,) in rows]
