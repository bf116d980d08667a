"""What all events have in common."""

from typing import Annotated, ClassVar

import msgspec

from memlog.eventlog.event_fields import Channel, Id, Text


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

    wins: its precedence: of two changes of one thing the greater wins. Set by memlog; None in a foreign line
        or one of an older memlog. See `memlog.eventlog.precedence`.
    highest_wins: the stream's highest precedence, if that is above `wins`.
    """

    wins: str | None = None
    highest_wins: str | None = None


class ConversationEvent(Event):
    """An event of a conversation's stream."""

    channel: Channel
    chat_id: Text


def tag_of(event: Event | type[Event]) -> str:
    """The name of an event's type in the log."""
    return str(event.__struct_config__.tag)
