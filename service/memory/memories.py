"""The operations of `store.memories`."""

from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from memlog.eventlog.codec.encode import new_id
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import (
    ChangeUndone,
    Event,
    Extraction,
    MemoriesMerged,
    MemoryAccessed,
    MemoryArchived,
    MemoryDeleted,
    MemorySaved,
    MemoryUpdated,
    MergeDecision,
    Position,
)
from memlog.projector.sqlite import Connection
from memlog.query import memories, provenance
from memlog.query.conflicts import (
    MemoryConflict,
    conflicts,
    last_merge,
    merged_again_into,
    worded_by_somebody,
)
from memlog.query.memories import Memory, memory
from memlog.query.provenance import StoredEvent
from memlog.service.engine.engine import OperationGroup
from memlog.service.engine.operation import not_found, operation
from memlog.service.engine.read_model import Deciding
from memlog.service.engine.requests import event_of
from memlog.service.memory import fading
from memlog.service.memory.duplicates import as_own, save_once
from memlog.service.memory.fading import DecayMemories, DecayReport, PruneMemories, PruneReport
from memlog.service.memory.requests import (
    ArchiveMemories,
    ArchiveMemory,
    DeleteMemory,
    GetMemory,
    ListConflicts,
    ListMemories,
    ResolveConflict,
    SaveMemory,
    ShowHistory,
    TouchMemories,
    UnmergeMemory,
    UpdateMemory,
)
from memlog.service.memory.save import Append, SaveReport, save


def resolve(append: Append, decide: Deciding, log: Path, name: str, keep: Sequence[str]) -> MemoryConflict:
    """Archive the memories of a conflict that are not kept, and make the others a person's own.

    Raises the errors of `Memories.resolve`.
    """
    found, holding, own, active = decide(partial(_read_conflict, log=log, name=name, keep=keep))
    if found is None or found.state not in ("waiting", "queued"):
        raise NotFound(
            f"no conflict {name!r} waits for a decision",
            hint="store.memories.conflicts()",
        )
    ids, proposed = _member_ids(found)
    kept = {*keep}
    if not kept or not (kept <= {*ids} or kept == {*proposed}):
        hint = f"one or several of {', '.join(ids)}" + "".join(f"; or {each} alone" for each in proposed)
        raise BadInput("keep names a memory outside the conflict", hint=hint)
    held = [each for each in holding if each is not None]
    if len(held) < len(holding):
        raise BadInput("keep names a memory that no longer exists", hint="store.memories.list()")
    decision = MergeDecision(
        "different" if kept == {*ids} else "accepted" if kept == {*proposed} else "contradiction",
        ids,
        [each.event_id for each in found.memories],
        keep[0] if len(kept) == 1 else None,
    )
    # They take effect with the closing event.
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


def _read_conflict(
    db: Connection, log: Path, name: str, keep: Sequence[str]
) -> tuple[MemoryConflict | None, list[Memory | None], Container[str], list[str]]:
    """Return the conflict, the memories to keep, those that a person worded, and its active ones.

    Later changes of a proposal are kept, so that undoing the decision restores them.
    """
    found = next((each for each in conflicts(db, log) if each.id == name), None)
    ids, proposed = ([], []) if found is None else _member_ids(found)
    active = [each for each in (*ids, *proposed) if _is_active(db, each)]
    return found, [memory(db, each) for each in dict.fromkeys(keep)], worded_by_somebody(db), active


def _member_ids(found: MemoryConflict) -> tuple[list[str], list[str]]:
    """Return the ids of the memories of a conflict, and of the proposed one, if any."""
    proposed = [] if found.proposed is None else [found.proposed.memory_id]
    return [each.memory_id for each in found.memories], proposed


def _is_active(db: Connection, memory_id: str) -> bool:
    found = memory(db, memory_id)
    return found is not None and found.archived_at is None


def unmerge(append: Append, decide: Deciding, memory_id: str) -> list[Memory]:
    """Undo the newest merge into a memory, and return the restored memories.

    Raises the errors of `Memories.unmerge`.
    """
    merge, into, known = decide(
        lambda db: (last_merge(db, memory_id), merged_again_into(db, memory_id), memory(db, memory_id))
    )
    if into is not None:
        raise BadInput(
            f"the memory {memory_id!r} has since been merged into {into!r}",
            hint="undo that merge first: store.memories.unmerge()",
        )
    if merge is None and known is None:
        raise not_found("memory_not_found", memory_id)
    if merge is None:
        raise BadInput(
            f"not a merge, or already undone: the memory {memory_id!r}",
            hint="store.memories.history() shows its origin",
        )
    append([ChangeUndone(event_ids=merge.event_ids)])
    return decide(lambda db: [found for each in merge.memory_ids if (found := memory(db, each)) is not None])


