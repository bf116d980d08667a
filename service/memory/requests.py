"""Requests for memories, core memory and facts."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat, ChatName, MemoryKind, Reads
from memlog.eventlog.limits import CATEGORIES, MOST, known_category
from memlog.query.request import PathField, Request, Unit, one_by_one
from memlog.service.engine.requests import AcrossChats, EventId, EventTime, Scoped, ScopeField, Tried

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
    """List conflicts of memories that a person must decide: open ones first, then decided ones.

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
        """Return the request of a list of arguments."""
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


Section = Literal["user", "agent"]
SectionField = Annotated[Section, "Of the user, or of the agent."]
Key = Annotated[str, "The key."]


class GetCoreMemory(Request, frozen=True):
    """Show the core memory, one section of it (user or agent), or the value of one key.

    While several people talk to the agent, the profile of each is of their chats alone.

    Raises:
        BadInput: a key is named without a section, or the conversation has another form.
    """

    section: SectionField | None = None
    key: Key | None = None
    chat: Annotated[
        ScopeField | None, "What contexts of this conversation show, with the profile of its person."
    ] = None

    def __post_init__(self) -> None:
        """Refuse a key of no section, and what names no conversation."""
        super().__post_init__()
        if self.chat is not None:
            Chat.of(self.chat)
        if self.key is not None and self.section is None:
            raise BadInput("a key is named without a section", hint="section is user or agent")


class SetCoreValue(Request, frozen=True):
    """Set a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key
    value: Annotated[str, "The value."]


class DeleteCoreValue(Request, frozen=True):
    """Remove a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key


class ImportCoreMemory(Request, frozen=True):
    """Append what a file has and the core memory lacks.

    A Markdown or text file, such as USER.md, has lines `key: value`, and lists under headings; keys that are
    set already keep their values, unless `force`. All values of a JSON file in the shape of
    model/core_memory.json are set. Of that file itself, changed by hand, changed values are set, and removed
    keys are deleted; then it is rewritten.

    Raises:
        BadInput: the file cannot be read, or has another shape; nothing was appended.
        Busy, LogError: as `Store.append`. It is safe to try again.
    """

    path: Annotated[PathField, Meta(title="FILE"), "The file."]
    force: Annotated[bool, "The values of a Markdown file replace those that are set."] = False


Topic = Annotated[str, Meta(title="KEY"), "The name of the topic, in any spelling."]
Rank = Annotated[int, Meta(ge=1, le=MOST)]
"""A place in a list, from 1 on."""

AnyChat = Annotated[bool, "Where the chat has no such topic, use that of the chat that set it last."]


class SetFact(Scoped, frozen=True):
    """Set the ranked list of a topic: all of it, whatever it was before; the first value has rank 1.

    The topic may have any spelling: favourite_colours and `my favorite color` are favorite_colors.

    Raises:
        BadInput: the topic, a value or a rank cannot be stored; or as `Store.append`, as Busy and LogError.
    """

    topic: Topic
    values: Annotated[Sequence[str], Meta(title="VALUE"), "The values."]
    single: Annotated[bool, "The topic has one value, and no list."] = False
    ranks: Annotated[
        Sequence[Rank] | None, "Set this rank of the list alone; once for each value, without a gap."
    ] = None
    source_message_id: Annotated[str | None, "The message that states it."] = None

    def __post_init__(self) -> None:
        """Refuse ranks of a single value."""
        super().__post_init__()
        if self.single and self.ranks:
            raise BadInput("single and ranks: a single value has no rank", hint="give ranks to a list")

    @classmethod
    def of_values(
        cls,
        topic: str,
        *values: str,
        single: bool = False,
        ranks: Sequence[int] | None = None,
        chat: ChatName | None = None,
        source_message_id: str | None = None,
    ) -> Self:
        """Return the request of a topic and its values as arguments."""
        values = one_by_one(values)
        return cls(topic, values, single=single, ranks=ranks, chat=chat, source_message_id=source_message_id)


class GetFact(Scoped, frozen=True):
    """Show the values of a topic, or the one at a rank of its list.

    Raises:
        BadInput: the topic is not a possible name.
    """

    topic: Topic
    rank: Annotated[Rank | None, "Only this rank of the list."] = None
    any_chat: AnyChat = False


class AskFacts(Scoped, frozen=True):
    """Answer a question from facts, by fixed rules and no model.

    In English, Finnish, German, Russian, Spanish or Swedish, such as `second favourite colour`, `list my
    favourite colours`, `what is my city`. What is not stored, or not understood for certain, is not answered:
    I don't have that stored yet. A question without a topic is about the topic that was set last.
    """

    question: Annotated[str, Meta(title="TEXT"), "The question."]
    any_chat: AnyChat = False


class ExtractFacts(Scoped, frozen=True):
    """Store the ranked list of favourites that a text states of its author, by fixed rules and no model.

    In English, Russian or Finnish: `My favourite colours are 1) Blue, 2) Green`. Where topic and list are not
    both certain, nothing is stored, and the answer tells why.

    Raises:
        BadInput: a value cannot be stored; or as `Store.append`, as Busy and LogError.
    """

    text: Annotated[str, "The text."]
    source_message_id: Annotated[str | None, "The message that says so."] = None
    dry_run: Annotated[bool, "Tell what would be stored, and store nothing."] = False


class RemoveFact(Scoped, frozen=True):
    """Remove the values of a topic, or one rank of its list. The events stay in the log.

    Raises:
        NotFound: there is no such topic or rank.
        BadInput: as `GetFact`; or as `Store.append`, as Busy and LogError.
    """

    topic: Topic
    rank: Annotated[Rank | None, "Only this rank of the list; the others keep theirs."] = None


class ListFacts(AcrossChats, frozen=True, kw_only=True):
    """List facts: the topic that was set last comes first, its values by rank."""
