"""memlog daily."""

import click

from memlog import DailyEvent
from memlog.cli.answer import format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, minute, print_done
from memlog.cli.param_types import STDIN
from memlog.cli.records import list_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.daily import CompressDailyEvents, ListDailyEvents, RecordDailyEvent

_COLUMNS = ("day", "channel", "sender", "tokens", "compressed", "id", "summary")


@click.group()
def daily() -> None:
    """Record and list daily events: what happened on which day."""


@request_command(RecordDailyEvent, group=daily, names={"event_id": "--id"}, types={"summary": STDIN})
@json_on_terminal_option
def record(ctx: click.Context, asked: RecordDailyEvent) -> None:
    with open_store(ctx) as store:
        position = store.daily.record(asked)
    print_done(ctx, position, f"Recorded the daily event {position.id}.")


@request_command(ListDailyEvents, group=daily)
@format_options
def list_(ctx: click.Context, asked: ListDailyEvents) -> None:
    with open_store(ctx) as store:
        found = store.daily.list(asked)
    print_answer(ctx, list_answer("daily_events", found, _COLUMNS, _row))


@request_command(CompressDailyEvents, group=daily, arguments=["ids"], names={"event_id": "--id"})
@json_on_terminal_option
def compress(ctx: click.Context, asked: CompressDailyEvents) -> None:
    with open_store(ctx) as store:
        position = store.daily.compress(asked)
    print_done(ctx, position, f"Marked as distilled: {', '.join(asked.ids)}.")


def _row(event: DailyEvent) -> tuple[object, ...]:
    return (
        event.event_date,
        event.channel,
        event.sender_id,
        event.raw_tokens,
        minute(event.compressed_at or ""),
        event.id,
        event.summary,
    )
