"""The events: one struct per type, a tagged union on `type`.

Members that a struct does not know stay in the log and are ignored. A type or member is added here, and
its effect in `memlog.projector.handlers`. The table of all types is in docs/storage/jsonl-format.md.
"""

from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec

from memlog.eventlog.fields import Channel, Count, Day, Id, Ids, SourceId, Text, Topic, Unit

MAX_TARGETS = 1000
"""Events that one redaction names: a line of them is shorter than 1 MB, and one of 200,000 would be read at
once."""

Role = Literal["user", "assistant", "system", "tool"]
MemoryKind = Literal["fact", "preference", "insight"]
FactKind = Literal["ranked", "single"]
SourceKind = Literal["memory", "docs"]


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """The envelope that every event has.

    id: UUIDv7 where the caller gives none; unique in its stream.
    ts: when it happened; may be given, else the time of appending.
    at: when memlog appended it; set by memlog alone. None in a line of a foreign writer.
    v: version of the type's schema.
    """

    VERSION: ClassVar[int] = 1

    id: Id | None = None
    ts: str | None = None
    at: str | None = None
    v: Annotated[int, msgspec.Meta(ge=1)] = 1


class Change(Event, kw_only=True):
    """An event that sets, changes or removes something that has one value at a time.

    wins: of two changes of one thing the one with the greater `wins` holds; set by memlog alone. None in a
        line of a foreign writer or of an older memlog; see `memlog.eventlog.precedence`.
    highest_wins: the highest precedence in the stream, where that is above `wins`.
    """

    wins: str | None = None
    highest_wins: str | None = None


class Message(Event, tag="message"):
    """One turn of a conversation. Written by agents; adds a message."""

    channel: Channel
    chat_id: Text
    role: Role
    content: str
    name: str | None = None
    kind: Literal["subagent_result"] | None = None
    meta: dict[str, Any] | None = None


class SessionBreak(Event, tag="session_break"):
    """The end of a session. Written by agents; what follows in the chat is a new session."""

    channel: Channel
    chat_id: Text
    model: str | None = None


class SummaryWritten(Event, tag="summary_written"):
    """What a stretch of a conversation said, in short. Written by agents; adds a summary, which is searched.

    from_message_id, to_message_id: the ids of the first and the last message that it is about.
    """

    channel: Channel
    chat_id: Text
    content: Text
    from_message_id: str | None = None
    to_message_id: str | None = None


class ExtractionCompleted(Event, tag="extraction_completed"):
    """A conversation's messages up to `through_message_id` are distilled into memories; those after it are
    the buffer. Written by whoever distils them; moves the buffer's beginning."""

    channel: Channel
    chat_id: Text
    through_message_id: Text


