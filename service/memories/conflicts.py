"""A person decides which of some memories holds."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from memlog.eventlog.encode import new_id
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import MemoriesMerged, MemoryArchived
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.query.conflicts import MemoryConflict, conflicts
from memlog.query.memories import memory
from memlog.query.merges import worded_by_somebody
from memlog.service.memories.own import as_own
from memlog.service.memories.save import Append
from memlog.service.read_model import Deciding


def resolve(append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]) -> MemoryConflict:
    """Archive the memories of a conflict that are not kept, and make the others somebody's own. Raises as
    `Memories.resolve`."""
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
    holding = decide(lambda db: [memory(db, each) for each in dict.fromkeys(keep)])
    held = [each for each in holding if each is not None]
    if len(held) < len(holding):
        raise BadInput("keep names a memory that there is no more", hint="store.memories.list()")
    decision = MergeDecision(
        "different" if kept == {*ids} else "accepted" if kept == {*proposed} else "contradiction",
        ids,
        [each.event_id for each in found.memories],
        keep[0] if len(kept) == 1 else None,
    )
    own = decide(worded_by_somebody)
    # They count with the line that closes them.
    origin = Extraction(
        new_id(), "person", "resolve", memory_ids=ids if decision.relation == "accepted" else []
    )
    # What a proposal has been since it was made stays, so that taking the decision back restores it.
    there = decide(lambda db: [memory(db, each) for each in (*ids, *proposed)])
    active = [each.memory_id for each in there if each is not None and each.archived_at is None]
    changes: list[Event] = [
        MemoryArchived(memory_id=each, extraction=origin) for each in active if each not in kept
    ]
    changes += [replace(as_own(each), extraction=origin) for each in held if each.memory_id not in own]
    closing = MemoriesMerged(
        id=origin.id,
        event_ids=decision.event_ids,
        chat_id=held[0].chat,
        topic=held[0].topic,
        category=held[0].category,
        decisions=[decision],
    )
    append([*changes, closing])
    found.state, found.decided_by, found.memory_id = "decided", "person", decision.memory_id
    return found
