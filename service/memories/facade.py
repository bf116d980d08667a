"""Memories as a program saves, reads and changes them: `store.memories`."""

from collections.abc import Sequence
from typing import Literal

from memlog.eventlog.acknowledgements import Position
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import MemoryAccessed, MemoryArchived, MemoryDeleted, MemorySaved, MemoryUpdated
from memlog.query import ids, memories
from memlog.query.conflicts import MemoryConflict, conflicts
from memlog.query.memories import Memory
from memlog.query.provenance import StoredEvent
from memlog.service.engine import OperationGroup
from memlog.service.memories import fading
from memlog.service.memories.conflicts import resolve
from memlog.service.memories.deduplication import save_once
from memlog.service.memories.fading import DecayReport, PruneReport
from memlog.service.memories.save import SaveReport, save
from memlog.service.memories.unmerging import unmerge
from memlog.service.missing import not_found
from memlog.service.operations import operation
from memlog.service.requests.fading import DecayMemories, PruneMemories
from memlog.service.requests.memories import (
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
from memlog.service.requests.scope import event_of

_Memories = list[Memory]
_Conflicts = list[MemoryConflict]
"""Within the class `list` is its method."""


class Memories(OperationGroup):
    """The memories of a store. Every change is an event; the log loses nothing."""

    @operation(SaveMemory, effect="append")
    def save(self, asked: SaveMemory) -> SaveReport:
        event = event_of(MemorySaved, asked)
        if asked.looks_for_duplicates:
            return save_once(
                self._append, self._decide, self._engine.log_path, event, any_chat=asked.any_chat
            )
        return save(self._append, event)

    @operation(GetMemory, effect="read", missing="memory_not_found")
    def get(self, asked: GetMemory) -> Memory | None:
        """Returns None if no memory has this id."""
        return self._query(memories.memory, asked)

    @operation(ShowHistory, effect="read", missing="memory_not_found")
    def history(self, asked: ShowHistory) -> list[StoredEvent]:
        return self._read(lambda db: memories.history(db, self._engine.log_path, asked.memory_id))

    @operation(ListConflicts, effect="read")
    def conflicts(self, _: ListConflicts) -> _Conflicts:
        return self._read(lambda db: conflicts(db, self._engine.log_path))

    @operation(ResolveConflict, effect="append")
    def resolve(self, asked: ResolveConflict) -> MemoryConflict:
        return resolve(self._append, self._decide, self._engine.log_path, asked.conflict, [*asked.keep])

    @operation(UnmergeMemory, effect="append")
    def unmerge(self, asked: UnmergeMemory) -> _Memories:
        return unmerge(self._append, self._decide, asked.memory_id)

    @operation(UpdateMemory, effect="append")
    def update(self, asked: UpdateMemory) -> Position:
        if asked.is_empty:
            raise BadInput("nothing is to be changed", hint="give a field of the memory, such as content")
        return self._change([asked.memory_id], event_of(MemoryUpdated, asked))

    @operation(ArchiveMemory, effect="append")
    def archive(self, asked: ArchiveMemory) -> Position:
        return self._change([asked.memory_id], MemoryArchived(memory_id=asked.memory_id))

    @operation(ArchiveMemories, effect="append")
    def archive_all(self, asked: ArchiveMemories) -> _Memories:
        memory_ids = [*dict.fromkeys(asked.memory_ids)]
        if not memory_ids:
            raise BadInput("no memory is named", hint="give memory_ids")
        found = self._decide(lambda db: [memories.memory(db, each) for each in memory_ids])
        if unknown := [name for name, memory in zip(memory_ids, found, strict=True) if memory is None]:
            raise not_found("memory_not_found", *unknown)
        active = [memory for memory in found if memory is not None and memory.archived_at is None]
        if not asked.dry_run:
            self._append(MemoryArchived(memory_id=memory.memory_id) for memory in active)
        return active

    @operation(DeleteMemory, effect="append", missing="memory_not_found")
    def delete(self, asked: DeleteMemory) -> Position | Literal[False]:
        """Returns False if no memory has this id."""
        if self._unknown([asked.memory_id]):
            return False
        return self._append_one(MemoryDeleted(memory_id=asked.memory_id))

    @operation(TouchMemories.named, effect="append")
    def touch(self, asked: TouchMemories) -> Position:
        return self._change(asked.memory_ids, MemoryAccessed(memory_ids=[*dict.fromkeys(asked.memory_ids)]))

    @operation(ListMemories, effect="read")
    def list(self, asked: ListMemories) -> _Memories:
        found = self._query(memories.memories, asked)
        asked.check_found(found)
        return found

    @operation(DecayMemories, effect="append")
    def decay(self, asked: DecayMemories) -> DecayReport:
        return fading.decay(self._append, self._decide, asked.rates)

    @operation(PruneMemories, effect="append")
    def prune(self, asked: PruneMemories) -> PruneReport:
        return fading.prune(
            self._append, self._decide, asked.categories, asked.threshold, dry_run=asked.dry_run
        )

    def _change(self, memory_ids: Sequence[str], event: Event) -> Position:
        if unknown := self._unknown(memory_ids):
            raise not_found("memory_not_found", *unknown)
        return self._append_one(event)

    def _unknown(self, memory_ids: Sequence[str]) -> Sequence[str]:
        return self._decide(lambda db: ids.unknown(db, memory_ids, "memories"))
