"""Generates command-line options from the fields of requests and events (`memlog.eventlog.fields`)."""

from typing import Any

import click
import msgspec

from memlog.cli.options.param_types import click_type_of_field
from memlog.eventlog.fields import Field


def option_for_field(field: Field, declaration: str | None, **changes: Any) -> click.Option:  # noqa: ANN401
    """Return the option for a field; `changes` override arguments of `click.Option`."""
    is_flag = field.wire is bool
    shows = field.default not in (None, msgspec.NODEFAULT, "", 0, 0.0, frozenset()) or (
        is_flag and field.default
    )
    settled: dict[str, Any] = {
        # With False, click rejects values that begin with a dash.
        "is_flag": is_flag or None,
        "type": None if is_flag else click_type_of_field(field),
        "multiple": field.is_list,
        "required": field.default is msgspec.NODEFAULT,
        "default": None if field.is_list else field.default,
        "show_default": shows and not field.is_list,
        "metavar": None if is_flag else field.title,
        "help": field.description,
    }
    if field.default is msgspec.NODEFAULT:
        # click would take None for a value.
        del settled["default"]
    return click.Option([declaration or option_name_of_field(field), field.name], **(settled | changes))


def option_name_of_field(field: Field) -> str:
    """Return the option name for a field: `--exclude`, `--tag` for `tags`, `--sync/--no-sync`, `--id`."""
    name = field.name.removesuffix("s") if field.is_list else field.name.removeprefix("is_")
    name = "id" if name == "event_id" else name.replace("_", "-")
    return f"--{name}/--no-{name}" if field.wire is bool and field.default is True else f"--{name}"
