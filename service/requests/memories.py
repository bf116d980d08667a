"""Requests for memories: `store.memories`. A command that saves one imports this: it reads no SQLite."""

from collections.abc import Sequence
from typing import Annotated, Self

from msgspec import Meta

from memlog.eventlog.categories import CATEGORIES, known_category
from memlog.eventlog.errors import BadInput
from memlog.eventlog.event_fields import MemoryKind
from memlog.eventlog.limits import MOST
from memlog.eventlog.struct_fields import Reads
from memlog.query.request import Request, Unit, one_by_one
from memlog.service.requests.scope import AcrossChats, EventId, EventTime, Scoped, ScopeField, Tried

CategoryField = Annotated[str, Reads(known_category, "category", choices=tuple(CATEGORIES))]
"""A category that memlog knows; `decision` is read as `decisions`."""

Tags = Annotated[list[str], "A tag; may be given several times."]


class SaveMemory(Scoped, frozen=True):
    """Save a memory, unless one of its chat already says it.

    The answer holds the decision. What a model distilled of the same is replaced. Of other memories, an exact
    duplicate is counted, which makes its salience whole again, and not stored again. A near duplicate that
    says no more takes this text and these tags, and the greater importance plus 0.1; its history keeps both
    texts. Memories merge only where kind, category and topic are equal. With `memory_id` this memory is
    replaced whole, and no other is looked for. An archived or deleted memory becomes active again.

    Raises:
        BadInput: there is no such category or kind; `any_chat` with `memory_id` or without `dedup`; or as
            `Store.append`, as Busy and LogError.
        DatabaseError: the read model cannot be read or made; never without `dedup`.
    """

    content: Annotated[str, "The text."]
    title: Annotated[str | None, "A title; without one, the content's first 80 characters."] = None
    category: Annotated[CategoryField, "What sort of thing it is: how fast it fades."] = "other"
    kind: Annotated[MemoryKind, "What kind it is."] = "fact"
    importance: Annotated[Unit, "From 0 to 1."] = 0.5
    source: Annotated[str, "Where it comes from."] = "manual"
    topic: Annotated[str | None, "What it is about."] = None
    tags: Tags | None = None
    memory_id: Annotated[str | None, "The memory's id; derived from chat and content where not given."] = None
    event_id: EventId | None = None
    ts: EventTime | None = None
    dedup: Annotated[bool, "Look for a memory that already says it; reads the store."] = True
    any_chat: Annotated[bool, "Look for duplicates in every chat, not in `chat` alone."] = False

    def __post_init__(self) -> None:
        """Refuse a search for duplicates where none takes place."""
        super().__post_init__()
        if self.any_chat and not self.looks_for_duplicates:
            raise BadInput(
                "any_chat: with a memory_id, or without dedup, no duplicate is looked for",
                hint="leave out any_chat",
            )

    @property
    def looks_for_duplicates(self) -> bool:
        """Whether the store is read."""
        return self.dedup and self.memory_id is None


class _OfMemory(Request, frozen=True):
    memory_id: Annotated[str, Meta(title="ID"), "The memory."]


class GetMemory(_OfMemory, frozen=True):
    """Show all fields of a memory."""


class ShowHistory(_OfMemory, frozen=True):
    """Show the events that made a memory what it is, oldest first, each with its line of the log.

    The history of a deleted memory stays.
    """


class UpdateMemory(_OfMemory, frozen=True):
    """Change the given fields of a memory, and leave the rest.

    An empty title, topic, chat or list of tags removes it.

    Raises:
        NotFound: no active or archived memory has this id.
        BadInput: no field is given, or there is no such category or kind; or as `Store.append`, as Busy and
            LogError.
    """

    content: Annotated[str | None, "The text."] = None
    title: Annotated[str | None, "A title."] = None
    category: Annotated[CategoryField | None, "What sort of thing it is: how fast it fades."] = None
    kind: Annotated[MemoryKind | None, "What kind it is."] = None
    importance: Annotated[Unit | None, "From 0 to 1."] = None
    salience: Annotated[Unit | None, "From 0 to 1; later decays go on from there."] = None
    source: Annotated[str | None, "Where it comes from."] = None
    topic: Annotated[str | None, "What it is about."] = None
    chat: Annotated[ScopeField | None, "The conversation that it belongs to."] = None
    tags: Tags | None = None
    event_id: EventId | None = None
    ts: EventTime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no field of the memory is given."""
        return self == UpdateMemory(self.memory_id, event_id=self.event_id, ts=self.ts)


class ArchiveMemory(_OfMemory, frozen=True):
    """Keep a memory, and no longer search it.

    Raises:
        NotFound, BadInput, Busy, LogError: as `UpdateMemory`.
    """


class ArchiveMemories(Tried, frozen=True):
    """Keep memories, and no longer search them. Answers those that were not archived before, as they were.

    Raises:
        NotFound: some memories do not exist; none is archived.
        BadInput: none is named; or as `Store.append`, as Busy and LogError.
    """

    memory_ids: Annotated[Sequence[str], Meta(title="ID"), "The memories."]


class DeleteMemory(_OfMemory, frozen=True):
    """Delete a memory, until it is saved again. Its events stay in the log.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """


class ListConflicts(Request, frozen=True):
    """List memories of which a person is to say what holds: those that wait first, then what was decided.

    The weekly job compares memories. A model changes nothing that somebody saved: where it would, a person
    decides. 20 conflicts wait at a time; more are queued. Of contradicting memories that a model had
    distilled, the latest holds, and the history of the memory has both texts.
    """


class ResolveConflict(Request, frozen=True):
    """Decide a conflict: the memories that are kept hold, the others are archived.

    To keep what the model proposes, alone, puts its text in the place of the others.

    Raises:
        NotFound: no such conflict waits.
        BadInput: none of its memories is kept; or as `Store.append`, as Busy and LogError.
    """

    conflict: Annotated[str, "The conflict's id."]
    keep: Annotated[Sequence[str], Meta(title="ID"), "The memories that hold; or what is proposed."]


class UnmergeMemory(_OfMemory, frozen=True):
    """Take the newest merge into a memory back: those that it was made of are as they were before.

    What the merge made is gone, unless it was changed since: then it stays beside them. The history keeps
    all. No later merge puts them together again by itself.

    Raises:
        NotFound: no memory has this id.
        BadInput: it is no merge, or was merged into another one; or as `Store.append`, as Busy and LogError.
    """


class TouchMemories(Request, frozen=True):
    """Count that memories were given to an agent, once each.

    Raises:
        NotFound: some memories do not exist; none is counted.
        BadInput: none is named; or as `Store.append`, as Busy and LogError.
    """

    memory_ids: Annotated[Sequence[str], Meta(title="ID"), "The memories."]

    @classmethod
    def named(cls, *memory_ids: str) -> Self:
        """The request of a list of arguments."""
        return cls(one_by_one(memory_ids))


class ListMemories(AcrossChats, frozen=True, kw_only=True):
    """List memories by falling salience, the last changed first.

    Salience is what events left of each, freshness what age leaves today; relevance is both times importance.
    """

    category: Annotated[
        CategoryField | None, "Only of this category; `other` includes categories that memlog does not know."
    ] = None
    kind: Annotated[MemoryKind | None, "Only of this kind."] = None
    topic: Annotated[str | None, "Only of this topic, in any spelling."] = None
    tag: Annotated[str | None, "Only with this tag."] = None
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.0
    archived: Annotated[bool, "List archived memories in the place of the active ones."] = False
    limit: Annotated[int | None, Meta(ge=1, le=MOST), "At most so many; all where not given."] = None
