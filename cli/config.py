"""memlog config."""

from typing import Any

import click

from memlog.cli.output import json_option, print_json, printable
from memlog.cli.param_types import TEXT
from memlog.cli.settings import Settings
from memlog.cli.settings_schema import BY_NAME, SETTINGS, nearest
from memlog.eventlog.streams import shown


@click.command()
@click.argument("name", type=TEXT, required=False)
@json_option
@click.pass_context
def config(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Show every setting, its value, and where that comes from; or the value of the setting NAME.

    An option goes before an environment variable, that before memlog.toml in the store's folder, this
    before the default.
    """
    settings = ctx.ensure_object(Settings)
    if name is not None:
        _print_one(_described(settings, _known(name)), as_json=as_json)
        return
    found = [_described(settings, setting.name) for setting in SETTINGS]
    if as_json:
        print_json({"settings": found})
        return
    for each in found:
        value = "none" if each["value"] is None else _text(each["value"])
        click.echo(printable(f"{each['name']:14} {value}  ({each['origin']})"))


def _known(name: str) -> str:
    if name not in BY_NAME:
        raise click.BadParameter(
            f"there is no setting {name!r}: is {nearest(name)} meant?", param_hint="NAME"
        )
    return name


def _described(settings: Settings, name: str) -> dict[str, Any]:
    found = settings.find(name)
    value = found.value if isinstance(found.value, int | float | str | None) else shown(found.value)
    return {"name": name, "value": value, "origin": found.origin, "unit": BY_NAME[name].unit}


def _print_one(setting: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(setting)
    else:
        click.echo(printable("" if setting["value"] is None else _text(setting["value"])))


def _text(value: object) -> str:
    """A value as memlog.toml has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
