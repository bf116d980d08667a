"""Requests for conversations and daily events, and of `store.append`."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

from msgspec import Meta

from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.events import Event
from memlog.eventlog.fields import Chat, Reads
from memlog.eventlog.limits import MOST
from memlog.query.request import ChatField, Day, Request, one_by_one
from memlog.service.engine.requests import EventId, EventTime


class _OfChat(Request, frozen=True):
    chat: Annotated[ChatField, "The conversation, split at the first colon."]


class _WindowOptions(_OfChat, frozen=True, kw_only=True):
    last: Annotated[int | None, Meta(ge=1, le=MOST), "The newest messages, at most so many."] = None
    tokens: Annotated[
        int | None, Meta(ge=1, le=MOST), "The newest whole messages that fit into so many tokens."
    ] = None
    across_sessions: Annotated[bool, "Also messages from before the last session break."] = False


class ReadWindow(_WindowOptions, frozen=True, kw_only=True):
    """Read the newest messages of the current session of a chat, oldest first.

    At most 50 where neither `last` nor `tokens` is given.

    Raises:
        NotFound: the store has events, and none of this chat.
    """


class ReadSession(_WindowOptions, frozen=True, kw_only=True):
    """Read the current session of a chat as one text, oldest message first; all of it without a limit.

    Each message is its speaker, `: `, and its text, unchanged. A window tells messages apart, whatever they
    say.

    Raises:
        NotFound: the store has events, and none of this chat.
    """


class _OfConversations(Request, frozen=True):
    chat: Annotated[ChatField | None, "Only of this conversation."] = None

    @property
    def conversation(self) -> Chat | None:
        return None if self.chat is None else Chat.of(self.chat)


class ListSessions(_OfConversations, frozen=True, kw_only=True):
    """List the current session of each chat, the newest first.

    A session is the part of a conversation between two session breaks.

    Raises:
        NotFound: the store has events, and none of this chat.
    """

    all: Annotated[bool, "Earlier sessions, too."] = False


class ListSummaries(_OfConversations, frozen=True):
    """List the summaries of conversations, in the order in which they were written.

    Raises:
        NotFound: the store has events, and none of this chat.
    """


class RecordDailyEvent(Request, frozen=True):
    """Record what happened on a day.

    Raises:
        BadInput: the summary is blank; or as `Store.append`, as Busy and LogError.
    """

    summary: Annotated[str, "What happened."]
    date: Annotated[Day | None, "The day, as 2026-02-24; the UTC day of `ts` where not given."] = None
    channel: Annotated[str | None, "Where it came from."] = None
    sender_id: Annotated[str | None, "Who it was."] = None
    raw_tokens: Annotated[
        int | None, Meta(ge=0, le=2**63 - 1), "How long the summarised text was, in tokens."
    ] = None
    event_id: EventId | None = None
    ts: EventTime | None = None


class ListDailyEvents(Request, frozen=True, kw_only=True):
    """List daily events by day, those of one day in the order in which they were recorded.

    Raises:
        BadInput: `date` is given with `since` or `until`.
    """

    date: Annotated[Day | None, "Only of this day (2026-02-24)."] = None
    since: Annotated[Day | None, "Only from this day on."] = None
    until: Annotated[Day | None, "Only up to this day, which is included."] = None
    channel: Annotated[str | None, "Only of this channel."] = None
    uncompressed: Annotated[bool, "Only those that are not distilled yet."] = False

    def __post_init__(self) -> None:
        """Refuse one day and a stretch of days."""
        super().__post_init__()
        if self.date is not None and (self.since, self.until) != (None, None):
            raise BadInput("date is one day, since and until are a stretch", hint="date, or since and until")


class CompressDailyEvents(Request, frozen=True):
    """Mark daily events as distilled, and name the memories that hold them now. The events stay.

    Raises:
        NotFound: some daily events (code `daily_event_not_found`) or memories do not exist; nothing was
            marked.
        BadInput: no daily event is named; or as `Store.append`, as Busy and LogError.
    """

    ids: Annotated[Sequence[str], Meta(title="ID"), "The daily events."]
    memory_ids: Annotated[Sequence[str], "A memory; may be given several times."] = ()
    event_id: EventId | None = None

    @classmethod
    def named(cls, *ids: str, memory_ids: Sequence[str] = (), event_id: str | None = None) -> Self:
        """Return the request of a list of arguments."""
        return cls(one_by_one(ids), memory_ids=memory_ids, event_id=event_id)


EventLike = Event | dict[str, Any] | bytes
"""An event as callers give it: a struct, its members, or a line of JSON."""


def _events(given: EventLike | Iterable[EventLike]) -> Iterable[EventLike]:
    if isinstance(given, Event | dict | bytes):
        return [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(
            f"not an event: {shown_value(given)}",
            hint="give a struct such as memlog.Message, or a list of them",
        )
    return given


class AppendEvents(Request, frozen=True):
    """Append events, or one, and answer their positions, once all are durable.

    `warnings` of a position tell what is odd about its event; if another event has its id, as far as the read
    model knows, `conflict` names it. An event with an id is stored once: to append it again is harmless.

    Raises:
        BadInput: an event cannot be stored; none was written.
        NotFound: a redaction does not say where it goes, and no stream has its target; none was written.
        Busy: another writer held the stream for too long.
        LogError: the log could not be written. Safe to try again with the same ids.
    """

    events: Annotated[
        EventLike | Iterable[EventLike],
        Reads(_events, wire=list[dict[str, Any]]),
        "Events: structs, members by name, or lines of JSON.",
    ]
