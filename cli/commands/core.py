"""memlog core."""

from collections.abc import Iterator

import click
from msgspec.structs import asdict

from memlog.cli.commands.extraction import extractions
from memlog.cli.options.param_types import STDIN
from memlog.cli.options.request_options import Store, request_command
from memlog.cli.options.settings import Group
from memlog.cli.options.zone import minute
from memlog.cli.output.answer import Answer, Columns, Done, list_answer, named_values, rows_answer
from memlog.cli.output.output import printable
from memlog.service.engine.operation import required
from memlog.service.llm.requests import DistilDays
from memlog.service.memory.conversation_requests import CompressDailyEvents, ListDailyEvents, RecordDailyEvent
from memlog.service.memory.core import CoreImportReport
from memlog.service.memory.requests import DeleteCoreValue, GetCoreMemory, ImportCoreMemory, SetCoreValue


@click.group(cls=Group)
def core() -> None:
    """Read and change the core memory: what an agent always knows of its user and itself."""


@request_command(GetCoreMemory, group=core, arguments=["section", "key"])
def get(store: Store, request: GetCoreMemory) -> Answer:
    found = required(store.core.get, request)
    if isinstance(found, str):
        record = {"section": request.section, "key": request.key, "value": found}
        return Answer(record, named_values(record), text=[printable(found)])
    sections = asdict(found) if request.section is None else {request.section: found}
    rows = [(section, key, value) for section, values in sections.items() for key, value in values.items()]
    return rows_answer(sections, ("section", "key", "value"), rows, [] if rows else ["nothing is set"])


@request_command(SetCoreValue, group=core, arguments=["section", "key", "value"])
def set_(store: Store, request: SetCoreValue) -> Done:
    return Done(store.core.set(request), f"Set {request.key} of {request.section}.")


@request_command(DeleteCoreValue, group=core, arguments=["section", "key"])
def delete(store: Store, request: DeleteCoreValue) -> Done:
    return Done(required(store.core.delete, request), f"Deleted {request.key} of {request.section}.")


@request_command(ImportCoreMemory, group=core, name="import", arguments=["path"])
def import_(store: Store, request: ImportCoreMemory) -> Answer:
    done = store.core.import_file(request)
    rows = [
        (change, each.section, each.key, each.value)
        for change, values in (("set", done.set), ("deleted", done.deleted), ("kept", done.kept))
        for each in values
    ]
    return rows_answer(done, ("change", "section", "key", "value"), rows, _notes(done))


def _notes(done: CoreImportReport) -> Iterator[str]:
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
    "compressed": lambda event: minute(event.compressed_at),
    "id": "id",
    "summary": "summary",
}


@click.group(cls=Group)
def daily() -> None:
    """Record and list daily events: what happened on which day."""


@request_command(RecordDailyEvent, group=daily, types={"summary": STDIN})
def record(store: Store, request: RecordDailyEvent) -> Done:
    position = store.daily.record(request)
    return Done(position, f"Recorded the daily event {position.id}.")


@request_command(ListDailyEvents, group=daily)
def list_(store: Store, request: ListDailyEvents) -> Answer:
    return list_answer("daily_events", store.daily.list(request), _COLUMNS)


@request_command(DistilDays, group=daily)
def distil(store: Store, request: DistilDays) -> Answer:
    return extractions(store.extraction.days(request))


@request_command(CompressDailyEvents, group=daily, arguments=["ids"])
def compress(store: Store, request: CompressDailyEvents) -> Done:
    return Done(store.daily.compress(request), f"Marked as distilled: {', '.join(request.ids)}.")
