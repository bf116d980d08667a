"""Resolves a conflict between memories, and undoes a merge."""

from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from memlog.eventlog.codec.encode import make_event_id
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import (
    ChangeUndone,
    Event,
    Extraction,
    MemoriesMerged,
    MemoryArchived,
    MergeDecision,
)
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import (
    MemoryConflict,
    find_last_merge_not_undone,
    ids_of_memories_worded_by_hand,
    last_merge_target,
    list_conflicts,
)
from memlog.query.memories import Memory, find_memory
from memlog.service.engine.operation import make_not_found_error
from memlog.service.engine.read_model import Deciding
from memlog.service.memory.duplicates import build_own_event
from memlog.service.memory.save import Append


def resolve_conflict(
    append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]
) -> MemoryConflict:
    """Archive a conflict's memories that are not in `keep`, and save the others as a person's.

    Raises the errors of `Memories.resolve`.
    """
    found, holding, own, active = decide(partial(_read_conflict, log=log, name=name, keep=keep))
    if found is None or found.state not in ("waiting", "queued"):
        raise NotFound(f"no open conflict {name!r}", hint="store.memories.conflicts() lists open conflicts")
    ids, proposed = _member_ids(found)
    kept = {*keep}
    if not kept or not (kept <= {*ids} or kept == {*proposed}):
        hint = f"use one or more of: {', '.join(ids)}" + "".join(f"; or {each} alone" for each in proposed)
        raise BadInput("keep must list memories that are in this conflict", hint=hint)
    held = [each for each in holding if each is not None]
    if len(held) < len(holding):
        raise BadInput("keep lists a memory that no longer exists", hint="see store.memories.list()")
    decision = MergeDecision(
        "different" if kept == {*ids} else "accepted" if kept == {*proposed} else "contradiction",
        ids,
        [each.event_id for each in found.memories],
        keep[0] if len(kept) == 1 else None,
    )
    # They take effect with the closing event.
    origin = Extraction(
        make_event_id(), "person", "resolve", memory_ids=ids if decision.relation == "accepted" else []
    )
    changes: list[Event] = [
        MemoryArchived(memory_id=each, extraction=origin) for each in active if each not in kept
    ]
    changes += [
        replace(build_own_event(each), extraction=origin) for each in held if each.memory_id not in own
    ]
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


def _read_conflict(
    db: Connection, log: Path, name: str, keep: Sequence[str]
) -> tuple[MemoryConflict | None, list[Memory | None], Container[str], list[str]]:
    """Return the conflict, the memories to keep, the ids of memories worded by a person, and the active ids.

    Later changes of a proposal are kept, so that undoing the decision restores them.
    """
    found = next((each for each in list_conflicts(db, log) if each.id == name), None)
    ids, proposed = ([], []) if found is None else _member_ids(found)
    known = filter(None, (find_memory(db, each) for each in (*ids, *proposed)))
    active = [each.memory_id for each in known if each.archived_at is None]
    return (
        found,
        [find_memory(db, each) for each in dict.fromkeys(keep)],
        ids_of_memories_worded_by_hand(db),
        active,
    )


def _member_ids(found: MemoryConflict) -> tuple[list[str], list[str]]:
    """Return the ids of a conflict's memories, and the id of the proposed memory, if any."""
    proposed = [] if found.proposed is None else [found.proposed.memory_id]
    return [each.memory_id for each in found.memories], proposed


def undo_newest_merge(append: Append, decide: Deciding, memory_id: str) -> list[Memory]:
    """Undo the newest merge into a memory, and return the restored memories.

    Raises the errors of `Memories.unmerge`.
    """
    merge, into, known = decide(
        lambda db: (
            find_last_merge_not_undone(db, memory_id),
            last_merge_target(db, memory_id),
            find_memory(db, memory_id),
        )
    )
    if into is not None:
        raise BadInput(
            f"the memory {memory_id!r} has since been merged into {into!r}",
            hint="undo that merge first: store.memories.unmerge()",
        )
    if merge is None and known is None:
        raise make_not_found_error("memory_not_found", memory_id)
    if merge is None:
        raise BadInput(
            f"the memory {memory_id!r} has no merge to undo",
            hint="store.memories.history() shows its origin",
        )
    append([ChangeUndone(event_ids=merge.event_ids)])
    return decide(
        lambda db: [found for each in merge.memory_ids if (found := find_memory(db, each)) is not None]
    )
