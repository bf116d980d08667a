"""The events: one struct per type, a tagged union on `type`.

Unknown members stay in the log and are ignored. Add types and members here, and their effects in
`memlog.projector.subjects`. docs/storage/jsonl-format.md has a table of all types.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from memlog.eventlog.errors import MemlogError
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
    ModelTask,
    Role,
    SourceId,
    SourceKind,
    Text,
    Times,
    Topic,
    Unit,
)
from memlog.eventlog.limits import Durability as Durability


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="type"):
    """The envelope of every event.

    id: unique in its stream; a UUIDv7 if the caller gives none.
    ts: when it happened; the time of appending if the caller gives none.
    at: when memlog appended it; None in a foreign line.
    v: version of the type's schema.
    """

    VERSION: ClassVar[int] = 1

    id: Id | None = None
    ts: str | None = None
    at: str | None = None
    v: Annotated[int, msgspec.Meta(ge=1)] = 1


class Change(Event, kw_only=True):
    """An event that sets, changes or removes something with one value at a time.

    wins: its precedence: of two changes of the same thing, the one with the greater precedence wins. Set by
      memlog; None in a line from another program or an older memlog. See `memlog.eventlog.log.order`.
    highest_wins: the stream's highest precedence, if greater than `wins`.
    """

    wins: str | None = None
    highest_wins: str | None = None


class ConversationEvent(Event):
    """An event of a conversation's stream."""

    channel: Channel
    chat_id: Text


def tag_of(event: Event | type[Event]) -> str:
    """Return the name of an event's type in the log."""
    return str(event.__struct_config__.tag)


