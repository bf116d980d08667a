"""The operations of `store.daily`."""

from collections.abc import Sequence

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed, Position
from memlog.projector.sqlite import Connection
from memlog.query import records
from memlog.query.provenance import unknown
from memlog.query.records import DailyEvent
from memlog.service.engine.engine import OperationGroup
from memlog.service.engine.operation import not_found, operation
from memlog.service.engine.requests import event_of
from memlog.service.memory.conversation_requests import CompressDailyEvents, ListDailyEvents, RecordDailyEvent

_DailyEvents = list[DailyEvent]
"""In the class, `list` is a method."""


class DailyEvents(OperationGroup):
    """Summaries of what happened on a day, and the memories distilled from them. Every change is an event."""

    @operation(RecordDailyEvent, effect="append")
    def record(self, request: RecordDailyEvent) -> Position:
        if not request.summary.strip():
            raise BadInput("the summary is blank", hint="give what happened")
        return self._append_one(event_of(DailyEventRecorded, request))

    @operation(ListDailyEvents, effect="read")
    def list(self, request: ListDailyEvents) -> _DailyEvents:
        return self._query(records.daily_events, request)

    @operation(CompressDailyEvents.named, effect="append")
    def compress(self, request: CompressDailyEvents) -> Position:
        if not request.ids:
            raise BadInput("no daily event is given", hint="store.daily.list(uncompressed=True) gives ids")
        self._decide(lambda db: _check_known(db, request.ids, request.memory_ids))
        ids, memory_ids = [*dict.fromkeys(request.ids)], [*dict.fromkeys(request.memory_ids)]
        return self._append_one(DailyEventsCompressed(id=request.event_id, ids=ids, memory_ids=memory_ids))


def _check_known(db: Connection, ids: Sequence[str], memory_ids: Sequence[str]) -> None:
    if missing := unknown(db, ids, "daily_events"):
        raise not_found("daily_event_not_found", *missing)
    if missing := unknown(db, memory_ids, "memories"):
        raise not_found("memory_not_found", *missing)
