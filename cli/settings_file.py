"""memlog.toml: its reading, and the one that `memlog init` writes."""

import tomllib
from pathlib import Path
from typing import Any

import click
import msgspec

from memlog.cli.settings import BY_NAME, SETTINGS, Setting, nearest
from memlog.eventlog.errors import BadInput
from memlog.eventlog.streams import shown

_HEAD = """\
# Settings of this store: https://toml.io, one `name = value` a line.
# An option goes before an environment variable, that before this file, this before the default.
# A line that begins with # does nothing; each setting stands here with its default.
"""


def read(path: Path) -> dict[str, Any]:
    """The settings of a file by name. A folder that it names is taken from the file's own; "" is not set.

    Raises:
        BadInput: it is no TOML, has a key that is no setting, or a value that cannot be used.
    """
    store, where = path.parent, shown(path)
    return {
        name: store / value if isinstance(value, Path) else value
        for name, value in ((name, _value(name, text, where)) for name, text in _parsed(path, where).items())
        if value is not None
    }


def text_with_defaults() -> str:
    """A file in which every setting is commented out."""
    return "\n".join([_HEAD, *(_commented(setting) for setting in SETTINGS if setting.in_file)])


def _parsed(path: Path, where: str) -> dict[str, Any]:
    if not path.is_file():
        raise BadInput(f"{where} is no file", hint="memlog.toml holds settings, one `name = value` a line")
    data = path.read_bytes()
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{where}: not UTF-8 (at line {line})", hint="save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: {error}", hint="https://toml.io: one `name = value` a line") from error


def _value(name: str, given: object, where: str) -> Any:  # noqa: ANN401 - of the setting's type
    setting = BY_NAME.get(name)
    if setting is None:
        raise BadInput(f"{where}: there is no setting {name!r}", hint=f"is {nearest(name)} meant?")
    if not setting.in_file:
        raise BadInput(
            f"{where}: {name!r} cannot stand here, since this file is found through it",
            hint=f"set {setting.variable}, or give the option --{name}",
        )
    if not _fits(setting, given):
        raise BadInput(f"{where}: {name}: {given!r} is not {_kind(setting)}", hint=setting.hint)
    return setting.read(given, f"{where}: {name}") if given != "" else None


def _fits(setting: Setting, given: object) -> bool:
    """Whether TOML's type is the setting's: `"10"` is no number there, and `true` no 1."""
    if setting.type is click.BOOL:
        return type(given) is bool
    if isinstance(setting.type, click.IntRange):
        return type(given) is int
    if isinstance(setting.type, click.FloatRange):
        return type(given) in (int, float)
    return isinstance(given, str)


def _kind(setting: Setting) -> str:
    if setting.type is click.BOOL:
        return "true or false"
    if isinstance(setting.type, click.IntRange):
        return "a whole number"
    return "a number" if isinstance(setting.type, click.FloatRange) else "text in quotes"


def _commented(setting: Setting) -> str:
    value = "" if setting.default is None else setting.default
    without = f" Without it, {setting.default_says}." if setting.default_says else ""
    assignment = f"# {setting.name} = {msgspec.json.encode(value).decode()}"
    return f"# {setting.meaning}{without} ({setting.unit})\n{assignment}\n"
