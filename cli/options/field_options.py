"""Generates command-line options from the fields of requests and events (`memlog.eventlog.fields`)."""

from typing import Any, get_origin

import click
import msgspec

from memlog.cli.options.param_types import (
    CHAT,
    DAY,
    END,
    JSON_OBJECT,
    PATH,
    TEXT,
    TIME,
    CategoryType,
    Number,
    WholeNumber,
)
from memlog.eventlog.fields import Field

_FORMS: dict[str, click.ParamType[Any]] = {
    "chat": CHAT,
    "day": DAY,
    "end": END,
    "path": PATH,
    "time": TIME,
}


def option_of(field: Field, declaration: str | None, **changes: Any) -> click.Option:  # noqa: ANN401
    """Return the option for a field; `changes` override arguments of `click.Option`."""
    is_flag = field.wire is bool
    shows = field.default not in (None, msgspec.NODEFAULT, "", 0, 0.0, frozenset()) or (
        is_flag and field.default
    )
    settled: dict[str, Any] = {
        # With False, click rejects values that begin with a dash.
        "is_flag": is_flag or None,
        "type": None if is_flag else type_of(field),
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
    return click.Option([declaration or declaration_of(field), field.name], **(settled | changes))


def declaration_of(field: Field) -> str:
    """Return the option name for a field: `--exclude`, `--tag` for `tags`, `--sync/--no-sync`, `--id`."""
    name = field.name.removesuffix("s") if field.is_list else field.name.removeprefix("is_")
    name = "id" if name == "event_id" else name.replace("_", "-")
    return f"--{name}/--no-{name}" if field.wire is bool and field.default is True else f"--{name}"


def type_of(field: Field) -> click.ParamType[Any]:
    """Return the click type for a field's value, or for the items of its list."""
    if field.choices:
        is_category = field.reads is not None and field.reads.form == "category"
        return CategoryType([*field.choices]) if is_category else click.Choice(field.choices)
    if field.reads is not None and field.reads.form in _FORMS:
        return _FORMS[field.reads.form]
    if get_origin(field.member) is dict:
        return JSON_OBJECT
    if field.member is int:
        return WholeNumber(_int_or_none(field.least), _int_or_none(field.most))
    if field.member is float:
        return Number(field.least, field.most)
    return TEXT


def _int_or_none(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
