"""Daily events as programs use them: `store.daily`."""

from collections.abc import Sequence

import msgspec

from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import DailyEventRecorded, DailyEventsCompressed
from memlog.eventlog.writer import Position
from memlog.projector.sqlite import Connection
from memlog.query import daily_events
from memlog.query.daily_events import DailyEvent
from memlog.query.ids import unknown
from memlog.service.memories.facade import unknown_memory
from memlog.service.memories.save import Append
from memlog.service.operations import operation
from memlog.service.read_model import Reading
from memlog.service.requests.daily import CompressDailyEvents, ListDailyEvents, RecordDailyEvent
from memlog.service.requests.scope import event_of

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

    @operation(RecordDailyEvent)
    def record(self, asked: RecordDailyEvent) -> Position:
        if not asked.summary.strip():
            raise BadInput("the summary is blank", hint="give what happened")
        (position,) = self._append([event_of(DailyEventRecorded, asked)])
        return position

    @operation(ListDailyEvents)
    def list(self, asked: ListDailyEvents) -> _DailyEvents:
        return self._read(lambda db: daily_events.daily_events(db, **msgspec.structs.asdict(asked)))

    @operation(CompressDailyEvents.named)
    def compress(self, asked: CompressDailyEvents) -> Position:
        if not asked.ids:
            raise BadInput("no daily event is named", hint="memlog daily list --uncompressed prints ids")
        self._decide(lambda db: _check_known(db, asked.ids, asked.memory_ids))
        event = DailyEventsCompressed(
            id=asked.event_id,
            ids=[*dict.fromkeys(asked.ids)],
            memory_ids=[*dict.fromkeys(asked.memory_ids)],
        )
        (position,) = self._append([event])
        return position


def _check_known(db: Connection, ids: Sequence[str], memory_ids: Sequence[str]) -> None:
    if missing := unknown(db, ids, "daily_events"):
        raise NotFound(
            f"no daily event {', '.join(map(repr, missing))}",
            hint="memlog daily list",
            code="daily_event_not_found",
        )
    if missing := unknown(db, memory_ids, "memories"):
        raise unknown_memory(*missing)
