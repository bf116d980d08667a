"""A person decides which of some memories holds."""

from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from memlog.eventlog.encode import new_id
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import MemoriesMerged, MemoryArchived
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import MemoryConflict, conflicts
from memlog.query.memories import Memory, memory
from memlog.query.merges import worded_by_somebody
from memlog.service.memories.own import as_own
from memlog.service.memories.save import Append
from memlog.service.read_model import Deciding


def resolve(append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]) -> MemoryConflict:
    """Archive the memories of a conflict that are not kept, and make the others somebody's own. Raises as
    `Memories.resolve`."""
    found, holding, own, active = decide(partial(_standing, log=log, name=name, keep=keep))
    if found is None or found.state not in ("waiting", "queued"):
        raise NotFound(
            f"no conflict {name!r} waits for a decision",
            hint="store.memories.conflicts()",
        )
    ids, proposed = _members(found)
    kept = {*keep}
    if not kept or not (kept <= {*ids} or kept == {*proposed}):
        hint = f"one or several of {', '.join(ids)}" + "".join(f"; or {each} alone" for each in proposed)
        raise BadInput("keep names no memory of the conflict", hint=hint)
    held = [each for each in holding if each is not None]
    if len(held) < len(holding):
        raise BadInput("keep names a memory that there is no more", hint="store.memories.list()")
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


def _standing(
    db: Connection, log: Path, name: str, keep: Sequence[str]
) -> tuple[MemoryConflict | None, list[Memory | None], Container[str], list[str]]:
    """The conflict, the memories that are to be kept, those that somebody worded, and the active ones of it:
    what a proposal has been since it was made stays, so that taking the decision back restores it."""
    found = next((each for each in conflicts(db, log) if each.id == name), None)
    ids, proposed = ([], []) if found is None else _members(found)
    active = [each for each in (*ids, *proposed) if _is_active(db, each)]
    return found, [memory(db, each) for each in dict.fromkeys(keep)], worded_by_somebody(db), active


def _members(found: MemoryConflict) -> tuple[list[str], list[str]]:
    """The ids of the memories of a conflict, and of the proposed one, if any."""
    proposed = [] if found.proposed is None else [found.proposed.memory_id]
    return [each.memory_id for each in found.memories], proposed


def _is_active(db: Connection, memory_id: str) -> bool:
    found = memory(db, memory_id)
    return found is not None and found.archived_at is None
