"""Daily events as programs use them: `store.daily`."""

from collections.abc import Sequence

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.eventlog.writer import Position
from memlog.projector.sqlite import Connection
from memlog.query import daily_events, memories
from memlog.query.daily_events import DailyEvent
from memlog.service.memories.facade import unknown_memory
from memlog.service.memories.save import Append
from memlog.service.read_model import Reading

_DailyEvents = list[DailyEvent]
"""Within the class `list` is its method."""


class DailyEvents:
    """What happened on which day, and what of it was distilled into memories. Every change is an event.

    read: asks the read model, caught up if that takes no time. decide: caught up, or raises Busy.
    """

    def __init__(self, append: Append, *, read: Reading, decide: Reading) -> None:
        self._append = append
        self._read = read
        self._decide = decide

    def record(
        self,
        summary: str,
        *,
        date: str | None = None,
        channel: str | None = None,
        sender_id: str | None = None,
        raw_tokens: int | None = None,
        event_id: str | None = None,
        ts: str | None = None,
    ) -> Position:
        """Record something that happened on a day. Reads nothing.

        date: the day, as 2026-02-24; the UTC day of `ts` where not given.
        raw_tokens: how long what `summary` sums up was, 0 and more.
        event_id: makes a second try harmless.

        Raises:
            BadInput: the summary says nothing, `date` is no day; or as `Store.append`, as Busy and LogError.
        """
        if not summary.strip():
            raise BadInput("the summary says nothing", hint="say what happened")
        event = DailyEventRecorded(
            id=event_id,
            ts=ts,
            event_date=_day(date),
            channel=channel,
            sender_id=sender_id,
            summary=summary,
            raw_tokens=raw_tokens,
        )
        (position,) = self._append([event])
        return position

    def list(
        self,
        *,
        date: str | None = None,
        since: str | None = None,
        until: str | None = None,
        channel: str | None = None,
        uncompressed: bool = False,
    ) -> _DailyEvents:
        """Daily events by day, those of one day in the order in which they were recorded.

        date: of this day. since, until: since <= day < until, each as 2026-02-24.
        uncompressed: those alone that were not distilled yet.

        Raises:
            BadInput: `date`, `since` or `until` is no day; one day and a stretch of days are asked for.
        """
        if date is not None and (since, until) != (None, None):
            raise BadInput("one day, or a stretch of days", hint="date, or since and until")
        days = {"date": _day(date), "since": _day(since), "until": _day(until)}
        return self._read(
            lambda db: daily_events.daily_events(db, **days, channel=channel, is_uncompressed=uncompressed)
        )

    def compress(self, *ids: str, memory_ids: Sequence[str] = (), event_id: str | None = None) -> Position:
        """Mark daily events as distilled, and say into which memories. They stay; `uncompressed` leaves
        them out.

        ids: of the daily events. event_id: makes a second try harmless.

        Raises:
            NotFound: some daily events (code `daily_event_not_found`) or memories do not stand; nothing was
                marked.
            BadInput: no daily event is named; or as `Store.append`, as Busy and LogError.
        """
        if not ids:
            raise BadInput("no daily event is named", hint="memlog daily list --uncompressed prints ids")
        self._decide(lambda db: _check_known(db, ids, memory_ids))
        event = DailyEventsCompressed(
            id=event_id, ids=[*dict.fromkeys(ids)], memory_ids=[*dict.fromkeys(memory_ids)]
        )
        (position,) = self._append([event])
        return position


def _check_known(db: Connection, ids: Sequence[str], memory_ids: Sequence[str]) -> None:
    if missing := daily_events.unknown(db, ids):
        raise NotFound(
            f"no daily event {', '.join(map(repr, missing))}",
            hint="memlog daily list",
            code="daily_event_not_found",
        )
    if missing := memories.unknown(db, memory_ids):
        raise unknown_memory(*missing)


def _day(text: str | None) -> str | None:
    try:
        return None if text is None else timestamps.day(text)
    except ValueError as error:
        raise BadInput(str(error), hint="a day is written as 2026-02-24") from error
