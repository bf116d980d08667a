"""memlog core."""

from collections.abc import Iterator

import click
import msgspec

from memlog.cli.answer import Answer, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, print_done, printable
from memlog.cli.records import rows_answer
from memlog.cli.request_options import request_command
from memlog.eventlog.errors import NotFound
from memlog.service.core.facade import CoreImportReport
from memlog.service.requests.core import DeleteCoreValue, GetCoreMemory, ImportCoreMemory, SetCoreValue


@click.group()
def core() -> None:
    """Read and change the core memory: what an agent always sees, of its user and of itself."""


@request_command(GetCoreMemory, group=core, arguments=["section", "key"])
@format_options
def get(ctx: click.Context, asked: GetCoreMemory) -> None:
    with open_store(ctx) as store:
        sections: dict[str, dict[str, str]] = msgspec.structs.asdict(store.core.get())
    if asked.section is not None and asked.key is not None:
        print_answer(ctx, _one_value(sections, asked.section, asked.key))
    else:
        shown = {name: values for name, values in sections.items() if asked.section in (None, name)}
        print_answer(ctx, _all_values(shown))


def _one_value(sections: dict[str, dict[str, str]], section: str, key: str) -> Answer:
    value = sections[section].get(key)
    if value is None:
        raise _unknown(section, key)
    record = {"section": section, "key": key, "value": value}
    return Answer(document=record, table=named_values(record), text=[printable(value)])


def _all_values(sections: dict[str, dict[str, str]]) -> Answer:
    rows = [(section, key, value) for section, values in sections.items() for key, value in values.items()]
    return rows_answer(sections, ("section", "key", "value"), rows, [] if rows else ["nothing is set"])


@request_command(SetCoreValue, group=core, arguments=["section", "key", "value"])
@json_on_terminal_option
def set_(ctx: click.Context, asked: SetCoreValue) -> None:
    with open_store(ctx) as store:
        position = store.core.set(asked)
    print_done(ctx, position, f"Set {asked.key} of {asked.section}.")


@request_command(DeleteCoreValue, group=core, arguments=["section", "key"])
@json_on_terminal_option
def delete(ctx: click.Context, asked: DeleteCoreValue) -> None:
    with open_store(ctx) as store:
        position = store.core.delete(asked)
    if position is False:
        raise _unknown(asked.section, asked.key)
    print_done(ctx, position, f"Deleted {asked.key} of {asked.section}.")


@request_command(ImportCoreMemory, group=core, name="import", arguments=["path"])
@format_options
def import_(ctx: click.Context, asked: ImportCoreMemory) -> None:
    with open_store(ctx) as store:
        done = store.core.import_file(asked)
    rows = [
        (change, each.section, each.key, each.value)
        for change, values in (("set", done.set), ("deleted", done.deleted), ("kept", done.kept))
        for each in values
    ]
    print_answer(ctx, rows_answer(done, ("change", "section", "key", "value"), rows, _notes(done)))


def _notes(done: CoreImportReport) -> Iterator[str]:
    if not (done.set or done.deleted):
        yield "already imported" if done.kept else "the file says nothing"
    if done.other:
        yield f"kept, and otherwise in the file: {done.other}; --force sets them"
    if done.skipped:
        yield f"left out, neither `key: value` nor an item under a heading: {done.skipped} lines"


def _unknown(section: str, key: str) -> NotFound:
    return NotFound(
        f"the core memory has no key {key!r} in {section}", hint="memlog core get", code="core_key_not_found"
    )
