"""Memories as a program saves, reads and changes them: `store.memories`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from memlog.eventlog.categories import known_category
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import (
    Event,
    MemoryAccessed,
    MemoryArchived,
    MemoryDeleted,
    MemoryKind,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.writer import Position
from memlog.query import memories
from memlog.query.memories import Memory
from memlog.query.provenance import Stored
from memlog.service.memories import fading
from memlog.service.memories.deduplication import save_once
from memlog.service.memories.fading import ARCHIVE_THRESHOLD, PRUNED, Decayed, Pruned
from memlog.service.memories.save import Append, Saved, check_kind, save
from memlog.service.read_model import Deciding, Reading

_Memories = list[Memory]
"""Within the class `list` is its method."""


class Memories:
    """What was kept beyond conversations. Every change is an event; nothing is ever lost from the log.

    read: asks the read model, caught up if that takes no time. decide: caught up, or raises Busy.
    """

    def __init__(self, log: Path, *, append: Append, read: Reading, decide: Deciding) -> None:
        self._log = log
        self._append = append
        self._read = read
        self._decide = decide

    def save(
        self,
        content: str,
        *,
        title: str | None = None,
        category: str = "other",
        kind: MemoryKind = "fact",
        importance: float = 0.5,
        source: str = "manual",
        topic: str | None = None,
        chat: str | None = None,
        tags: list[str] | None = None,
        memory_id: str | None = None,
        event_id: str | None = None,
        ts: str | None = None,
        dedup: bool = True,
        any_chat: bool = False,
    ) -> Saved:
        """Save a memory, where none says it. What was decided is in the answer: see `Saved`.

        An exact duplicate is counted: one `memory_accessed`. Of a near one the older memory takes the text
        and the tags, and the greater importance and 0.1 more: one `memory_updated`. Kind, category and topic
        are the same where memories are merged.

        title: the content's first 80 characters where not given.
        chat: `<channel>:<chat_id>`; None for the store's own scope.
        memory_id: whose text this is: all that it said is replaced, and no other memory is looked for.
            Derived from chat and content where not given.
        event_id: makes a second try harmless.
        dedup: False to save it in any case, without reading anything.
        any_chat: look for duplicates in every chat, not in `chat` alone.

        Raises:
            BadInput: there is no such category or kind; `any_chat` without looking for duplicates; or as
                `Store.append`, as Busy and LogError.
            DatabaseError: the read model cannot be read, nor made; never without `dedup`.
        """
        event = MemorySaved(
            id=event_id,
            ts=ts,
            content=content,
            memory_id=memory_id,
            title=title,
            category=category,
            kind=kind,
            importance=importance,
            source=source,
            topic=topic,
            chat_id=chat,
            tags=tags,
        )
        if memory_id is not None or not dedup:
            if any_chat:
                raise BadInput("no duplicate is looked for in any chat", hint="leave out any_chat")
            return save(self._append, event)
        return save_once(self._append, self._decide, self._log, event, any_chat=any_chat)

    def get(self, memory_id: str) -> Memory | None:
        """The memory of this id; None where none stands."""
        return self._read(lambda db: memories.memory(db, memory_id))

    def history(self, memory_id: str) -> list[Stored]:
        """The events that name a memory, in the one order of events, also where it no longer stands."""
        return self._read(lambda db: memories.history(db, self._log, memory_id))

    def update(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        title: str | None = None,
        category: str | None = None,
        kind: MemoryKind | None = None,
        importance: float | None = None,
        salience: float | None = None,
        source: str | None = None,
        topic: str | None = None,
        chat: str | None = None,
        tags: list[str] | None = None,
        event_id: str | None = None,
        ts: str | None = None,
    ) -> Position:
        """Set what is given, and leave the rest. An empty title, topic, chat or list of tags takes it away.

        Raises:
            NotFound: no memory of this id stands.
            BadInput: nothing is given, or there is no such category or kind; or as `Store.append`, as Busy
                and LogError.
        """
        check_kind(kind)
        event = MemoryUpdated(
            id=event_id,
            ts=ts,
            memory_id=memory_id,
            content=content,
            title=title,
            category=None if category is None else known_category(category),
            kind=kind,
            importance=importance,
            salience=salience,
            source=source,
            topic=topic,
            chat_id=chat,
            tags=tags,
        )
        if event == MemoryUpdated(id=event_id, ts=ts, memory_id=memory_id):
            raise BadInput("nothing is to be changed", hint="name what the memory is to say instead")
        return self._change([memory_id], event)

    def archive(self, memory_id: str) -> Position:
        """Keep a memory, and no longer search it. Raises as `update`."""
        return self._change([memory_id], MemoryArchived(memory_id=memory_id))

    def delete(self, memory_id: str) -> Position | Literal[False]:
        """Take a memory away, until it is saved again; False where none of this id stands.

        Its events stay in the log: `history` shows them.

        Raises:
            BadInput, Busy, LogError: as `Store.append`.
        """
        if self._unknown([memory_id]):
            return False
        (position,) = self._append([MemoryDeleted(memory_id=memory_id)])
        return position

    def touch(self, *memory_ids: str) -> Position:
        """Count that these memories were given to an agent, once each.

        Raises:
            NotFound: some of them do not stand; nothing was counted. BadInput: none is named.
        """
        return self._change(memory_ids, MemoryAccessed(memory_ids=list(dict.fromkeys(memory_ids))))

    def list(
        self,
        *,
        category: str | None = None,
        kind: MemoryKind | None = None,
        chat: str | None = None,
        topic: str | None = None,
        tag: str | None = None,
        min_salience: float = 0.0,
        archived: bool = False,
        limit: int | None = None,
    ) -> _Memories:
        """The memories that are all that is asked for: by falling salience, the last changed first, by id.

        category: `other` is also what memlog does not know.
        chat: `<channel>:<chat_id>`. limit: at most so many; None for all.
        archived: those that are archived, in the place of those that are not.

        Raises:
            BadInput: there is no such category, kind or salience.
        """
        check_kind(kind)
        fading.check_unit("min_salience", min_salience)
        return self._read(
            lambda db: memories.memories(
                db,
                category=category,
                kind=kind,
                chat=chat,
                topic=topic,
                tag=tag,
                min_salience=min_salience,
                archived=archived,
                limit=limit,
            )
        )

    def decay(self, rates: Mapping[str, float] | None = None) -> Decayed:
        """Let a day pass: multiply the salience of every older memory by the rate of its category.

        Once a UTC day, whatever number of times and processes call it.

        rates: factors from 0 to 1 by category, in the place of all that `memlog` has: a category that they do
            not name stays as it is.

        Raises:
            BadInput: a rate is not from 0 to 1, or of no category; or today's decay was forgotten.
            Busy, LogError: as `Store.append`. It is safe to call it again.
        """
        return fading.decay(self._append, self._decide, rates)

    def prune(
        self,
        *,
        categories: Iterable[str] = PRUNED,
        threshold: float = ARCHIVE_THRESHOLD,
        confirm: fading.Confirm = lambda _: True,
    ) -> Pruned:
        """Archive the memories of some categories whose relevance today is at most `threshold`, from 0 to 1.

        confirm: asked with what would be archived; where it says no, nothing is done.

        Raises:
            BadInput: there is no such category or threshold.
            Busy, LogError: as `Store.append`. Some may be archived; it is safe to call it again.
        """
        return fading.prune(
            self._append, self._decide, categories=categories, threshold=threshold, confirm=confirm
        )

    def _change(self, memory_ids: Sequence[str], event: Event) -> Position:
        unknown = self._unknown(memory_ids)
        if unknown:
            raise unknown_memory(*unknown)
        (position,) = self._append([event])
        return position

    def _unknown(self, memory_ids: Sequence[str]) -> Sequence[str]:
        return self._decide(lambda db: memories.unknown(db, memory_ids))


def unknown_memory(*memory_ids: str) -> NotFound:
    """The error where no memory has these ids."""
    return NotFound(
        f"no memory {', '.join(map(repr, memory_ids))}", hint="memlog memory list", code="memory_not_found"
    )
