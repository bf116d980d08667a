"""memlog daily."""

import click

from memlog.cli.answer import Answer, Columns, Done, list_answer
from memlog.cli.extraction import extractions
from memlog.cli.param_types import STDIN
from memlog.cli.request_options import Store, request_command
from memlog.cli.standard_options import Group
from memlog.cli.zone import minute
from memlog.service.llm.requests import DistilDays
from memlog.service.memory.conversation_requests import CompressDailyEvents, ListDailyEvents, RecordDailyEvent

_COLUMNS: Columns = {
    "day": "event_date",
    "channel": "channel",
    "sender": "sender_id",
    "tokens": "raw_tokens",
    "compressed": lambda event: minute(event.compressed_at),
    "id": "id",
    "summary": "summary",
}


@click.group(cls=Group)
def daily() -> None:
    """Record and list daily events: what happened on which day."""


@request_command(RecordDailyEvent, group=daily, types={"summary": STDIN})
def record(store: Store, asked: RecordDailyEvent) -> Done:
    position = store.daily.record(asked)
    return Done(position, f"Recorded the daily event {position.id}.")


@request_command(ListDailyEvents, group=daily)
def list_(store: Store, asked: ListDailyEvents) -> Answer:
    return list_answer("daily_events", store.daily.list(asked), _COLUMNS)


@request_command(DistilDays, group=daily)
def distil(store: Store, asked: DistilDays) -> Answer:
    return extractions(store.extraction.days(asked))


@request_command(CompressDailyEvents, group=daily, arguments=["ids"])
def compress(store: Store, asked: CompressDailyEvents) -> Done:
    return Done(store.daily.compress(asked), f"Marked as distilled: {', '.join(asked.ids)}.")
