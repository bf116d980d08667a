"""What callers ask for, checked where it is made: nothing wrong reaches SQL."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput


class Reads(NamedTuple):
    """Marks the type of a field that takes several forms: `read` makes one of them, or raises BadInput."""

    read: Callable[[Any], Any]


class Request(msgspec.Struct, frozen=True):
    """A request checks its fields against their annotations when it is made.

    Raises:
        BadInput: a value is not of its field's type, or outside its bounds; the message names both.
    """

    def __post_init__(self) -> None:
        """See the class."""
        for name, kind, read in _fields(type(self)):
            given = getattr(self, name)
            value = read(given) if read else _converted(name, given, kind)
            if value is not given:
                msgspec.structs.force_setattr(self, name, value)

    @classmethod
    def of(cls, given: "Self | Mapping[str, Any]") -> Self:
        """A request, or one made of its fields by name.

        Raises:
            BadInput: it has no such field; or as the class.
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise BadInput(f"{given!r} is no {cls.__name__}", hint=f"give its fields: {_names(cls)}")
        unknown = [name for name in given if name not in cls.__struct_fields__]
        if unknown:
            raise BadInput(f"{cls.__name__} has no field {unknown[0]!r}", hint=f"it has {_names(cls)}")
        return cls(**given)


def written_time(time: str | datetime) -> str:
    """A time as the log writes it. A datetime without an offset is UTC; a text may be a day alone.

    Raises:
        BadInput: it is no such time.
    """
    if isinstance(time, datetime):
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
    try:
        return timestamps.of_day_or_time(time)
    except (TypeError, ValueError) as error:
        hint = "a datetime, or a text such as 2026-02-24 or 2026-02-24T10:15:00Z"
        raise BadInput(f"{time!r} is no time", hint=hint) from error


def ids(given: Iterable[str]) -> frozenset[str]:
    """A set of ids.

    Raises:
        BadInput: it is one text, or no collection of texts.
    """
    found = [] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    if (not found and given) or not all(isinstance(each, str) for each in found):
        raise BadInput(f"{given!r} is no collection of ids", hint="give a list of texts")
    return frozenset(found)


Time = Annotated[str | datetime, Reads(written_time)]
"""A field that takes a time in any form; it holds the form in which the log writes times."""


@cache
def _fields(request: type[Request]) -> list[tuple[str, Any, Callable[[Any], Any] | None]]:
    hints = get_type_hints(request, include_extras=True)
    return [(name, hints[name], _reader(hints[name])) for name in request.__struct_fields__]


def _reader(hint: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401 - a type, or a union, or an annotated one
    read = _read_by(hint)
    if read is None or type(None) not in get_args(hint):
        return read
    return lambda value: None if value is None else read(value)


def _read_by(hint: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        found = next((mark.read for mark in marks if isinstance(mark, Reads)), None)
        return found or _read_by(kind)
    members = get_args(hint) if type(None) in get_args(hint) else ()
    return next((read for member in members if (read := _read_by(member)) is not None), None)


def _names(request: type[Request]) -> str:
    return ", ".join(request.__struct_fields__)


def _converted(name: str, value: Any, kind: Any) -> Any:  # noqa: ANN401
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{name} is {value!r}", hint=_what_is_right(str(error), kind)) from error


def _what_is_right(fault: str, kind: Any) -> str:  # noqa: ANN401
    choices = [repr(choice) for choice in _choices(kind)]
    return f"one of {', '.join(choices)}" if choices else fault[:1].lower() + fault[1:].replace("`", "")


def _choices(kind: Any) -> list[str]:  # noqa: ANN401
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for member in get_args(kind) for choice in _choices(member)]
