"""The core memory: what an agent always sees."""

import json
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from memlog.eventlog.codec.decode import decode
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated
from memlog.eventlog.log.order import precedence
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import line_at
from memlog.eventlog.log.streams import SegmentName
from memlog.projector import core_file
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.facts import PROFILE


class CoreMemory(msgspec.Struct):
    """The values of the user and of the agent, by key."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """Return the core memory according to the log."""
    return CoreMemory(**core_file.core_memory(db))


class CoreValueSource(msgspec.Struct, frozen=True):
    """A key of the core memory, and who set it; without a value somebody has removed it.

    is_stale: whether a memory that it was made of does not say so any more: it has changed, or is gone.
    memory_ids: the memories that it was made of. extraction_id: of the profile that has it.
    event_id: of the event that set it.
    """

    value: str | None = None
    source: str | None = None
    is_stale: bool = False
    memory_ids: list[str] = []
    extraction_id: str | None = None
    event_id: str | None = None


_SOURCES = """
WITH RECURSIVE own AS (
    SELECT * FROM core_memory WHERE section = ?1 AND (chat_id = ?2 OR NOT is_profile)
),
supports(key, memory_id, since) AS (
    SELECT c.key, v.value, c.updated_at FROM own c, json_each(c.memory_ids) v
    UNION
    -- The memory that another one was merged into now has its content.
    SELECT s.key, d.memory_id, max(s.since, d.ts) FROM supports s
    JOIN merge_decisions d ON d.memory_id <> s.memory_id
    JOIN closed_extractions x ON (x.stream, x.id) = (d.stream, d.extraction_id)
    WHERE (d.relation <> 'contradiction' OR x.model IS NOT NULL)
        AND EXISTS (SELECT 1 FROM json_each(d.memory_ids) m WHERE m.value = s.memory_id)
)
SELECT c.key, c.value, c.source, c.memory_ids, c.extraction_id, c.event_id,
c.memory_ids <> '[]' AND NOT EXISTS (
    SELECT 1 FROM supports s JOIN memories m USING (memory_id)
    WHERE s.key = c.key AND m.archived_at IS NULL AND m.updated_at <= s.since
) FROM own c
"""


def core_sources(db: Connection, section: str, chat: str | None = None) -> dict[str, CoreValueSource]:
    """Return the keys of a section, also those that somebody has removed.

    chat: of the group of chats whose profile is meant; None for that of the store.
    """
    removed = db.execute(
        "SELECT thing FROM tombstones WHERE stream = 'core' AND source IS NOT 'profile' ORDER BY thing"
    ).fetchall()
    things = (json.loads(thing) for (thing,) in removed)
    return {key: CoreValueSource() for part, key in things if part == section} | {
        key: CoreValueSource(value, source, bool(is_stale), json.loads(memory_ids), extraction_id, event_id)
        for key, value, source, memory_ids, extraction_id, event_id, is_stale in db.execute(
            _SOURCES, (section, chat or "")
        )
    }


def profile_keys(db: Connection, section: str) -> list[tuple[str | None, str]]:
    """Return the chat and the key of each value of a profile, of all groups of chats."""
    rows = db.execute(
        "SELECT nullif(chat_id, ''), key FROM core_values WHERE section = ? AND is_profile"
        " ORDER BY chat_id, key",
        (section,),
    )
    return [(chat, key) for chat, key in rows]


_CHANGES = """
SELECT day, number, writer, offset, length, segment FROM events
WHERE stream = 'core' AND type IN ('core_memory_updated', 'core_memory_deleted')
ORDER BY day, number, writer, offset
"""
"""Without what was forgotten: a forgotten value is known no more."""


class RejectedValue(NamedTuple):
    """A value that a key of the core memory had until somebody removed it, or set another one."""

    key: str
    value: str


def rejected_values(db: Connection, log: Path, section: str) -> list[RejectedValue]:
    """Return the values of a section that somebody has removed or replaced.

    Without those that somebody has set since, under any key. What memlog itself removes or replaces is not
    rejected.
    """
    changes = sorted(_changes(db, log, section), key=lambda change: change[0])
    last = {event.key: order for order, event in changes if event.source != PROFILE}
    held = {
        event.value
        for order, event in changes
        if isinstance(event, CoreMemoryUpdated) and order == last.get(event.key)
    }
    found = (
        RejectedValue(event.key, event.value)
        for order, event in changes
        if isinstance(event, CoreMemoryUpdated)
        and order < last.get(event.key, ())
        and event.value not in held
    )
    return [*dict.fromkeys(found)]


def _changes(
    db: Connection, log: Path, section: str
) -> list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]]:
    found: list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]] = []
    for day, number, writer, offset, length, segment in db.execute(_CHANGES).fetchall():
        name = cast("SegmentName", SegmentName.parse(segment))
        try:
            event = decode(line_at(log, "core", segment, offset, length), Place("core", name, offset))
        except BadLine:  # overwritten meanwhile: it was forgotten
            continue
        if isinstance(event, CoreMemoryUpdated | CoreMemoryDeleted) and event.section == section:
            found.append(((precedence(event, name), day, number, writer, offset), event))
    return found