_Memories = list[Memory]
_Conflicts = list[MemoryConflict]
"""In the class, `list` is a method."""


class Memories(OperationGroup):
    """The memories of a store. Every change is an event; the log loses nothing."""

    @operation(SaveMemory, effect="append")
    def save(self, request: SaveMemory) -> SaveReport:
        event = event_of(MemorySaved, request)
        if request.looks_for_duplicates:
            return save_once(
                self._append, self._decide, self._engine.log_path, event, any_chat=request.any_chat
            )
        return save(self._append, event)

    @operation(GetMemory, effect="read", missing="memory_not_found")
    def get(self, request: GetMemory) -> Memory | None:
        """Return a memory; None if none has this id."""
        return self._query(memories.memory, request)

    @operation(ShowHistory, effect="read", missing="memory_not_found")
    def history(self, request: ShowHistory) -> list[StoredEvent]:
        return self._read(lambda db: memories.history(db, self._engine.log_path, request.memory_id))

    @operation(ListConflicts, effect="read")
    def conflicts(self, _: ListConflicts) -> _Conflicts:
        return self._read(lambda db: conflicts(db, self._engine.log_path))

    @operation(ResolveConflict, effect="append")
    def resolve(self, request: ResolveConflict) -> MemoryConflict:
        return resolve(self._append, self._decide, self._engine.log_path, request.conflict, [*request.keep])

    @operation(UnmergeMemory, effect="append")
    def unmerge(self, request: UnmergeMemory) -> _Memories:
        return unmerge(self._append, self._decide, request.memory_id)

    @operation(UpdateMemory, effect="append")
    def update(self, request: UpdateMemory) -> Position:
        if request.is_empty:
            raise BadInput("no field to change is given", hint="give a field of the memory, such as content")
        return self._change([request.memory_id], event_of(MemoryUpdated, request))

    @operation(ArchiveMemory, effect="append")
    def archive(self, request: ArchiveMemory) -> Position:
        return self._change([request.memory_id], MemoryArchived(memory_id=request.memory_id))

    @operation(ArchiveMemories, effect="append")
    def archive_all(self, request: ArchiveMemories) -> _Memories:
        memory_ids = [*dict.fromkeys(request.memory_ids)]
        if not memory_ids:
            raise BadInput("no memory is given", hint="give memory_ids")
        found = self._decide(lambda db: [memories.memory(db, each) for each in memory_ids])
        if unknown := [name for name, memory in zip(memory_ids, found, strict=True) if memory is None]:
            raise not_found("memory_not_found", *unknown)
        active = [memory for memory in found if memory is not None and memory.archived_at is None]
        if not request.dry_run:
            self._append(MemoryArchived(memory_id=memory.memory_id) for memory in active)
        return active

    @operation(DeleteMemory, effect="append", missing="memory_not_found")
    def delete(self, request: DeleteMemory) -> Position | Literal[False]:
        """Delete a memory; return False if none has this id."""
        if self._unknown([request.memory_id]):
            return False
        return self._append_one(MemoryDeleted(memory_id=request.memory_id))

    @operation(TouchMemories.named, effect="append")
    def touch(self, request: TouchMemories) -> Position:
        return self._change(
            request.memory_ids, MemoryAccessed(memory_ids=[*dict.fromkeys(request.memory_ids)])
        )

    @operation(ListMemories, effect="read")
    def list(self, request: ListMemories) -> _Memories:
        found = self._query(memories.memories, request)
        request.check_found(found)
        return found

    @operation(DecayMemories, effect="append")
    def decay(self, request: DecayMemories) -> DecayReport:
        return fading.decay(self._append, self._decide, request.rates)

    @operation(PruneMemories, effect="append")
    def prune(self, request: PruneMemories) -> PruneReport:
        return fading.prune(
            self._append, self._decide, request.categories, request.threshold, dry_run=request.dry_run
        )

    def _change(self, memory_ids: Sequence[str], event: Event) -> Position:
        if unknown := self._unknown(memory_ids):
            raise not_found("memory_not_found", *unknown)
        return self._append_one(event)

    def _unknown(self, memory_ids: Sequence[str]) -> Sequence[str]:
        return self._decide(lambda db: provenance.unknown(db, memory_ids, "memories"))
