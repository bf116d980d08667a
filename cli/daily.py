"""memlog daily."""

from typing import Any

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, minute, print_json
from memlog.cli.param_types import DAY, INTEGER, TEXT
from memlog.cli.stdin import stdin_text
from memlog.query.daily_events import DailyEvent

_COLUMNS = ("day", "channel", "sender", "tokens", "compressed", "id", "summary")


@click.group()
def daily() -> None:
    """Record and list daily events: what happened on which day."""


@daily.command()
@click.option("--summary", type=TEXT, required=True, help="What happened; - reads it from stdin.")
@click.option("--date", type=DAY, help="The day, as 2026-02-24; the UTC day of --ts where not given.")
@click.option("--channel", type=TEXT, help="Where it came from.")
@click.option("--sender-id", type=TEXT, help="Who it was.")
@click.option("--raw-tokens", type=INTEGER, help="How long what it sums up was.")
@click.option("--id", "event_id", type=TEXT, help="The event's id; a retry with the same id is harmless.")
@click.option("--ts", type=TEXT, help="When it happened (RFC 3339); now where not given.")
@json_option
@click.pass_context
def record(ctx: click.Context, /, summary: str, as_json: bool, **said: Any) -> None:  # noqa: ANN401, ARG001
    """Record something that happened on a day."""
    with open_store(ctx) as store:
        print_json(store.daily.record(stdin_text() if summary == "-" else summary, **said))


@daily.command("list")
@click.option("--date", type=DAY, help="Only of this day (2026-02-24).")
@click.option("--since", type=DAY, help="Only from this day on.")
@click.option("--until", type=DAY, help="Only before this day.")
@click.option("--channel", type=TEXT, help="Only of this channel.")
@click.option("--uncompressed", is_flag=True, help="Only those that were not distilled yet.")
@format_options
@click.pass_context
def list_(ctx: click.Context, /, **asked: Any) -> None:  # noqa: ANN401
    """List daily events by day, those of one day in the order in which they were recorded."""
    if asked["date"] and (asked["since"] or asked["until"]):
        raise click.UsageError("--date names one day, --since and --until a stretch of days", ctx)
    with open_store(ctx) as store:
        found = store.daily.list(**asked)
    answer = Answer(
        document={"daily_events": found},
        table=Table(_COLUMNS, [_row(each) for each in found]),
        records=found,
        notes=[] if found else ["no daily events"],
    )
    print_answer(ctx, answer)


@daily.command()
@click.argument("ids", metavar="ID...", type=TEXT, nargs=-1, required=True)
@click.option(
    "--memory-id", "memory_ids", type=TEXT, multiple=True, help="A memory; may be given several times."
)
@click.option("--id", "event_id", type=TEXT, help="The event's id; a retry with the same id is harmless.")
@json_option
@click.pass_context
def compress(
    ctx: click.Context,
    ids: tuple[str, ...],
    memory_ids: tuple[str, ...],
    event_id: str | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Mark daily events as distilled, and say into which memories."""
    with open_store(ctx) as store:
        print_json(store.daily.compress(*ids, memory_ids=memory_ids, event_id=event_id))


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