class MemorySaved(Change, tag="memory_saved"):
    """Something worth keeping. Written by agents and people; adds a memory or replaces all that it says.

    memory_id: derived from chat and content where not given.
    chat_id: `<channel>:<chat_id>`; None for the store's own scope. So in all events but a conversation's.
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


class MemoryUpdated(Change, tag="memory_updated"):
    """A memory says something else. Written by agents and people; sets its fields that are not None, and no
    others."""

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


class MemoryArchived(Change, tag="memory_archived"):
    """A memory is put away. Written by agents, people and pruning; it is kept, and no longer searched."""

    memory_id: Text


class MemoryDeleted(Change, tag="memory_deleted"):
    """A memory is to be gone. Written by agents and people; it is, until a later `memory_saved` says it
    again."""

    memory_id: Text


class MemoryAccessed(Change, tag="memory_accessed"):
    """Memories were given to an agent. Written when that happens; counts once for each of them."""

    memory_ids: Ids


class SalienceDecayed(Change, tag="salience_decayed"):
    """Time has passed. Written once a day; multiplies the salience of all older memories of each category.

    rates: factors from 0 to 1 by category; other categories stay as they are. Of a category that memlog does
        not know, and that is not named, that of `other` counts.
    """

    rates: dict[str, Unit]


class DailyEventRecorded(Change, tag="daily_event_recorded"):
    """Something that happened on a day. Written by agents; adds a daily event.

    event_date: the day of `ts` where not given. raw_tokens: the length of what `summary` sums up.
    """

    event_date: Day | None = None
    channel: str | None = None
    sender_id: str | None = None
    summary: str = ""
    raw_tokens: Count | None = None


class DailyEventsCompressed(Change, tag="daily_events_compressed"):
    """Daily events were distilled. Written by whoever distils them; marks each with the memories it is in.

    ids: of the `daily_event_recorded` events.
    """

    ids: Ids
    memory_ids: list[Text] = []


class CoreMemoryUpdated(Change, tag="core_memory_updated"):
    """A value of the core memory, which an agent always sees. Written by agents; sets one key."""

    section: Literal["user", "agent"]
    key: Text
    value: str


class CoreMemoryDeleted(Change, tag="core_memory_deleted"):
    """A key of the core memory is to be gone. Written by agents; removes it."""

    section: Literal["user", "agent"]
    key: Text


class FactStored(Change, tag="fact_stored"):
    """One value of a subject. Written by agents; sets what (chat_id, topic_key, kind, rank) is.

    rank: from 1 in a ranked list; 0 for a single value.
    rest: with rank 1, the values of ranks 2, 3, …: this is then the whole list, and ends there. One event,
        so that no list is ever half replaced.
    """

    topic_key: Topic
    value: Text
    kind: FactKind = "single"
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    rest: list[Text] | None = None
    chat_id: str | None = None
    source_message_id: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "ranked") != (self.rank > 0):
            raise ValueError("a ranked fact has a rank from 1, a single one has rank 0")
        if self.rest is not None and self.rank != 1:
            raise ValueError("the rest of a list follows rank 1")


class FactRemoved(Change, tag="fact_removed"):
    """Facts of a subject are to be gone. Written by agents; removes those of a chat: all, or those of one
    kind, or one rank."""

    topic_key: Topic
    kind: FactKind | None = None
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    chat_id: str | None = None


class SourceRegistered(Change, tag="source_registered"):
    """A folder of documents is to be indexed. Written by `docs add`; adds a source, or says it anew.

    kind: `memory` for files that are searched as memories, `docs` for others.
    include, exclude: glob patterns below `root`.
    """

    source_id: SourceId
    kind: SourceKind = "docs"
    root: str | None = None
    include: list[str] = []
    exclude: list[str] = []


class SourceRemoved(Change, tag="source_removed"):
    """A source is to be gone. Written by `docs remove`; removes it, and all its documents that were indexed
    before."""

    source_id: SourceId


class DocumentIndexed(Change, tag="document_indexed"):
    """A file as it was read. Written by `docs add`; adds a document or replaces its content.

    file: its path below the source's root, with `/`. version: sha256 of its bytes, in hex. size: in bytes.
    mtime: RFC 3339, or seconds since 1970.
    """

    source_id: SourceId
    file: Text
    filetype: str | None = None
    mtime: str | float | None = None
    size: Count | None = None
    version: str | None = None
    content: str = ""


class DocumentRemoved(Change, tag="document_removed"):
    """A document is to be gone. Written by `docs add` and `docs remove`; it is, until it is indexed again."""

    source_id: SourceId
    file: Text


class Redacted(Event, tag="redacted"):
    """A person wants an event gone. Written where that event stands; no line of its id is projected any
    more, wherever in that stream it stands and whenever it comes.

    target_id, target_ids: the event's id, or the ids of several events; a line has one of the two.
    stream: where to write it; needed on appending alone.
    """

    target_id: Id | None = None
    target_ids: Annotated[list[Id], msgspec.Meta(max_length=MAX_TARGETS)] = []
    reason: str | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where it names no event, or names events in both ways."""
        if (self.target_id is None) == (not self.target_ids):
            raise ValueError("name one event by target_id, or several by target_ids")

    @property
    def targets(self) -> list[str]:
        """The ids of all the events."""
        return self.target_ids if self.target_id is None else [self.target_id]


AnyEvent = (
    Message
    | SessionBreak
    | SummaryWritten
    | ExtractionCompleted
    | MemorySaved
    | MemoryUpdated
    | MemoryArchived
    | MemoryDeleted
    | MemoryAccessed
    | SalienceDecayed
    | DailyEventRecorded
    | DailyEventsCompressed
    | CoreMemoryUpdated
    | CoreMemoryDeleted
    | FactStored
    | FactRemoved
    | SourceRegistered
    | SourceRemoved
    | DocumentIndexed
    | DocumentRemoved
    | Redacted
)


def tag_of(event: Event | type[Event]) -> str:
    """The event's type, as the log writes it."""
    return str(event.__struct_config__.tag)


TYPES: dict[str, type[Event]] = {tag_of(kind): kind for kind in get_args(AnyEvent)}
"""Every event type by its name in the log."""

ConversationEvent = Message | SessionBreak | SummaryWritten | ExtractionCompleted
"""What stands in a conversation's stream and names its channel and chat_id."""
