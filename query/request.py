"""Requests: an operation's arguments, validated on construction, so that nothing invalid reaches SQL.

A request is the single declaration of an operation's arguments: Python methods, command options, JSON schemas
and reference pages are generated from its fields (`memlog.eventlog.fields`).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, format_value_for_message
from memlog.eventlog.fields import Chat, ChatName, Checked, Field, Reads, list_fields, to_path
from memlog.eventlog.settings import Count as Count


class Request(Checked, frozen=True):
    """Base class of requests.

    Raises:
        BadInput: a value has the wrong type or is out of bounds; the message names the field and the value.
    """

    @classmethod
    def of(cls, given: "Self | Mapping[str, Any]", called: str = "it") -> Self:
        """Convert a mapping of fields to a request; a request is returned unchanged.

        called: its name in error messages.

        Raises:
            BadInput: a field is unknown; see also the class.
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise BadInput(
                f"{called} takes fields by name, not {format_value_for_message(given)}",
                hint=f"use these fields: {_join_names_of_remote_fields(cls)}",
            )
        # Only callers in this process give local fields, by keyword: a mapping must not have them.
        check_names_are_known(called, given, names_of_remote_fields(cls))
        try:
            return cls(**given)
        except TypeError as error:
            raise BadInput(
                f"{called}: {error}", hint=f"it accepts {_join_names_of_remote_fields(cls)}"
            ) from error


