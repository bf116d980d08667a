"""Reads rows: the conditions of a query, and the structs of its answer."""

import json
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar, get_origin

import msgspec

from memlog.eventlog.struct_fields import fields_of
from memlog.query.event_index import LinePosition

Sql = tuple[str, list[Any]]
"""A condition and its values."""

POSITION = "e.stream, e.segment, e.offset, e.line"
"""The columns of `events e` that make a `LinePosition`."""

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def all_of(*conditions: tuple[str, Any]) -> Sql:
    """The conditions whose value is not None, joined by AND. A list or tuple holds several values."""
    given = [(sql, value) for sql, value in conditions if value is not None]
    values = (value if isinstance(value, list | tuple) else [value] for _, value in given)
    return " AND ".join(sql for sql, _ in given) or "1", [*chain.from_iterable(values)]


def record(struct: type[_Struct], row: Sequence[Any], **members: Any) -> _Struct:  # noqa: ANN401
    """The struct of a row: a column for each field that `members` lacks, in their order.

    Lists and dicts are JSON. A field `position` takes the last four columns, `POSITION`.
    """
    names, of_json = _fields(struct)
    if "position" in names:
        members["position"] = LinePosition(*row[-4:])
        row = row[:-4]
    stored = dict(zip((name for name in names if name not in members), row, strict=False))
    for name in of_json & stored.keys():
        stored[name] = None if stored[name] is None else json.loads(stored[name])
    return struct(**stored, **members)


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of a struct's fields, and which of them hold lists and dicts."""
    of_json = frozenset(field.name for field in fields_of(struct) if get_origin(field.kind) in (list, dict))
    return struct.__struct_fields__, of_json
