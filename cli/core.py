"""memlog core."""

from typing import Any

import click
import msgspec

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, print_json, printable
from memlog.cli.types import TEXT
from memlog.eventlog.errors import NotFound

_SECTIONS = click.Choice(["user", "agent"])


@click.group()
def core() -> None:
    """Read and change the core memory: what an agent always sees, of its user and of itself."""


@core.command()
@click.argument("section", type=_SECTIONS, required=False)
@click.argument("key", type=TEXT, required=False)
@json_option
@click.pass_context
def get(ctx: click.Context, section: str | None, key: str | None, as_json: bool) -> None:
    """Print the core memory, one SECTION of it, or the value of one KEY."""
    with open_store(ctx) as store:
        sections: dict[str, dict[str, str]] = msgspec.structs.asdict(store.core_memory())
    if section is not None and key is not None:
        value = sections[section].get(key)
        if value is None:
            raise _unknown(section, key)
        print_json({"section": section, "key": key, "value": value}) if as_json else click.echo(
            printable(value)
        )
        return
    shown = {name: values for name, values in sections.items() if section in (None, name)}
    if as_json:
        print_json(shown)
        return
    for name, values in shown.items():
        for each, value in values.items():
            click.echo(printable(f"{name}  {each}: {value}"))


@core.command("set")
@click.argument("section", type=_SECTIONS)
@click.argument("key", type=TEXT)
@click.argument("value", type=TEXT)
@json_option
@click.pass_context
def set_(ctx: click.Context, section: Any, key: str, value: str, as_json: bool) -> None:  # noqa: ANN401, ARG001
    """Set a KEY of a SECTION (user or agent) to VALUE."""
    with open_store(ctx) as store:
        print_json(store.set_core_memory(section, key, value))


@core.command()
@click.argument("section", type=_SECTIONS)
@click.argument("key", type=TEXT)
@json_option
@click.pass_context
def delete(ctx: click.Context, section: Any, key: str, as_json: bool) -> None:  # noqa: ANN401, ARG001
    """Remove a KEY of a SECTION (user or agent)."""
    with open_store(ctx) as store:
        position = store.delete_core_memory(section, key)
    if position is None:
        raise _unknown(section, key)
    print_json(position)


def _unknown(section: str, key: str) -> NotFound:
    return NotFound(
        f"the core memory has no key {key!r} in {section}", hint="memlog core get", code="core_key_not_found"
    )
