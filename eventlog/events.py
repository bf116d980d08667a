"""The events: one struct per type, a tagged union on `type`.

Unknown members stay in the log and are ignored. Types and members are added here, their effects in
`memlog.projector.handlers`. docs/storage/jsonl-format.md has a table of all types.
"""

from typing import Annotated, Any, Literal

import msgspec

from memlog.eventlog.envelope import Change, ConversationEvent, Event, tag_of
from memlog.eventlog.event_fields import (
    AccessKind,
    Count,
    Day,
    FactKind,
    FailureKind,
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
from memlog.eventlog.extraction import Extraction, JobStep, MergeDecision
from memlog.eventlog.given import GivenEntry
from memlog.eventlog.redacted import Redacted as Redacted


class Message(ConversationEvent, tag="message"):
    """One turn of a conversation. Written by agents; adds a message."""

    role: Role
    content: str
    name: str | None = None
    kind: Literal["subagent_result"] | None = None
    meta: dict[str, Any] | None = None


class SessionBreak(ConversationEvent, tag="session_break"):
    """The end of a session. Written by agents; a new session follows in the chat."""

    model: str | None = None


class SummaryWritten(ConversationEvent, tag="summary_written"):
    """A summary of a part of a conversation. Written by agents; adds a summary, which is searched.

    from_message_id, to_message_id: the first and the last message of that part.
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
    """A language model gave nothing about some events, while it may answer about others. Written by memlog,
    which asks about them again on another day: at once after a refusal or an unusable answer, else after two
    requests.

    task: what was asked for. event_ids: of the messages, the daily events, or the contents of memories.
    chat_id: theirs. kind: `refused`; `unusable`, of its answers; `failed` or `late`.
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
    """Something worth keeping. Written by agents and people; adds a memory or replaces it whole.

    memory_id: derived from chat and content by default.
    chat_id: `<channel>:<chat_id>`; None for the store's own scope. The same in all events without a channel.
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
    """A memory was changed. Written by agents and people; sets the fields that are not None. With none of
    them, memlog writes that a language model has found it in other messages again.
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
    """A language model has distilled messages of a chat. Written by memlog behind the events that it made of
    the answer, which count from now on; takes the messages out of the buffer.

    chat_id: `<channel>:<chat_id>`. refused: entries of the answer that were none.
    """

    chat_id: Text
    message_ids: Ids
    model: Text
    prompt: Text
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class MemoriesMerged(Change, tag="memories_merged"):
    """Memories of one partition were compared. Written by memlog behind the events that it made of the
    answer, which count from now on; the memories are not compared again before one of them changes.

    chat_id, topic, category: theirs. event_ids: of the events with their contents.
    model, prompt: None where none was asked.
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
    """A memory was archived. Written by agents, people, pruning and merging; it is kept, but no longer
    searched.
    """

    memory_id: Text
    extraction: Extraction | None = None


class ChangeUndone(Change, tag="change_undone"):
    """Changes of memories were taken back. Written for a person: what they saved, updated, archived or
    accessed counts no more. They stay in the log and in the history.

    event_ids: of the changes.
    """

    event_ids: Ids


class MemoryDeleted(Change, tag="memory_deleted"):
    """A memory was deleted. Written by agents and people; a later `memory_saved` restores it."""

    memory_id: Text


class MemoryAccessed(Change, tag="memory_accessed"):
    """Memories were given to an agent. Written at that moment; counts one access for each.

    times: how many accesses. by: what counted them; all but `read` is written by memlog: `save` for what
        somebody has saved again as it was, which makes its salience whole and takes it out of the archive;
        `import` for what was used in another program.
    """

    memory_ids: Ids
    times: Times = 1
    by: AccessKind = "read"


class ContextGiven(Change, tag="context_given"):
    """A context was given to an agent. Written at that moment; says what it gave, without a text or a name.

    chat_id: `<channel>:<chat_id>`. message_id: of the asking message.
    entries: in the order of printing. tokens: by part.
    stable, turn: hashes of the blocks, with the key of the store (`memlog.eventlog.store_key`): of the core
        memory and of the rest. The same where one block has both; None for what was not printed as a block.
    """

    chat_id: str | None = None
    message_id: str | None = None
    entries: list[GivenEntry] = []
    tokens: dict[str, Count] = {}
    stable: str | None = None
    turn: str | None = None


class SalienceDecayed(Change, tag="salience_decayed"):
    """A day has passed. Written once a day; multiplies the salience of all older memories by their rate.

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
    """Daily events were distilled into memories. Written by the distilling program; links each to its
    memories.

    ids: of the `daily_event_recorded` events.
    """

    ids: Ids
    memory_ids: list[Text] = []


class CoreMemoryUpdated(Change, tag="core_memory_updated"):
    """A value of the core memory, which an agent always sees. Written by agents; sets one key.

    source: `profile` where memlog wrote it, from memories: any other holds against it.
    chat_id: `<channel>:<chat_id>`, of the group of chats whose profile has it; None for the store's own
        scope.
    """

    section: Literal["user", "agent"]
    key: Text
    value: str
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class ProfileRefreshed(Change, tag="profile_refreshed"):
    """The core memory was brought up to the memories. Written by memlog behind the values that it made of the
    answer, which count from now on.

    event_ids: of the events with the contents of those memories. chat_id: as of `core_memory_updated`.
    """

    event_ids: Ids
    model: Text
    prompt: Text
    chat_id: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    refused: Count = 0


class CoreMemoryDeleted(Change, tag="core_memory_deleted"):
    """A key of the core memory was removed. Written by agents; source, chat_id: as of
    `core_memory_updated`."""

    section: Literal["user", "agent"]
    key: Text
    source: Text = "manual"
    chat_id: str | None = None
    extraction: Extraction | None = None


class FactStored(Change, tag="fact_stored"):
    """One value of a subject. Written by agents; sets the value of (chat_id, topic_key, kind, rank).

    rank: from 1 in a ranked list; 0 for a single value.
    rest: with rank 1, the values of ranks 2, 3, …, which make the whole list: one event never replaces half a
        list.
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
    """Facts about a subject were removed. Written by agents; removes a chat's: all, one kind, or one
    rank."""

    topic_key: Topic
    kind: FactKind | None = None
    rank: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    chat_id: str | None = None


class SourceRegistered(Change, tag="source_registered"):
    """A folder of documents was registered. Written by `docs add`; adds or replaces a source.

    kind: `memory` for files that are searched as memories, else `docs`.
    include, exclude: glob patterns below `root`.
    """

    source_id: SourceId
    kind: SourceKind = "docs"
    root: str | None = None
    include: list[str] = []
    exclude: list[str] = []


class SourceRemoved(Change, tag="source_removed"):
    """A source was removed. Written by `docs remove`; removes it and the documents indexed before."""

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
