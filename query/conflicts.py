"""Contradictions between memories, open and decided, and merges of memories."""

import json
from pathlib import Path
from typing import Literal

import msgspec

from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.provenance import EVENT_COLUMNS, read_event_of_row


class ConflictingMemory(msgspec.Struct, kw_only=True):
    """A memory in a conflict. content: its text at the time of the comparison; None if since forgotten."""

    memory_id: str
    event_id: str
    content: str | None


class MemoryConflict(msgspec.Struct, kw_only=True):
    """Memories that contradict each other, or that a model proposes to replace with a new text.

    relation: `contradiction` if they can't all be true; `same` or `update` if a model proposes to replace
        something a person or agent saved.
    state: `waiting` for a person; `queued` behind an earlier conflict; `decided` by a `model` or a `person`;
        `settled` if one of the memories has since changed or been archived, or the memory proposed for `same`
        or `update` has been deleted.
    memory_id: the memory that was kept; None if none was chosen or all were kept. memories: oldest first.
    proposed: a memory with the text the model proposes; if kept, it replaces the others.
    """

    id: str
    ts: str
    relation: Literal["same", "update", "contradiction"]
    state: Literal["waiting", "queued", "decided", "settled"]
    decided_by: Literal["model", "person"] | None
    memory_id: str | None
    memories: list[ConflictingMemory]
    proposed: ConflictingMemory | None = None


MOST_OPEN = 20
"""The most conflicts that wait for a person at the same time; the others are queued."""

# A person's decision is a separate row with the same events; the id remains that of the model's.
_CONFLICTS = """
SELECT d.extraction_id || '.' || d.number AS id, d.ts, d.relation, d.memory_ids, d.event_ids, d.proposal_id,
    p.relation AS by_person, iif(d.is_undone, NULL, coalesce(p.memory_id, d.memory_id)) AS memory_id,
    d.extraction_id, d.number,
    d.memory_id IS NULL AND p.relation IS NULL AND NOT EXISTS (
        SELECT 1 FROM json_each(d.event_ids) v
        WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.event_id = v.value AND m.archived_at IS NULL)
    ) AND (
        d.relation = 'contradiction' OR d.proposal_id IS NULL
        OR EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = d.proposal_id)
    ) AS is_open
FROM decisions d JOIN closed_extractions c ON (c.stream, c.id) = (d.stream, d.extraction_id)
LEFT JOIN (
    SELECT x.event_ids, x.relation, x.memory_id FROM decisions x
    JOIN closed_extractions y ON (y.stream, y.id) = (x.stream, x.extraction_id)
    WHERE y.model IS NULL AND x.relation IN ('contradiction', 'different', 'accepted') AND NOT x.is_undone
    GROUP BY x.event_ids HAVING max(x.ts) IS NOT NULL
) p ON p.event_ids = d.event_ids
WHERE (d.relation = 'contradiction' OR d.memory_id IS NULL) AND c.model IS NOT NULL
"""

# The oldest open conflicts wait; the other open ones are queued.
_LISTED = f"""
SELECT id, ts, relation, memory_ids, event_ids, proposal_id, by_person, memory_id,
    is_open AND row_number() OVER (PARTITION BY is_open ORDER BY ts, extraction_id, number) <= {MOST_OPEN}
    AS is_waiting, is_open
FROM ({_CONFLICTS})
ORDER BY is_waiting DESC, is_open DESC, ts DESC, extraction_id DESC, number
"""


def list_conflicts(db: Connection, log: Path) -> list[MemoryConflict]:
    """Return all conflicts: waiting, then queued, then closed ones, newest first."""
    found = []
    for row in db.execute(_LISTED).fetchall():
        name, ts, relation, memory_ids, event_ids, proposal_id, by_person, memory_id, is_waiting, is_open = (
            row
        )
        by: Literal["model", "person"] | None = (
            "person" if by_person is not None else "model" if memory_id is not None else None
        )
        texts = [
            ConflictingMemory(memory_id=memory, event_id=event, content=_decode_content(db, log, event))
            for memory, event in zip(json.loads(memory_ids), json.loads(event_ids), strict=False)
        ]
        closed: Literal["decided", "settled"] = "settled" if by is None else "decided"
        found.append(
            MemoryConflict(
                id=name,
                ts=ts,
                relation=relation,
                state="waiting" if is_waiting else "queued" if is_open else closed,
                decided_by=by,
                memory_id=memory_id,
                memories=texts,
                proposed=_decode_proposal(db, proposal_id),
            )
        )
    return found


