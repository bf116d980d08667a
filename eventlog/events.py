"""The events: one struct per type, as a tagged union on `type`.

Unknown members are kept in the log and ignored. Add types and members here, and their effects in
`memlog.projector.subjects`. docs/storage/jsonl-format.md lists all types.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from memlog.eventlog.fields import (
    MAX_TARGETS,
    AccessKind,
    Channel,
    Count,
    Day,
    FactKind,
    FailureKind,
    GivenEntry,
    Id,
    Ids,
    MemoryKind,
    MessageState,
    ModelTask,
    Role,
    SourceId,
    SourceKind,
    Text,
    Times,
    Topic,
    Unit,
)
from memlog.eventlog.fields import Durability as Durability


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """The members that all events share.

    id: unique within the stream; defaults to a UUIDv7.
    ts: when it happened; defaults to the time of the append.
    at: when memlog appended it; None in a line from another program.
    v: the schema version of the type.
    """

    VERSION: ClassVar[int] = 1

    id: Id | None = None
    ts: str | None = None
    at: str | None = None
    v: Annotated[int, msgspec.Meta(ge=1)] = 1


class Change(Event, kw_only=True):
    """An event that sets, changes or removes something that has one value at a time.

    wins: the precedence; of two changes to the same thing, the higher one wins. Set by memlog; None in a line
      from another program or an older memlog. See `memlog.eventlog.log.order`.
    highest_wins: the highest precedence in the stream, if higher than `wins`.
    """

    STREAM: ClassVar[str] = "memory"
    """The stream for events of this type."""

    wins: str | None = None
    highest_wins: str | None = None


class ConversationEvent(Event):
    """An event in a conversation's stream."""

    channel: Channel
    chat_id: Text


def type_name_of_event(event: Event | type[Event]) -> str:
    """Return an event type's name in the log."""
    return str(event.__struct_config__.tag)


