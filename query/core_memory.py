"""The core memory: what an agent always sees."""

import json

import msgspec

from memlog.projector import core_memory_file
from memlog.projector.sqlite import Connection


class CoreMemory(msgspec.Struct):
    """The values of the user and of the agent, by key."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """The core memory as the log leaves it."""
    return CoreMemory(**core_memory_file.core_memory(db))


class CoreValueSource(msgspec.Struct, frozen=True):
    """A key of the core memory, and who set it; without a value somebody has removed it.

    is_stale: whether a memory that it was made of does not say so any more: it has changed, or is gone.
    """

    value: str | None = None
    source: str | None = None
    is_stale: bool = False


_SOURCES = """
WITH RECURSIVE supports(key, memory_id, since) AS (
    SELECT c.key, v.value, c.updated_at FROM core_memory c, json_each(c.memory_ids) v WHERE c.section = ?1
    UNION
    -- What was merged into another one is said by that one.
    SELECT s.key, d.memory_id, max(s.since, d.ts) FROM supports s
    JOIN merge_decisions d ON d.memory_id <> s.memory_id
    JOIN closed_extractions x ON (x.stream, x.id) = (d.stream, d.extraction_id)
    WHERE (d.relation <> 'contradiction' OR x.model IS NOT NULL)
        AND EXISTS (SELECT 1 FROM json_each(d.memory_ids) m WHERE m.value = s.memory_id)
)
SELECT c.key, c.value, c.source, c.memory_ids <> '[]' AND NOT EXISTS (
    SELECT 1 FROM supports s JOIN memories m USING (memory_id)
    WHERE s.key = c.key AND m.archived_at IS NULL AND m.updated_at <= s.since
) FROM core_memory c WHERE c.section = ?1
"""


def core_sources(db: Connection, section: str) -> dict[str, CoreValueSource]:
    """The keys of a section, also those that somebody has removed."""
    removed = db.execute(
        "SELECT thing FROM tombstones WHERE stream = 'core' AND source IS NOT 'profile' ORDER BY thing"
    ).fetchall()
    things = (json.loads(thing) for (thing,) in removed)
    return {key: CoreValueSource() for part, key in things if part == section} | {
        key: CoreValueSource(value, source, bool(is_stale))
        for key, value, source, is_stale in db.execute(_SOURCES, (section,))
    }
