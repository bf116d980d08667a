"""The operations of `store.memories`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from memlog.eventlog.categories import CATEGORIES
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import (
    Event,
    MemoryAccessed,
    MemoryArchived,
    MemoryDeleted,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.fields import MemoryKind, Reads
from memlog.eventlog.positions import Position
from memlog.eventlog.settings import DEFAULTS, MOST
from memlog.query.request import Unit
from memlog.service.engine.operation import OperationGroup, make_not_found_error, operation
from memlog.service.engine.requests import (
    PRUNED,
    CategoryField,
    DryRun,
    EventId,
    EventTime,
    OnlyChat,
    Scope,
    ScopeField,
    build_event,
    check_categories,
    check_chat_unless_found,
    check_decay_rates,
    format_chat,
)
from memlog.service.memory.save import SaveReport, append_saved_memory

if TYPE_CHECKING:
    from memlog.query.conflicts import MemoryConflict
    from memlog.query.memories import Memory
    from memlog.query.provenance import StoredEvent
    from memlog.service.memory.fading import DecayReport, PruneReport

# Each operation imports what it needs, since a command that only saves needs no code for reading.

MemoryId = Annotated[str, Meta(title="ID"), "The memory."]
MemoryIds = Annotated[Sequence[str], Meta(title="ID"), "The memories."]
Tags = Annotated[list[str], "A tag; may be given several times."]

Rates = Annotated[
    Mapping[str, float],
    (
        "Factors from 0 to 1 by category, instead of all default factors; a category without a factor"
        " does not decay."
    ),
    Reads(check_decay_rates, wire=dict[str, float]),
]
Categories = Annotated[
    Iterable[str],
    f"A category to prune; may be given several times. By default {' and '.join(PRUNED)}.",
    Reads(check_categories, "category", wire=list[str], choices=tuple(CATEGORIES)),
]

_Memories = list["Memory"]
_Conflicts = list["MemoryConflict"]
_History = list["StoredEvent"]
"""An alias for use in the class, where `list` is a method."""


def looks_for_duplicates(dedup: bool, memory_id: str | None) -> bool:
    """Whether a save with these arguments looks for duplicates, and so reads the store."""
    return dedup and memory_id is None


def _check_any_chat_has_effect(given: Any) -> None:  # noqa: ANN401 - the request
    if given.any_chat and not looks_for_duplicates(given.dedup, given.memory_id):
        raise BadInput(
            "any_chat has no effect with memory_id or without dedup: memlog then ignores duplicates",
            hint="omit any_chat",
        )


class Memories(OperationGroup):
    """The memories of a store. Every change is an event, so the log loses nothing."""

    @operation("append", check=_check_any_chat_has_effect)
    def save(
        self,
        content: Annotated[str, "The text."],
        title: Annotated[str | None, "A title; without one, the content's first 80 characters."] = None,
        *,
        category: Annotated[CategoryField, "The category, which decides how fast it fades."] = "other",
        kind: Annotated[MemoryKind, "The kind of memory."] = "fact",
        importance: Annotated[Unit, "The importance, from 0 to 1."] = 0.5,
        source: Annotated[str, "The origin of the memory."] = "manual",
        topic: Annotated[str | None, "The topic."] = None,
        tags: Tags | None = None,
        memory_id: Annotated[str | None, "The memory's id; by default derived from chat and content."] = None,
        event_id: EventId | None = None,
        ts: EventTime | None = None,
        dedup: Annotated[bool, "Look for a memory that already says the same; this reads the store."] = True,
        any_chat: Annotated[bool, "Look for duplicates in every chat, not only in `chat`."] = False,
        chat: Scope = None,
    ) -> SaveReport:
        """Save a memory, unless a memory of its chat already says the same.

        The answer names the decision. An equivalent memory that a model distilled is replaced. Otherwise, an
        exact duplicate is not stored again, but counted, which restores its full salience. A near duplicate
        that says no more gets this text, these tags, and the greater importance plus 0.1; its history keeps
        both texts. Memories merge only if their kind, category and topic are equal. With `memory_id`, the
        whole memory with this id is replaced, without a search for duplicates. An archived or deleted memory
        becomes active again.

        Raises:
            BadInput: there is no such category or kind; or `any_chat` with `memory_id` or without `dedup`.
            BadInput, Busy, LogError: as `Store.append`.
            DatabaseError: the read model cannot be read or built; never without `dedup`.
        """
        event = build_event(
            MemorySaved,
            **{"content": content, "title": title, "category": category, "kind": kind, "topic": topic},
            **{"importance": importance, "source": source, "tags": tags, "memory_id": memory_id},
            **{"event_id": event_id, "ts": ts, "chat": chat},
        )
        if not looks_for_duplicates(dedup, memory_id):
            return append_saved_memory(self._append, event)
        from memlog.service.memory.duplicates import save_once

        return save_once(self._append, self._decide, self._engine.log_path, event, any_chat=any_chat)

    @operation("read", missing="memory_not_found")
    def get(self, memory_id: MemoryId) -> "Memory | None":
        """Show all fields of a memory."""
        from memlog.query.memories import find_memory

        return self._read(lambda db: find_memory(db, memory_id))

    @operation("read", missing="memory_not_found")
    def history(self, memory_id: MemoryId) -> _History:
        """Show the events that created and changed a memory, oldest first, each with its line in the log.

        A deleted memory keeps its history.
        """
        from memlog.query import memories

        return self._read(lambda db: memories.history_of_memory(db, self._engine.log_path, memory_id))

    @operation("read")
    def conflicts(self) -> _Conflicts:
        """List memory conflicts that a person must resolve: open ones first, then resolved ones.

        The weekly job compares memories. A model never changes a memory that a person saved; a person decides
        instead. At most 20 conflicts wait at a time; the others are queued. Of contradicting memories that a
        model distilled, the latest is kept, and its history has both texts.
        """
        from memlog.query.conflicts import list_conflicts

        return self._read(lambda db: list_conflicts(db, self._engine.log_path))

    @operation("append")
    def resolve(
        self,
        conflict: Annotated[str, "The conflict's id."],
        keep: Annotated[Sequence[str], Meta(title="ID"), "The memories to keep, or the proposed memory."],
    ) -> "MemoryConflict":
        """Resolve a conflict: keep some of its memories, and archive the others.

        If you keep only the memory that the model proposes, it replaces the others.

        Raises:
            NotFound: no conflict with this id waits.
            BadInput: `keep` is empty, or names a deleted memory or one outside the conflict; or as
                `Store.append`.
            Busy, LogError: as `Store.append`.
        """
        from memlog.service.memory.conflicts import resolve_conflict

        return resolve_conflict(self._append, self._decide, self._engine.log_path, conflict, [*keep])

    @operation("append")
    def unmerge(self, memory_id: MemoryId) -> _Memories:
        """Undo the newest merge into a memory: the merged memories become as they were before.

        The result of the merge is removed, unless it was changed later. The history keeps all events. Later
        merges leave these memories separate.

        Raises:
            NotFound: no memory has this id.
            BadInput: there is no merge to undo, or its result was merged into another memory.
            BadInput, Busy, LogError: as `Store.append`.
        """
        from memlog.service.memory.conflicts import undo_newest_merge

        return undo_newest_merge(self._append, self._decide, memory_id)

    @operation("append")
    def update(
        self,
        memory_id: MemoryId,
        *,
        content: Annotated[str | None, "The text."] = None,
        title: Annotated[str | None, "A title."] = None,
        category: Annotated[CategoryField | None, "The category, which decides how fast it fades."] = None,
        kind: Annotated[MemoryKind | None, "The kind of memory."] = None,
        importance: Annotated[Unit | None, "The importance, from 0 to 1."] = None,
        salience: Annotated[Unit | None, "The salience, from 0 to 1; later decays start from it."] = None,
        source: Annotated[str | None, "The origin of the memory."] = None,
        topic: Annotated[str | None, "The topic."] = None,
        chat: Annotated[ScopeField | None, "The conversation that it belongs to."] = None,
        tags: Tags | None = None,
        event_id: EventId | None = None,
        ts: EventTime | None = None,
    ) -> Position:
        """Change the given fields of a memory; the others stay unchanged.

        An empty title, topic, chat or list of tags clears the field.

        Raises:
            NotFound: no active or archived memory has this id.
            BadInput: no field is given, or there is no such category or kind.
            BadInput, Busy, LogError: as `Store.append`.
        """
        given = {
            **{"content": content, "title": title, "category": category, "kind": kind, "source": source},
            **{"importance": importance, "salience": salience, "topic": topic, "chat": chat, "tags": tags},
        }
        if all(value is None for value in given.values()):
            raise BadInput("no fields to change were given", hint="set a field, for example content")
        event = build_event(MemoryUpdated, memory_id=memory_id, event_id=event_id, ts=ts, **given)
        return self._append_change([memory_id], event)

    @operation("append")
    def archive(self, memory_id: MemoryId) -> Position:
        """Archive a memory: it is kept, but left out of searches.

        Raises:
            NotFound, BadInput, Busy, LogError: as `update`.
        """
        return self._append_change([memory_id], MemoryArchived(memory_id=memory_id))

    @operation("append")
    def archive_all(self, memory_ids: MemoryIds, *, dry_run: DryRun = False) -> _Memories:
        """Archive memories; return those that were active, as they were before the change.

        Raises:
            NotFound: some memories do not exist; none is archived.
            BadInput: no memory is given. BadInput, Busy, LogError: as `Store.append`.
        """
        from memlog.query.memories import find_memory

        names = [*dict.fromkeys(memory_ids)]
        if not names:
            raise BadInput("no memories were given", hint="specify memory_ids")
        found = self._decide(lambda db: [find_memory(db, each) for each in names])
        if unknown := [name for name, each in zip(names, found, strict=True) if each is None]:
            raise make_not_found_error("memory_not_found", *unknown)
        active = [each for each in found if each is not None and each.archived_at is None]
        if not dry_run:
            self._append(MemoryArchived(memory_id=each.memory_id) for each in active)
        return active

    @operation("append", missing="memory_not_found")
    def delete(self, memory_id: MemoryId) -> Position | Literal[False]:
        """Delete a memory. Its events stay in the log; saving the text again restores the memory.

        Raises:
            BadInput, Busy, LogError: as `Store.append`.
        """
        if self._unknown_ids([memory_id]):
            return False
        return self._append_one(MemoryDeleted(memory_id=memory_id))

    @operation("append")
    def touch(self, *memory_ids: Annotated[str, Meta(title="ID"), "The memories."]) -> Position:
        """Record that an agent has accessed memories, once for each memory.

        Raises:
            NotFound: some memories do not exist; no access is recorded.
            BadInput: no memory is given. BadInput, Busy, LogError: as `Store.append`.
        """
        return self._append_change(memory_ids, MemoryAccessed(memory_ids=[*dict.fromkeys(memory_ids)]))

    @operation("read")
    def list(
        self,
        *,
        chat: OnlyChat = None,
        category: Annotated[
            CategoryField | None,
            "Only memories of this category; `other` includes categories that memlog does not know.",
        ] = None,
        kind: Annotated[MemoryKind | None, "Only memories of this kind."] = None,
        topic: Annotated[str | None, "Only memories of this topic, in any spelling."] = None,
        tag: Annotated[str | None, "Only memories with this tag."] = None,
        min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.0,
        archived: Annotated[bool, "List archived memories instead of active ones."] = False,
        limit: Annotated[int | None, Meta(ge=1, le=MOST), "The most memories; by default all."] = None,
        light: Annotated[bool, "Leave contents out, for long lists: they are empty, and not read."] = False,
    ) -> _Memories:
        """List memories by descending salience; ties are sorted by the most recent change.

        Events change the salience of a memory, its age lowers its freshness, and its relevance is the product
        of salience, freshness and importance.
        """
        from memlog.query.memories import find_memories

        scope = chat and format_chat(chat)
        found = self._read(
            lambda db: find_memories(
                db,
                category=category,
                kind=kind,
                chat=scope,
                topic=topic,
                tag=tag,
                limit=limit,
                min_salience=min_salience,
                archived=archived,
                light=light,
            )
        )
        check_chat_unless_found(chat, found)
        return found

    @operation("append")
    def decay(self, rates: Rates | None = None) -> "DecayReport":
        """Multiply the salience of every older memory by the rate of its category, once a day.

        Only the first call on a UTC day has an effect; the answer says whether this was the first call. The
        setting `decay.rates` overrides the default factors of single categories.

        Raises:
            BadInput: a rate is not from 0 to 1, there is no such category, or today's decay was forgotten.
            Busy, LogError: as `Store.append`. It is safe to retry.
        """
        from memlog.service.memory import fading

        chosen = self._engine.decay_rules.all_rates() if rates is None else rates
        return fading.append_todays_decay(self._append, self._decide, chosen)

    @operation("append")
    def prune(
        self,
        *,
        dry_run: DryRun = False,
        categories: Categories = PRUNED,
        threshold: Annotated[
            Unit, "The relevance up to which a memory is archived."
        ] = DEFAULTS.archive_threshold,
    ) -> "PruneReport":
        """Archive faded memories: those whose relevance today is at most `threshold`.

        They are kept, but left out of searches; saving one again restores it. Decays and age lower relevance.

        Raises:
            BadInput: there is no such category, or none is given.
            Busy, LogError: as `Store.append`. Some memories may be archived; it is safe to retry.
        """
        from memlog.service.memory import fading

        return fading.archive_faded_memories(
            self._append, self._decide, categories, threshold, dry_run=dry_run
        )

    def _append_change(self, memory_ids: Sequence[str], event: Event) -> Position:
        if unknown := self._unknown_ids(memory_ids):
            raise make_not_found_error("memory_not_found", *unknown)
        return self._append_one(event)

    def _unknown_ids(self, memory_ids: Sequence[str]) -> Sequence[str]:
        from memlog.query import provenance

        return self._decide(lambda db: provenance.unknown_ids(db, memory_ids, "memories"))