class Redacted(Event, tag="redacted"):
    """Events were redacted: lines with their ids, earlier or later in the stream, are not projected.

    Written to the stream of its targets.

    target_id, target_ids: one id or several; a line has exactly one of these members.
    stream: the stream of the targets; needed only for appending.
    """

    target_id: Id | None = None
    target_ids: Annotated[list[Id], msgspec.Meta(max_length=MAX_TARGETS)] = []
    reason: str | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        if (self.target_id is None) == (not self.target_ids):
            raise ValueError("use target_id for one event or target_ids for several")

    @property
    def targets(self) -> list[str]:
        """All target ids, from whichever member is set."""
        return self.target_ids if self.target_id is None else [self.target_id]


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Extraction(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of an event distilled by a language model.

    id: the id of the event that completes the extraction, such as `memories_extracted`; until that is in the
      log, this event does not count. A summary needs no such event.
    model: the model's name. prompt: the prompt's id. message_ids: the messages that were distilled.
    memory_ids: the memories that were merged.
    chat_id: the chat of the messages or memories, as `<channel>:<chat_id>`.
    """

    id: Name
    model: Name
    prompt: Name
    message_ids: list[Name] = []
    memory_ids: list[Name] = []
    chat_id: str | None = None


class MergeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The relation between memories with similar meanings.

    relation: `same`: they say the same thing; `update`: they complement each other; `contradiction`: they
      cannot all be true; `different`: a person decided that all are true; `accepted`: a person accepted the
      proposed text.
    memory_ids: the memories, oldest first. event_ids: the events with the contents that were compared.
    memory_id: the memory that replaces them; None if a person must decide or all of them stay.
    proposal_id: the memory with the text proposed by the model, if a person must decide.
    """

    relation: Literal["same", "update", "contradiction", "different", "accepted"]
    memory_ids: list[Name]
    event_ids: list[Name]
    memory_id: Name | None = None
    proposal_id: Name | None = None


class JobStep(msgspec.Struct, frozen=True):
    """A step of a job. count: the number of changes. why: why it did nothing, or what is left to do."""

    name: Name
    outcome: Literal["done", "skipped", "failed"]
    count: Count = 0
    why: str | None = None


class Message(ConversationEvent, tag="message"):
    """One turn of a conversation. Written by agents; adds a message."""

    role: Role
    content: str
    name: str | None = None
    kind: Literal["subagent_result"] | None = None
    meta: dict[str, Any] | None = None


class MessageUpdated(ConversationEvent, tag="message_updated"):
    """A message was edited or taken back. Written by agents and imports; sets the members that are not None.

    The update with the latest `ts` counts.

    state: windows, searches and contexts show only `current` messages; `superseded`: another version of the
        conversation goes on elsewhere; `rewound`: the user took it back.
    """

    message_id: Text
    content: str | None = None
    state: MessageState | None = None

    def __post_init__(self) -> None:
        if self.content is None and self.state is None:
            raise ValueError("needs content or state")


class MessageDeleted(ConversationEvent, tag="message_deleted"):
    """A message was deleted in its chat. Written by agents and imports; its bytes stay in the log.

    A later `message_updated` with the state `current` restores it.
    """

    message_id: Text


class ChatDescribed(ConversationEvent, tag="chat_described"):
    """A chat was described. Written by agents and imports; sets the members that are not None.

    parent_chat: the chat that started it, as `<channel>:<chat_id>`. folder: its working folder.
    project: its project in the source program.
    """

    title: Text | None = None
    parent_chat: str | None = None
    folder: str | None = None
    project: str | None = None
    labels: list[str] | None = None

    def __post_init__(self) -> None:
        if all(
            each is None for each in (self.title, self.parent_chat, self.folder, self.project, self.labels)
        ):
            raise ValueError("needs title, parent_chat, folder, project or labels")
        if self.parent_chat is not None and not all(self.parent_chat.partition(":")[::2]):
            raise ValueError("parent_chat must have the form channel:chat_id")


class SessionBreak(ConversationEvent, tag="session_break"):
    """The end of a session. Written by agents; the next message in the chat starts a new session."""

    model: str | None = None


class SummaryWritten(ConversationEvent, tag="summary_written"):
    """A summary of part of a conversation. Written by agents; adds a searchable summary.

    from_message_id, to_message_id: the first and last messages it covers.
    """

    content: Text
    from_message_id: str | None = None
    to_message_id: str | None = None
    extraction: Extraction | None = None


class ExtractionCompleted(ConversationEvent, tag="extraction_completed"):
    """Messages were distilled into memories. Written by the distilling program; moves the buffer's start.

    through_message_id: the last distilled message; the messages after it are the buffer.
    """

    through_message_id: Text


class ModelFailed(Change, tag="model_failed"):
    """A language model failed on certain events, but may succeed on others. Written by memlog.

    These events are postponed to another day: after one refusal or unusable answer, or after two requests
    that failed for other reasons.

    task: the kind of request. event_ids: the ids of the messages, daily events, or memory contents.
    chat_id: their chat. kind: `refused`, `unusable` (the answer), `failed` or `late`.
    why: the error, with a hash of the provider's words. requests: the number of requests made.
    """

    task: ModelTask
    event_ids: Ids
    provider: Text
    model: Text
    kind: FailureKind
    why: str = ""
    chat_id: str | None = None
    requests: Count = 1
    tokens_in: Count = 0
    tokens_out: Count = 0


class MemorySaved(Change, tag="memory_saved"):
    """Something worth keeping. Written by agents and people; adds a memory or replaces all of its fields.

    memory_id: derived from chat and content by default.
    chat_id: `<channel>:<chat_id>`, as in all events without a channel; None for the store-wide scope.
    """

    content: Text
    memory_id: Text | None = None
    title: str | None = None
    category: Text = "other"
    kind: MemoryKind = "fact"
    importance: Unit = 0.5
    source: Text = "manual"
    topic: str | None = None
    chat_id: str | None = None
    tags: list[str] | None = None
    extraction: Extraction | None = None


class MemoryUpdated(Change, tag="memory_updated"):
    """A memory was changed. Written by agents and people; sets the fields that are not None.

    If all are None, memlog records that a language model found the memory again in other messages.
    """

    memory_id: Text
    content: Text | None = None
    title: str | None = None
    category: Text | None = None
    kind: MemoryKind | None = None
    importance: Unit | None = None
    salience: Unit | None = None
    source: Text | None = None
    topic: str | None = None
    chat_id: str | None = None
    tags: list[str] | None = None
    extraction: Extraction | None = None


class MemoriesExtracted(Change, tag="memories_extracted"):
    """A language model distilled messages of a chat, which thereby left the buffer.

    Written by memlog after the events made from the answer, which count from then on.

    chat_id: `<channel>:<chat_id>`. refused: the number of invalid entries in the answer.
    """

    chat_id: Text
    message_ids: Ids
    model: Text
    prompt: Text
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class MemoriesMerged(Change, tag="memories_merged"):
    """Memories of a partition were compared; they are not compared again until one of them changes.

    Written by memlog after the events made from the answer, which count from then on.

    chat_id, topic, category: identify the partition. event_ids: the events with the contents of the memories.
    model, prompt: None if no model was called.
    """

    event_ids: Ids
    chat_id: str | None = None
    topic: str | None = None
    category: Text = "other"
    decisions: list[MergeDecision] = []
    model: str | None = None
    prompt: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class JobCompleted(Change, tag="job_completed"):
    """A job has run. Written by memlog, so that the job does not run again for the same period.

    job: `daily` or `weekly`. period: the local day on which it was due.
    """

    job: Text
    period: Day
    steps: list[JobStep] = []


class MemoryArchived(Change, tag="memory_archived"):
    """A memory was archived; searches no longer find it. Written by agents, people, pruning and merging."""

    memory_id: Text
    extraction: Extraction | None = None


class ChangeUndone(Change, tag="change_undone"):
    """Changes to memories were undone. Written on a person's behalf.

    The changes no longer count, but stay in the log and in the history.

    event_ids: the changes.
    """

    event_ids: Ids


class MemoryDeleted(Change, tag="memory_deleted"):
    """A memory was deleted. Written by agents and people; a later `memory_saved` restores it."""

    memory_id: Text


class MemoryAccessed(Change, tag="memory_accessed"):
    """Memories were given to an agent. Written at that time; counts one access for each memory.

    times: the number of accesses. by: the kind of access: `read`; `save` for a memory saved again unchanged,
        which restores and unarchives it; `import` for use in another program. memlog does not write `read`.
    """

    memory_ids: Ids
    times: Times = 1
    by: AccessKind = "read"


class ContextGiven(Change, tag="context_given"):
    """A context was given to an agent. Written at that time; records its entries, without texts or names.

    chat_id: `<channel>:<chat_id>`. message_id: the message it was made for.
    entries: in the order in which they were printed. tokens: token counts, keyed by part.
    stable, turn: keyed hashes (`eventlog.secrets.outgoing`) of two blocks: the core memory and the rest.
        Equal if both are in one block; None for a part that was not printed as a block.
    """

    chat_id: str | None = None
    message_id: str | None = None
    entries: list[GivenEntry] = []
    tokens: dict[str, Count] = {}
    stable: str | None = None
    turn: str | None = None


class SalienceDecayed(Change, tag="salience_decayed"):
    """A day has passed. Written once a day; multiplies the salience of older memories by a rate.

    rates: factors from 0 to 1, keyed by category; other known categories keep their salience. Unknown
        categories use the rate of `other`.
    """

    rates: dict[str, Unit]


class DailyEventRecorded(Change, tag="daily_event_recorded"):
    """Something that happened on a day. Written by agents; adds a daily event.

    event_date: defaults to the day of `ts`. raw_tokens: the length of the text that was summarised.
    """

    event_date: Day | None = None
    channel: str | None = None
    sender_id: str | None = None
    summary: str = ""
    raw_tokens: Count | None = None
    extraction: Extraction | None = None


class DailyEventsCompressed(Change, tag="daily_events_compressed"):
    """Daily events were distilled into memories, and are linked to them. Written by the distilling program.

    ids: the `daily_event_recorded` events.
    """

    ids: Ids
    memory_ids: list[Text] = []


class CoreMemoryUpdated(Change, tag="core_memory_updated"):
    """A value in the core memory, which an agent always sees. Written by agents; sets one key.

    source: `profile` if memlog derived the value from memories; a value from any other source wins over it.
    chat_id: `<channel>:<chat_id>` if it belongs to a chat's profile; None for the store-wide scope.
    """

    STREAM: ClassVar[str] = "core"

    section: Literal["user", "agent"]
    key: Text
    value: str
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class ProfileRefreshed(Change, tag="profile_refreshed"):
    """The core memory was updated from memories.

    Written by memlog after the values made from the answer, which count from then on.

    event_ids: the events with the contents of these memories. chat_id: as in `core_memory_updated`.
    """

    STREAM: ClassVar[str] = "core"

    event_ids: Ids
    model: Text
    prompt: Text
    chat_id: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class CoreMemoryDeleted(Change, tag="core_memory_deleted"):
    """A key was removed from the core memory. Written by agents; see `core_memory_updated`."""

    STREAM: ClassVar[str] = "core"

    section: Literal["user", "agent"]
    key: Text
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class FactStored(Change, tag="fact_stored"):
    """A value about a subject. Written by agents; sets the value of (chat_id, topic_key, kind, rank).

    rank: from 1 in a ranked list; 0 for a single value.
    rest: with rank 1, the values of ranks 2, 3, …, so that one event replaces the whole list.
    """

    STREAM: ClassVar[str] = "facts"

    topic_key: Topic
    value: Text
    kind: FactKind = "single"
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    rest: list[Text] | None = None
    chat_id: str | None = None
    source_message_id: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "ranked") != (self.rank > 0):
            raise ValueError("rank must be at least 1 for a ranked fact and 0 for a single one")
        if self.rest is not None and self.rank != 1:
            raise ValueError("only a fact with rank 1 can have rest")


