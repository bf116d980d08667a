"""A person decides which of some memories that contradict each other holds."""

from collections.abc import Sequence
from pathlib import Path

from memlog.eventlog.encode import new_id
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import MemoriesMerged, MemoryArchived
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.query.conflicts import MemoryConflict, conflicts
from memlog.query.memories import memory
from memlog.service.memories.save import Append
from memlog.service.read_model import Deciding


def resolve(append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]) -> MemoryConflict:
    """Archive the memories of a conflict that are not kept. Raises as `Memories.resolve`."""
    found = next((each for each in decide(lambda db: conflicts(db, log)) if each.id == name), None)
    if found is None or found.state != "waiting":
        raise NotFound(
            f"no conflict {name!r} waits for a decision",
            hint="store.memories.conflicts()",
        )
    ids = [each.memory_id for each in found.memories]
    if not keep or not {*keep} <= {*ids}:
        raise BadInput("keep names no memory of the conflict", hint=f"one or several of {', '.join(ids)}")
    holds = decide(lambda db: memory(db, keep[0]))
    if holds is None:
        raise BadInput(f"there is no memory {keep[0]!r}", hint="store.memories.list()")
    all_hold = {*keep} == {*ids}
    closing_id = new_id()
    decision = MergeDecision(
        "different" if all_hold else "contradiction",
        ids,
        [each.event_id for each in found.memories],
        keep[0] if len({*keep}) == 1 else None,
    )
    # They count with the line that closes them.
    origin = Extraction(closing_id, "person", "resolve")
    archived: list[Event] = [
        MemoryArchived(memory_id=each, extraction=origin) for each in ids if each not in keep
    ]
    closing = MemoriesMerged(
        id=closing_id,
        event_ids=decision.event_ids,
        chat_id=holds.chat,
        topic=holds.topic,
        category=holds.category,
        decisions=[decision],
    )
    append([*archived, closing])
    found.state, found.decided_by, found.memory_id = "decided", "person", decision.memory_id
    return found