def check_names_are_known(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Reject names that `owner` does not have.

    Raises:
        BadInput: a name is unknown; the hint lists the known ones.
    """
    known = [*known]
    for name in given:
        if name not in known:
            raise BadInput(
                f"{owner} does not accept {name!r}",
                hint=f"it accepts {', '.join(known) or 'nothing'}",
            )


def to_log_time(time: str | datetime) -> str:
    """Convert `time` to a log timestamp.

    A datetime without an offset is UTC; a string may be a day or words such as "last week", in the system's
    time zone.

    Raises:
        BadInput: not a time.
    """
    return _convert_to_timestamp(time, is_end=False)


def to_log_end(time: str | datetime) -> str:
    """Convert an exclusive end to a log timestamp; for a day or named period, that is the moment it ends.

    Raises:
        BadInput: not a time.
    """
    return _convert_to_timestamp(time, is_end=True)


def _convert_to_timestamp(time: str | datetime, *, is_end: bool) -> str:
    try:
        text = timestamps.format_datetime(time) if isinstance(time, datetime) else time
        return timestamps.parse_day_or_time(text, is_end=is_end)
    except (TypeError, ValueError) as error:
        words = parse_time_in_words(time, None, is_end=is_end) if isinstance(time, str) else None
        if words is not None:
            return words
        hint = "use a datetime or a string, for example 2026-02-24, 2026-02-24T10:15:00Z or yesterday"
        raise BadInput(f"invalid timestamp: {format_value_for_message(time)}", hint=hint) from error


def parse_time_in_words(text: str, zone: tzinfo | None, *, is_end: bool) -> str | None:
    """Return the start or, with `is_end`, the end of a time in words such as "last week"; None if not a time.

    zone: the time zone of days; None for the system's.
    """
    # Imported here: few times are words.
    from memlog.query.time_words import parse_time

    found = parse_time(text, zone)
    if found is None:
        return None
    return found.until if is_end else found.since


def to_log_day(day: str | datetime) -> str:
    """Convert `day` to the log's format, 2026-02-24.

    Raises:
        BadInput: not a calendar day.
    """
    try:
        return timestamps.check_day(day if isinstance(day, str) else day.isoformat()[: len("2026-02-24")])
    except (AttributeError, ValueError) as error:
        raise BadInput(str(error), hint="use a date, for example 2026-02-24") from error


def to_id_set(given: Iterable[str]) -> frozenset[str]:
    """Convert a collection of ids to a set.

    Raises:
        BadInput: not a collection of strings, or a single string.
    """
    found = [] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    if (not found and given) or not all(isinstance(each, str) for each in found):
        raise BadInput(
            f"not a collection of ids: {format_value_for_message(given)}", hint="pass a list of strings"
        )
    return frozenset(found)


def unpack_single_list(values: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Return the positional arguments, or the members of the only one if that is a list or tuple."""
    return values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values


ChatField = Annotated[ChatName, Reads(Chat.of, "chat"), msgspec.Meta(title="CHANNEL:CHAT_ID")]
"""A conversation in any form; the field holds a `Chat`."""

Time = Annotated[str | datetime, Reads(to_log_time, "time")]
"""A time in any form; the field holds it in the form of the log."""

End = Annotated[str | datetime, Reads(to_log_end, "end")]
"""The end of a period in any form; a day is included. The field holds the first moment after it."""

Day = Annotated[str | datetime, Reads(to_log_day, "day")]
"""A calendar day; the field holds a text such as 2026-02-24."""

PathField = Annotated[str | Path, Reads(to_path, "path")]
"""A path; the field holds a `Path`."""

Ids = Annotated[Iterable[str], Reads(to_id_set, "ids", wire=list[str]), msgspec.Meta(title="ID")]
"""Ids in any collection; the field holds a frozenset."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""


Synced = Annotated[
    bool,
    (
        "First catch up with the log: wait at most 250 ms for another projector, and embed at most 16 new"
        " passages. The answer names what is missing."
    ),
]
"""Whether a read first catches up with the log."""


class OfText(Request, frozen=True):
    """A request that takes a text."""

    text: Annotated[str, "The text."]


def fields_from_texts(request: type[Request], texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Convert fields given as strings, for example in a URL, to a request's types.

    A list has one string per value. Strings that can't be converted are kept, for the request to report.

    Raises:
        BadInput: a string is empty, or a single value is given more than once.
    """
    if empty := [name for name, values in texts.items() if "" in values]:
        raise BadInput(f"{empty[0]} must not be empty", hint="omit it or set a value")
    fields = {field.name: field for field in list_fields(request) if not field.struct}
    if twice := [
        each for each in texts if len(texts[each]) > 1 and each in fields and not fields[each].is_list
    ]:
        raise BadInput(f"{twice[0]} was given more than once", hint="use only one value")
    given: dict[str, Any] = {}
    for name, values in texts.items():
        read: Sequence[Any] = values
        if name in fields:
            with suppress(msgspec.ValidationError):
                converted = [msgspec.convert(value, fields[name].member, strict=False) for value in values]
                # msgspec converts the text "null" to None, which would ask for everything.
                read = [
                    value if made is None else made for value, made in zip(values, converted, strict=True)
                ]
        is_list = (name in fields and fields[name].is_list) or len(read) != 1
        given[name] = read if is_list else read[0]
    return given


def json_schema_of_request(request: type[Request]) -> dict[str, Any]:
    """Return the JSON schema (https://json-schema.org/draft/2020-12) of a request, without local fields."""
    fields = [field for field in list_fields(request) if not field.is_local]
    return {
        "type": "object",
        "description": read_description_of_request(request),
        "properties": {field.name: _schema_of_field(field) for field in fields},
        "required": [field.name for field in fields if field.default is msgspec.NODEFAULT],
        "additionalProperties": False,
    }


def read_description_of_request(request: type[Request]) -> str:
    """Return a request's docstring without its `Raises` section."""
    # inspect.cleandoc would import inspect.
    text = (request.__doc__ or "").partition("Raises:")[0]
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _schema_of_field(field: Field) -> dict[str, Any]:
    schema = json_schema_of_request(field.struct) if field.struct else msgspec.json.schema(field.wire)
    value = schema["items"] if field.is_list else schema
    limits = {"enum": [*field.choices] or None, "minimum": field.least, "maximum": field.most}
    value |= {name: limit for name, limit in limits.items() if limit is not None}
    schema |= {"description": field.description} if field.description else {}
    if field.default not in (None, msgspec.NODEFAULT) and not field.struct:
        schema["default"] = msgspec.to_builtins(field.default, order="deterministic")
    return schema


def names_of_remote_fields(request: type[Request]) -> list[str]:
    """Return the names of the fields that remote callers may set."""
    return [field.name for field in list_fields(request) if not field.is_local]


def _join_names_of_remote_fields(request: type[Request]) -> str:
    return ", ".join(names_of_remote_fields(request))
