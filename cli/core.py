"""memlog core."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json, printable
from memlog.cli.param_types import PATH, TEXT
from memlog.eventlog.errors import NotFound
from memlog.service.core.facade import Imported

_SECTIONS = click.Choice(["user", "agent"])


@click.group()
def core() -> None:
    """Read and change the core memory: what an agent always sees, of its user and of itself."""


@core.command()
@click.argument("section", type=_SECTIONS, required=False, metavar="[user|agent]")
@click.argument("key", type=TEXT, required=False)
@format_options
@click.pass_context
def get(ctx: click.Context, section: str | None, key: str | None) -> None:
    """Print the core memory, one SECTION of it, or the value of one KEY."""
    with open_store(ctx) as store:
        sections: dict[str, dict[str, str]] = msgspec.structs.asdict(store.core.get())
    if section is not None and key is not None:
        print_answer(ctx, _one_value(sections, section, key))
    else:
        shown = {name: values for name, values in sections.items() if section in (None, name)}
        print_answer(ctx, _all_values(shown))


def _one_value(sections: dict[str, dict[str, str]], section: str, key: str) -> Answer:
    value = sections[section].get(key)
    if value is None:
        raise _unknown(section, key)
    record = {"section": section, "key": key, "value": value}
    return Answer(document=record, table=named_values(record), text=[printable(value)])


def _all_values(sections: dict[str, dict[str, str]]) -> Answer:
    rows = [(section, key, value) for section, values in sections.items() for key, value in values.items()]
    columns = ("section", "key", "value")
    return Answer(
        document=sections,
        table=Table(columns, rows),
        records=[dict(zip(columns, row, strict=True)) for row in rows],
        notes=[] if rows else ["nothing is set"],
    )


@core.command("set")
@click.argument("section", type=_SECTIONS)
@click.argument("key", type=TEXT)
@click.argument("value", type=TEXT)
@json_option
@click.pass_context
def set_(ctx: click.Context, section: Any, key: str, value: str, as_json: bool) -> None:  # noqa: ANN401, ARG001
    """Set a KEY of a SECTION (user or agent) to VALUE."""
    with open_store(ctx) as store:
        print_json(store.core.set(section, key, value))


@core.command()
@click.argument("section", type=_SECTIONS)
@click.argument("key", type=TEXT)
@json_option
@click.pass_context
def delete(ctx: click.Context, section: Any, key: str, as_json: bool) -> None:  # noqa: ANN401, ARG001
    """Remove a KEY of a SECTION (user or agent)."""
    with open_store(ctx) as store:
        position = store.core.delete(section, key)
    if position is False:
        raise _unknown(section, key)
    print_json(position)


@core.command("import")
@click.argument("file", type=PATH)
@click.option("--force", is_flag=True, help="What a Markdown file says wins over what is set.")
@format_options
@click.pass_context
def import_(ctx: click.Context, file: Path, force: bool) -> None:
    """Append what a FILE says that the core memory does not.

    A Markdown or text file, such as USER.md, says `key: value` in lines and lists under headings; what is
    set already stays. A JSON file has the shape of model/core_memory.json: all its values are set. That file
    itself, where it was changed by hand: what was changed is set, what was removed is deleted.
    """
    with open_store(ctx) as store:
        done = store.core.import_file(file, force=force)
    rows = [
        (change, each.section, each.key, each.value)
        for change, values in (("set", done.set), ("deleted", done.deleted), ("kept", done.kept))
        for each in values
    ]
    columns = ("change", "section", "key", "value")
    answer = Answer(
        document=done,
        table=Table(columns, rows),
        records=[dict(zip(columns, row, strict=True)) for row in rows],
        notes=list(_notes(done)),
    )
    print_answer(ctx, answer)


def _notes(done: Imported) -> Iterator[str]:
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