def count_open_conflicts(db: Connection) -> int:
    """Count the conflicts that are waiting or queued."""
    (count,) = db.execute(f"SELECT count(*) FROM ({_CONFLICTS}) WHERE is_open").fetchone()
    return int(count)


def ids_of_contested_memories(db: Connection) -> set[str]:
    """Return the ids of memories in open contradictions or proposed in other open conflicts."""
    rows = db.execute(
        f"SELECT relation, memory_ids, proposal_id FROM ({_CONFLICTS}) WHERE is_open"
    ).fetchall()
    sides = {name for relation, names, _ in rows if relation == "contradiction" for name in json.loads(names)}
    return sides | {proposal for _, _, proposal in rows if proposal is not None}


def ids_of_proposed_memories(db: Connection) -> set[str]:
    """Return the ids of the memories that models propose in open conflicts."""
    rows = db.execute(f"SELECT proposal_id FROM ({_CONFLICTS}) WHERE is_open AND proposal_id IS NOT NULL")
    return {name for (name,) in rows}


def _decode_proposal(db: Connection, memory_id: str | None) -> ConflictingMemory | None:
    row = db.execute("SELECT event_id, content FROM memories WHERE memory_id = ?", (memory_id,)).fetchone()
    return row and ConflictingMemory(memory_id=str(memory_id), event_id=row[0], content=row[1])


def _decode_content(db: Connection, log: Path, event_id: str) -> str | None:
    row = db.execute(
        f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.stream = 'memory' AND e.id = ?", (event_id,)
    ).fetchone()
    if row is None:
        return None
    content = msgspec.json.decode(read_event_of_row(log, row).raw).get("content")
    return content if isinstance(content, str) else None


_REMOVED = """
SELECT coalesce(max(substr(precedence, 1, 24)), '') FROM tombstones
WHERE stream = 'core' AND source = 'profile' AND json_extract(thing, '$[3]') = coalesce(?, '')
"""


def ids_of_compared_or_profiled_events(db: Connection, stream: str, chat: str | None = None) -> set[str]:
    """Return the ids of events already compared (stream `memory`) or used for a profile (stream `core`).

    chat: the chat that names the profile's group; None for the store's own profile. Contents that a profile
        used count as new once that profile is removed.
    """
    (since,) = db.execute(_REMOVED, (chat,)).fetchone() if stream == "core" else ("",)
    rows = db.execute(
        "SELECT event_id FROM compared_contents t WHERE stream = ?1 AND (?1 <> 'core' OR EXISTS ("
        "SELECT 1 FROM closed_extractions c WHERE (c.stream, c.id) = (t.stream, t.extraction_id)"
        " AND c.chat_id IS ?2 AND c.ts >= ?3))",
        (stream, chat, since),
    )
    return {event_id for (event_id,) in rows}


class Merge(msgspec.Struct):
    """A merge that was not undone. memory_ids: the merged memories. event_ids: the events it produced."""

    memory_ids: list[str]
    event_ids: list[str]


MERGED = "merge"
"""The source of memories made by merging distilled ones."""

DISTILLED = ("extraction", MERGED)
"""Sources of memories that nobody saved by hand."""

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

# Excludes the save of a memory that has been changed since.
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


def ids_of_memories_worded_by_hand(db: Connection) -> set[str]:
    """Return the ids of memories that a person or an agent saved or reworded."""
    return {memory_id for (memory_id,) in db.execute(_OWN, (to_json_list(DISTILLED),))}


def find_last_merge_not_undone(db: Connection, memory_id: str) -> Merge | None:
    """Return the latest merge into `memory_id` that was not undone, or None."""
    for stream, extraction_id, number, memory_ids, is_undone in db.execute(_MERGES, (memory_id,)).fetchall():
        if not is_undone:
            changes = db.execute(_CHANGES, (stream, extraction_id, number))
            return Merge(json.loads(memory_ids), [event_id for (event_id,) in changes])
    return None


def last_merge_target(db: Connection, memory_id: str) -> str | None:
    """Return the id of the memory that `memory_id` was last merged into; None if no merge is in effect."""
    row = db.execute(_INTO, (memory_id,)).fetchone()
    return None if row is None else str(row[0])


def content_events_of_undone_merges(db: Connection) -> list[frozenset[str]]:
    """Return, for each merge that a person undid, the ids of the content events it merged."""
    rows = db.execute("SELECT event_ids FROM decisions WHERE is_undone AND memory_id IS NOT NULL")
    return [frozenset(json.loads(event_ids)) for (event_ids,) in rows]
