"""Distils a day's daily events into memories, each event once."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby

from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.events import DailyEventsCompressed, Event
from memlog.eventlog.fields import Chat
from memlog.eventlog.secrets.outgoing import TextToCheck, mask_parts
from memlog.projector.sqlite import Connection
from memlog.query.records import DailyEvent, list_daily_events
from memlog.service.engine.engine import Engine
from memlog.service.llm.answers import MemoryAnswer
from memlog.service.llm.task import ModelReply, Questions, pack_batches
from memlog.service.llm.tasks.extract import (
    DistilledBatch,
    Distilling,
    ExtractionReport,
    waiting_report,
)


class DayBatch(DistilledBatch):
    """Daily events of a day that the same chats may see."""

    date: str


class DaysTask(Distilling[DayBatch]):
    """Distils a store's pending daily events. until: the last day; by default yesterday."""

    name, job, step = "compress", "daily", "daily events"
    prompt = "compress-2"

    def __init__(self, engine: Engine, questions: Questions, until: str | None = None) -> None:
        super().__init__(engine, questions)
        self._until, self._left = until, 0

    def distil_and_report(self, chat: Chat | None = None) -> Iterator[ExtractionReport]:
        """Distil all due events; the first report covers imported daily events. See `Distilling`."""
        waiting, found = self.pending_and_sendable_days()
        if kept := len(waiting) - len(found):
            yield waiting_report(kept, "imported, and extraction.channels does not name their channels")
        yield from super().distil_and_report(chat)

    def pending_and_sendable_days(self) -> tuple[list[DailyEvent], list[DailyEvent]]:
        """Return the daily events that are not distilled yet, and the ones among them that may be sent."""

        today = timestamps.convert_to_zone(timestamps.now(), self._questions.zone).date()
        until = self._until or str(today - timedelta(days=1))

        def find(db: Connection) -> tuple[list[DailyEvent], list[DailyEvent]]:
            waiting = list_daily_events(db, until=until, uncompressed=True)
            return waiting, self._questions.sendable_daily_events(db, waiting)

        return self._decide(find)

    def _count_waiting(self) -> int:
        return self._left

    def find_batches(self) -> Iterator[DayBatch]:
        """Yield the daily events of each day and owner."""
        _, found = self.pending_and_sendable_days()
        self._left = len(found)
        for (date, _), of_chat in groupby(sorted(found, key=_group_key), key=_group_key):
            days = list(of_chat)
            summaries = mask_parts([TextToCheck(each.summary) for each in days])
            shown = [
                {"date": each.event_date, "channel": each.channel, "summary": summary}
                for each, summary in zip(days, summaries, strict=True)
            ]
            yield DayBatch(
                chat=_private_chat(days[0]),
                event_ids=[each.id for each in days],
                requests=[*pack_batches(shown, "summary", self._room)],
                date=date,
            )
            self._left -= len(days)

    def events_of_reply(
        self, db: Connection, batch: DayBatch, reply: ModelReply[MemoryAnswer]
    ) -> list[Event]:
        """Return the memories that only the chat of the daily events sees."""
        reply.origin = replace(reply.origin, chat_id=batch.chat)
        ts = min(f"{batch.date}T12:00:00.000Z", timestamps.now())
        memories = self.events_that_save_memories(db, batch, batch.date, ts, reply)
        closing = DailyEventsCompressed(
            id=reply.origin.id,
            ids=batch.event_ids,
            memory_ids=[str(event.memory_id) for event in memories],
        )
        return [*memories, closing]


def _private_chat(event: DailyEvent) -> str | None:
    """Return the only chat that may see a daily event: its own, or its sender's; None if all chats may."""
    told_by = f"{event.channel}:{event.sender_id}" if event.channel and event.sender_id else None
    return event.chat or told_by


def _group_key(event: DailyEvent) -> tuple[str, str]:
    """Return a daily event's day and owner; no context shows events of two owners together."""
    is_of_all = event.channel is None and event.sender_id is None
    place = "" if is_of_all else f"{event.channel or ''}:{event.sender_id or ''}"
    return event.event_date, _private_chat(event) or place


TASK = DaysTask