class Redacted(Event, tag="redacted"):
    """Events were redacted. Written to their stream; no line with a target's id in that stream, earlier or
    later, is projected any more.

    target_id, target_ids: one id, or several; a line has exactly one of these members.
    stream: the stream of the targets; needed only for appending.
    """

    target_id: Id | None = None
    target_ids: Annotated[list[Id], msgspec.Meta(max_length=MAX_TARGETS)] = []
    reason: str | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        if (self.target_id is None) == (not self.target_ids):
            raise ValueError("name one event by target_id, or several by target_ids")

    @property
    def targets(self) -> list[str]:
        """All target ids, whichever member holds them."""
        return self.target_ids if self.target_id is None else [self.target_id]


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Extraction(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of an event that a language model distilled.

    id: the id of the event that closes the extraction, such as `memories_extracted`; until that event is
      in the log, this one does not count. A summary closes itself.
    model: the model's name. prompt: the id of the prompt. message_ids: the messages that were distilled.
    memory_ids: the memories that were merged.
    chat_id: the chat of the messages or memories, `<channel>:<chat_id>`.
    """

    id: Name
    model: Name
    prompt: Name
    message_ids: list[Name] = []
    memory_ids: list[Name] = []
    chat_id: str | None = None


class MergeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The relation between memories with similar meanings.

    relation: `same`: they say the same; `update`: they complement each other; `contradiction`: they cannot
      all be true; `different`: a person says that they are all true; `accepted`: a person accepts the
      proposed text.
    memory_ids: the memories, oldest first. event_ids: the events with the compared contents.
    memory_id: the memory that replaces them all; None if a person must decide, or if they all stay.
    proposal_id: the memory with the text that the model proposes, if a person must decide.
    """

    relation: Literal["same", "update", "contradiction", "different", "accepted"]
    memory_ids: list[Name]
    event_ids: list[Name]
    memory_id: Name | None = None
    proposal_id: Name | None = None


class JobStep(msgspec.Struct, frozen=True):
    """A step of a job. count: how many things it changed. why: why it did nothing, or what remains."""

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


class SessionBreak(ConversationEvent, tag="session_break"):
    """The end of a session. Written by agents; the chat's next message begins a new session."""

    model: str | None = None


class SummaryWritten(ConversationEvent, tag="summary_written"):
    """A summary of a part of a conversation. Written by agents; adds a searchable summary.

    from_message_id, to_message_id: the first and last messages of that part.
    """

    content: Text
    from_message_id: str | None = None
    to_message_id: str | None = None
    extraction: Extraction | None = None


class ExtractionCompleted(ConversationEvent, tag="extraction_completed"):
    """Messages up to `through_message_id` were distilled into memories; later ones are the buffer. Written by
    the distilling program; moves the start of the buffer.
    """

    through_message_id: Text


class ModelFailed(Change, tag="model_failed"):
    """A language model failed on some events, but may succeed on others. Written by memlog, which postpones
    them to another day: after one refusal or unusable answer, or after two other failed requests.

    task: the request. event_ids: of the messages, the daily events, or the contents of memories.
    chat_id: their chat. kind: `refused`, `unusable` (the answer), `failed` or `late`.
    why: the error, with a hash of the provider's words. requests: how many were sent.
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
    chat_id: `<channel>:<chat_id>`, as in all events without a channel; None for the store's own scope.
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
    """A memory was changed. Written by agents and people; sets the fields that are not None. Without any,
    memlog records that a language model found the memory again in other messages.
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
    """A language model has distilled messages of a chat. Written by memlog after the events made from the
    answer, which count from now on; removes the messages from the buffer.

    chat_id: `<channel>:<chat_id>`. refused: invalid entries of the answer.
    """

    chat_id: Text
    message_ids: Ids
    model: Text
    prompt: Text
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class MemoriesMerged(Change, tag="memories_merged"):
    """Memories of one partition were compared. Written by memlog after the events made from the answer, which
    count from now on; the memories are not compared again until one of them changes.

    chat_id, topic, category: of the partition. event_ids: the events with the contents of the memories.
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
    """A job has run. Written by memlog; it does not run again for this period.

    job: `daily` or `weekly`. period: the local day for which it was due.
    """

    job: Text
    period: Day
    steps: list[JobStep] = []


class MemoryArchived(Change, tag="memory_archived"):
    """A memory was archived. Written by agents, people, pruning and merging; no search finds it any more."""

    memory_id: Text
    extraction: Extraction | None = None


class ChangeUndone(Change, tag="change_undone"):
    """Changes of memories were undone. Written for a person; the changes no longer count, but stay in the log
    and in the history.

    event_ids: the changes.
    """

    event_ids: Ids


class MemoryDeleted(Change, tag="memory_deleted"):
    """A memory was deleted. Written by agents and people; a later `memory_saved` restores it."""

    memory_id: Text


class MemoryAccessed(Change, tag="memory_accessed"):
    """Memories were given to an agent. Written when given; counts one access for each memory.

    times: how many accesses. by: what counted them; memlog writes all except `read`: `save` for a memory
        saved again unchanged, which restores and unarchives it; `import` for use in another program.
    """

    memory_ids: Ids
    times: Times = 1
    by: AccessKind = "read"


class ContextGiven(Change, tag="context_given"):
    """A context was given to an agent. Written when given; records the entries, without texts and names.

    chat_id: `<channel>:<chat_id>`. message_id: the message for which it was made.
    entries: in the order of printing. tokens: by part.
    stable, turn: keyed hashes (`eventlog.secrets.outgoing`) of two blocks: the core memory and the rest.
        Equal if one block has both; None for what was not printed as a block.
    """

    chat_id: str | None = None
    message_id: str | None = None
    entries: list[GivenEntry] = []
    tokens: dict[str, Count] = {}
    stable: str | None = None
    turn: str | None = None


class SalienceDecayed(Change, tag="salience_decayed"):
    """A day has passed. Written once a day; multiplies the salience of older memories by a rate.

    rates: factors from 0 to 1 by category; other known categories keep their salience. Unknown categories use
        the rate of `other`.
    """

    rates: dict[str, Unit]


class DailyEventRecorded(Change, tag="daily_event_recorded"):
    """Something that happened on a day. Written by agents; adds a daily event.

    event_date: the day of `ts` by default. raw_tokens: the length of the summarised text.
    """

    event_date: Day | None = None
    channel: str | None = None
    sender_id: str | None = None
    summary: str = ""
    raw_tokens: Count | None = None
    extraction: Extraction | None = None


class DailyEventsCompressed(Change, tag="daily_events_compressed"):
    """Daily events were distilled into memories. Written by the distilling program; links each to them.

    ids: the `daily_event_recorded` events.
    """

    ids: Ids
    memory_ids: list[Text] = []


class CoreMemoryUpdated(Change, tag="core_memory_updated"):
    """A value of the core memory, which an agent always sees. Written by agents; sets one key.

    source: `profile` if memlog derived it from memories; any other source wins against it.
    chat_id: `<channel>:<chat_id>` of the chats whose profile has it; None for the store's own scope.
    """

    section: Literal["user", "agent"]
    key: Text
    value: str
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class ProfileRefreshed(Change, tag="profile_refreshed"):
    """The core memory was updated from the memories. Written by memlog after the values made from the answer,
    which count from now on.

    event_ids: the events with the contents of these memories. chat_id: as in `core_memory_updated`.
    """

    event_ids: Ids
    model: Text
    prompt: Text
    chat_id: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class CoreMemoryDeleted(Change, tag="core_memory_deleted"):
    """A key of the core memory was removed. Written by agents; see `core_memory_updated`."""

    section: Literal["user", "agent"]
    key: Text
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class FactStored(Change, tag="fact_stored"):
    """One value of a subject. Written by agents; sets the value of (chat_id, topic_key, kind, rank).

    rank: from 1 in a ranked list; 0 for a single value.
    rest: with rank 1, the values of ranks 2, 3, …, so that one event replaces the whole list.
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
    """Facts about a subject were removed. Written by agents; removes all facts, one kind, or one rank."""

    topic_key: Topic
    kind: FactKind | None = None
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    chat_id: str | None = None


class SourceRegistered(Change, tag="source_registered"):
    """A folder of documents was registered. Written by `docs add`; adds or replaces a source.

    kind: `memory` for files to search as memories, otherwise `docs`.
    include, exclude: glob patterns below `root`.
    """

    source_id: SourceId
    kind: SourceKind = "docs"
    root: str | None = None
    include: list[str] = []
    exclude: list[str] = []


class SourceRemoved(Change, tag="source_removed"):
    """A source was removed. Written by `docs remove`; removes the source and its documents so far."""

    source_id: SourceId


class DocumentIndexed(Change, tag="document_indexed"):
    """A file was read. Written by `docs add`; adds a document or replaces its content.

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
    """A document was removed. Written by `docs add` and `docs remove`; indexing restores it."""

    source_id: SourceId
    file: Text


_KINDS: list[type[Event]] = [*ConversationEvent.__subclasses__(), *Change.__subclasses__(), Redacted]

TYPES = {tag_of(kind): kind for kind in _KINDS}
"""The event types by their names in the log."""


class AppendWarning(msgspec.Struct, frozen=True):
    """A warning about a stored event that is probably not what the caller intended.

    code: `unknown_member`, `chat_form`, `key`, `conflict` or `forgotten`.
    member: the member in question. message: the problem and its remedy.
    """

    code: str
    member: str
    message: str


class IdHolder(msgspec.Struct, frozen=True):
    """The position of the event that has a given id; the offset is in bytes."""

    stream: str
    segment: str
    offset: int


class Position(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The position of a stored event: stream, segment's file name, offset of its line in bytes.

    memory_id: the memory that the event saves or changes.
    conflict: an earlier event with the same id but different content. The earlier one counts; no read shows
      this one.
    duplicate: the same event was stored before under this id; the two count as one.
    """

    id: str
    stream: str
    segment: str
    offset: int
    durability: Durability
    memory_id: str | None = None
    conflict: IdHolder | None = None
    duplicate: bool = False
    warnings: tuple[AppendWarning, ...] = ()


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that may not be stored. id: the event's id, if the line or memlog gave one."""

    error: MemlogError
    id: str | None


class KnownId(msgspec.Struct, frozen=True):
    """An id in use in a stream. holder: where its event is; None if forgotten. content: its content hash."""

    holder: IdHolder | None = None
    content: bytes = b""


LookUp = Callable[[str, Sequence[str]], Mapping[str, KnownId]]
"""Returns, for a stream and the ids just appended to it, those that were already in use."""


def warnings_of(positions: Iterable[Position]) -> list[AppendWarning]:
    """Return the warnings about stored events, to include in an operation's result."""
    return [warning for position in positions for warning in position.warnings]


OnStored = Callable[[Sequence[Position]], None]
"""Called with the positions of stored events once they are durable."""


def mark_known_id(position: Position, content: bytes, known: KnownId | None) -> Position:
    """Mark `position` if the id was already in use (`known`). content: the new event's content hash."""
    if known is None:
        return position
    if known.holder is None:
        return _add_warning(
            position, "forgotten", f"the id {position.id} was forgotten: no read shows this event"
        )
    holder = known.holder
    if holder == IdHolder(position.stream, position.segment, position.offset):
        return position
    if known.content == content:
        return msgspec.structs.replace(position, duplicate=True)
    message = (
        f"the id {position.id} already names another event ({holder.stream}/{holder.segment}, byte"
        f" {holder.offset}): that one counts, and no read shows this one; append it again with an id of its"
        " own"
    )
    return msgspec.structs.replace(_add_warning(position, "conflict", message), conflict=holder)


def _add_warning(position: Position, code: str, message: str) -> Position:
    warning = AppendWarning(code, "id", message)
    return msgspec.structs.replace(position, warnings=(*position.warnings, warning))