class FactRemoved(Change, tag="fact_removed"):
    """Facts about a subject were removed: all of them, one kind, or one rank. Written by agents."""

    STREAM: ClassVar[str] = "facts"

    topic_key: Topic
    kind: FactKind | None = None
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    chat_id: str | None = None


class SourceRegistered(Change, tag="source_registered"):
    """A folder of documents was registered. Written by `docs add`; adds or replaces a source.

    kind: `memory` if its files are searched as memories, otherwise `docs`.
    include, exclude: glob patterns relative to `root`.
    """

    STREAM: ClassVar[str] = "documents"

    source_id: SourceId
    kind: SourceKind = "docs"
    root: str | None = None
    include: list[str] = []
    exclude: list[str] = []


class SourceRemoved(Change, tag="source_removed"):
    """A source was removed, with the documents it had until then. Written by `docs remove`."""

    STREAM: ClassVar[str] = "documents"

    source_id: SourceId


class DocumentIndexed(Change, tag="document_indexed"):
    """A file was read. Written by `docs add`; adds a document or replaces its content.

    file: its path relative to the source's root, with `/` as separator.
    version: the SHA-256 of its bytes, in hex. size: in bytes.
    mtime: in RFC 3339 format, or seconds since 1970.
    """

    STREAM: ClassVar[str] = "documents"

    source_id: SourceId
    file: Text
    filetype: str | None = None
    mtime: str | float | None = None
    size: Count | None = None
    version: str | None = None
    content: str = ""


