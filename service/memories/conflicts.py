"""A person decides which of some memories holds."""

from collections.abc import Sequence
from pathlib import Path

from memlog.eventlog.encode import new_id
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import MemoriesMerged, MemoryArchived, MemorySaved
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import MemoryConflict, conflicts
from memlog.query.memories import Memory, memory
from memlog.service.memories.save import Append
from memlog.service.read_model import Deciding


def resolve(append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]) -> MemoryConflict:
    """Archive the memories of a conflict that are not kept. Raises as `Memories.resolve`."""
    found = next((each for each in decide(lambda db: conflicts(db, log)) if each.id == name), None)
    if found is None or found.state not in ("waiting", "queued"):
        raise NotFound(
            f"no conflict {name!r} waits for a decision",
            hint="store.memories.conflicts()",
        )
    ids = [each.memory_id for each in found.memories]
    proposed = [] if found.proposed is None else [found.proposed.memory_id]
    kept = {*keep}
    if not kept or not (kept <= {*ids} or kept == {*proposed}):
        hint = f"one or several of {', '.join(ids)}" + "".join(f"; or {each} alone" for each in proposed)
        raise BadInput("keep names no memory of the conflict", hint=hint)
    holds = decide(lambda db: memory(db, keep[0]))
    if holds is None:
        raise BadInput(f"there is no memory {keep[0]!r}", hint="store.memories.list()")
    decision = MergeDecision(
        "different" if kept == {*ids} else "accepted" if kept == {*proposed} else "contradiction",
        ids,
        [each.event_id for each in found.memories],
        keep[0] if len(kept) == 1 else None,
    )
    # They count with the line that closes them.
    origin = Extraction(
        new_id(), "person", "resolve", memory_ids=ids if decision.relation == "accepted" else []
    )
    # What a proposal has been since it was made stays, so that taking the decision back restores it.
    active = decide(lambda db: [each for each in (*ids, *proposed) if _is_active(db, each)])
    changes: list[Event] = [
        MemoryArchived(memory_id=each, extraction=origin) for each in active if each not in kept
    ]
    if decision.relation == "accepted":
        changes.append(_accepted(holds, origin))
    closing = MemoriesMerged(
        id=origin.id,
        event_ids=decision.event_ids,
        chat_id=holds.chat,
        topic=holds.topic,
        category=holds.category,
        decisions=[decision],
    )
    append([*changes, closing])
    found.state, found.decided_by, found.memory_id = "decided", "person", decision.memory_id
    return found


def _is_active(db: Connection, memory_id: str) -> bool:
    found = memory(db, memory_id)
    return found is not None and found.archived_at is None


def _accepted(proposed: Memory, origin: Extraction) -> MemorySaved:
    """The text that a model has proposed, as somebody's own: no model changes it any more."""
    return MemorySaved(
        memory_id=proposed.memory_id,
        content=proposed.content,
        category=proposed.category,
        kind=proposed.kind,
        importance=proposed.importance,
        topic=proposed.topic,
        chat_id=proposed.chat,
        tags=proposed.tags or None,
        extraction=origin,
    )
