"""memlog core."""

from collections.abc import Iterator

import click
from msgspec.structs import asdict

import memlog
from memlog.cli.commands.extraction import extractions_answer
from memlog.cli.options.param_types import STDIN
from memlog.cli.options.request_options import Given, OperationCommands, request_command
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import Answer, Columns, Done, list_answer, rows_answer, table_of_named_values
from memlog.cli.output.output import escape_controls


@click.group(cls=OperationCommands, operations="core")
def core() -> None:
    """Read and change the core memory: what an agent always knows about its user and itself."""


@request_command("core.get", group=core)
def get(found: "memlog.CoreMemory | dict[str, str] | str", given: Given) -> Answer:
    if isinstance(found, str):
        record = {"section": given.section, "key": given.key, "value": found}
        return Answer(record, table_of_named_values(record), text=[escape_controls(found)])
    sections = {given.section: found} if isinstance(found, dict) else asdict(found)
    rows = [(section, key, value) for section, values in sections.items() for key, value in values.items()]
    return rows_answer(sections, ("section", "key", "value"), rows, [] if rows else ["nothing is set"])


@request_command("core.set", group=core)
def set_(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Set {given.key} of {given.section}.")


@request_command("core.delete", group=core)
def delete(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Deleted {given.key} of {given.section}.")


@request_command("core.import_file", group=core, name="import")
def import_(done: "memlog.CoreImportReport", _: Given) -> Answer:
    rows = [
        (change, each.section, each.key, each.value)
        for change, values in (("set", done.set), ("deleted", done.deleted), ("kept", done.kept))
        for each in values
    ]
    return rows_answer(done, ("change", "section", "key", "value"), rows, _import_notes(done))


def _import_notes(done: "memlog.CoreImportReport") -> Iterator[str]:
    if not (done.set or done.deleted):
        yield "already imported" if done.kept else "the file says nothing"
    if done.other:
        yield f"kept, and otherwise in the file: {done.other}; --force sets them"
    if done.skipped:
        yield f"left out, neither `key: value` nor an item under a heading: {done.skipped} lines"


_COLUMNS: Columns = {
    "day": "event_date",
    "channel": "channel",
    "sender": "sender_id",
    "tokens": "raw_tokens",
    "compressed": lambda event: format_in_local_time(event.compressed_at),
    "id": "id",
    "summary": "summary",
}


@click.group(cls=OperationCommands, operations="daily")
def daily() -> None:
    """Record and list daily events: what happened on which day."""


@request_command("daily.record", group=daily, arguments=[], types={"summary": STDIN})
def record(position: "memlog.Position", _: Given) -> Done:
    return Done(position, f"Recorded the daily event {position.id}.")


@request_command("daily.list", group=daily)
def list_(found: "list[memlog.DailyEvent]", _: Given) -> Answer:
    return list_answer("daily_events", found, _COLUMNS)


@request_command("extraction.days", group=daily, arguments=[])
def distil(found: "list[memlog.ExtractionReport]", _: Given) -> Answer:
    return extractions_answer(found)


@request_command("daily.compress", group=daily)
def compress(done: "memlog.Position", given: Given) -> Done:
    return Done(done, f"Marked as distilled: {', '.join(given.ids)}.")