class DocumentRemoved(Change, tag="document_removed"):
    """A document was removed. Written by `docs add` and `docs remove`; indexing it again restores it."""

    STREAM: ClassVar[str] = "documents"

    source_id: SourceId
    file: Text


IdsByStream = dict[str, list[Id]]
"""Event ids, keyed by stream."""


class EventsImported(Change, tag="events_imported"):
    """Events were imported. Written before the events, so that `import_undone` can take back a whole run.

    run: the import's id. path: the imported file or folder.
    appended: the events that the import appends or, if their import was undone, brings back.
    met: events that other sources had already added to the log.
    """

    STREAM: ClassVar[str] = "imports"

    run: Name
    format: Name
    path: Text
    appended: IdsByStream = {}
    met: IdsByStream = {}


class ImportUndone(Change, tag="import_undone"):
    """An import was undone. Written on a person's behalf; its events stay in the log, but do not count.

    A later import of the same events brings them back.

    run: the import's id. kept: its events that still count, because a person has changed them.
    derived: other events that no longer count, because they were derived from the import's events.
    """

    STREAM: ClassVar[str] = "imports"

    run: Name
    kept: IdsByStream = {}
    derived: IdsByStream = {}


_KINDS: list[type[Event]] = [*ConversationEvent.__subclasses__(), *Change.__subclasses__(), Redacted]

TYPES = {type_name_of_event(kind): kind for kind in _KINDS}
"""The event types, keyed by their names in the log."""
