"""Requests for daily events: `store.daily`."""

from collections.abc import Sequence
from typing import Annotated, Self

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.query.request import Day, Request, one_by_one
from memlog.service.requests.scope import EventId, EventTime


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
        """The request of a list of arguments."""
        return cls(one_by_one(ids), memory_ids=memory_ids, event_id=event_id)
