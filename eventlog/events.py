"""The events: one struct per type, a tagged union on `type`.

Members that a struct does not know stay in the log and are ignored. A type or member is added here, and
its effect in `memlog.projector.handlers`. The table of all types is in docs/storage/jsonl-format.md.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1)]
"""A string that names something and so may not be empty."""

Id = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f]+\Z", max_length=512)]
"""An event's id: no control characters."""

Channel = Annotated[str, msgspec.Meta(pattern=r"\A[^:]+\Z")]
"""A channel's name: no `:`, since a chat is named `<channel>:<chat_id>` and split at its first `:`."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Role = Literal["user", "assistant", "system", "tool"]


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


class MemorySaved(Event, tag="memory_saved"):
    """Something worth keeping. Written by agents and people; adds a memory or replaces its content."""

    content: Text
    memory_id: Text | None = None
    title: str | None = None
    category: Text = "other"
    kind: Literal["fact", "preference", "insight"] = "fact"
    importance: Unit = 0.5
    source: Text = "manual"
    topic: str | None = None
    chat_id: str | None = None
    tags: list[str] | None = None


class CoreMemoryUpdated(Event, tag="core_memory_updated"):
    """A value of the core memory, which an agent always sees. Written by agents; sets one key."""

    section: Literal["user", "agent"]
    key: Text
    value: str


class CoreMemoryDeleted(Event, tag="core_memory_deleted"):
    """Written by agents; removes one key of the core memory."""

    section: Literal["user", "agent"]
    key: Text


AnyEvent = Message | SessionBreak | MemorySaved | CoreMemoryUpdated | CoreMemoryDeleted


def tag_of(event: Event | type[Event]) -> str:
    """The event's type, as the log writes it."""
    return str(event.__struct_config__.tag)


TYPES: dict[str, type[Event]] = {
    tag_of(kind): kind for kind in (Message, SessionBreak, MemorySaved, CoreMemoryUpdated, CoreMemoryDeleted)
}
"""Every event type by its name in the log."""
