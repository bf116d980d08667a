"""The operations of `store.daily`."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.eventlog.positions import Position
from memlog.projector.sqlite import Connection
from memlog.query import records
from memlog.query.provenance import unknown_ids
from memlog.query.records import DailyEvent
from memlog.query.request import Day
from memlog.service.engine.operation import OperationGroup, make_not_found_error, operation
from memlog.service.engine.requests import EventId, EventTime, build_event

_DailyEvents = list[DailyEvent]
"""An alias for use in the class, where `list` is a method."""


def _check_days(given: Any) -> None:  # noqa: ANN401 - the request
    if given.date is not None and (given.since, given.until) != (None, None):
        raise BadInput("date cannot be combined with since or until", hint="use date, or since and until")


class DailyEvents(OperationGroup):
    """Summaries of what happened on a day, and the memories distilled from them. Every change is an event."""

    @operation("append")
    def record(
        self,
        summary: Annotated[str, "What happened."],
        date: Annotated[Day | None, "The day, such as 2026-02-24; by default the UTC day of `ts`."] = None,
        *,
        channel: Annotated[str | None, "The channel of the events."] = None,
        sender_id: Annotated[str | None, "The id of the sender."] = None,
        raw_tokens: Annotated[
            int | None, Meta(ge=0, le=2**63 - 1), "The length of the summarised text, in tokens."
        ] = None,
        event_id: EventId | None = None,
        ts: EventTime | None = None,
    ) -> Position:
        """Record what happened on a day.

        Raises:
            BadInput: the summary is blank. BadInput, Busy, LogError: as `Store.append`.
        """
        if not summary.strip():
            raise BadInput("the summary must not be blank", hint="describe what happened")
        event = build_event(
            DailyEventRecorded,
            **{"event_id": event_id, "ts": ts, "date": date, "channel": channel, "sender_id": sender_id},
            **{"summary": summary, "raw_tokens": raw_tokens},
        )
        return self._append_one(event)

    @operation("read", check=_check_days)
    def list(
        self,
        *,
        date: Annotated[Day | None, "Only events of this day, such as 2026-02-24."] = None,
        since: Annotated[Day | None, "Only events from this day on."] = None,
        until: Annotated[Day | None, "Only events up to and including this day."] = None,
        channel: Annotated[str | None, "Only events of this channel."] = None,
        uncompressed: Annotated[bool, "Only events that are not distilled yet."] = False,
    ) -> _DailyEvents:
        """List daily events by day and, within a day, in the order in which they were recorded.

        Raises:
            BadInput: `date` is given with `since` or `until`.
        """
        days: dict[str, Any] = {"date": date, "since": since, "until": until}
        return self._read(
            lambda db: records.list_daily_events(db, **days, channel=channel, uncompressed=uncompressed)
        )

    @operation("append")
    def compress(
        self,
        *ids: Annotated[str, Meta(title="ID"), "The daily events."],
        memory_ids: Annotated[Sequence[str], "A memory from them; may be given several times."] = (),
        event_id: EventId | None = None,
    ) -> Position:
        """Mark daily events as distilled into memories. The events stay.

        Raises:
            NotFound: some daily events (code `daily_event_not_found`) or memories do not exist; nothing was
                marked.
            BadInput: no daily event is given. BadInput, Busy, LogError: as `Store.append`.
        """
        if not ids:
            raise BadInput("no daily events were given", hint="store.daily.list(uncompressed=True) lists ids")
        self._decide(lambda db: _check_ids_are_known(db, ids, memory_ids))
        given, memories = [*dict.fromkeys(ids)], [*dict.fromkeys(memory_ids)]
        return self._append_one(DailyEventsCompressed(id=event_id, ids=given, memory_ids=memories))


def _check_ids_are_known(db: Connection, ids: Sequence[str], memory_ids: Sequence[str]) -> None:
    if missing := unknown_ids(db, ids, "daily_events"):
        raise make_not_found_error("daily_event_not_found", *missing)
    if missing := unknown_ids(db, memory_ids, "memories"):
        raise make_not_found_error("memory_not_found", *missing)
