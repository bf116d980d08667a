"""Structs whose fields are checked against their annotations on construction."""

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin

import msgspec

from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.fields import Field, choices_of, fields_of

T = TypeVar("T")


class Checked(msgspec.Struct, frozen=True):
    """Base class that validates its fields against their annotations on construction.

    Raises:
        BadInput: a value has the wrong type or is out of bounds; the message names the field and the value.
    """

    def __post_init__(self) -> None:
        """Validate and convert the fields."""
        for name, read in _field_readers(type(self)):
            given = getattr(self, name)
            value = read_argument(name, read, _to_plain_texts(name, given))
            if value is not given:
                msgspec.structs.force_setattr(self, name, value)


def read_argument(name: str, read: Callable[[Any], T], given: Any) -> T:  # noqa: ANN401
    """Return `read(given)`, naming the argument in any error.

    Raises:
        BadInput: raised by `read`, with the argument's name in front.
    """
    try:
        return read(given)
    except BadInput as error:
        if error.message.startswith(f"{name} is "):
            raise
        raise BadInput(f"{name}: {error.message}", hint=error.hint, code=error.code) from error


def _to_plain_texts(name: str, value: Any) -> Any:  # noqa: ANN401
    """Convert a string, or the strings in a collection, to plain `str`.

    Raises:
        BadInput: a string cannot be encoded as UTF-8.
    """
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(_to_plain_text(name, each) for each in value)
    return _to_plain_text(name, value)


def _to_plain_text(name: str, value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, str) or (type(value) is str and value.isascii()):
        return value
    text = "".join((value,))  # not a subclass of `str`
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(
            f"{name} is {shown_value(text)}", hint="remove the lone half of a surrogate pair"
        ) from None
    return text


def to_path(given: str | Path) -> Path:
    """Convert `given` to a `Path`.

    Raises:
        BadInput: not a path, empty, impossible as a file name, or starting with `~`, which only shells
            expand.
    """
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise BadInput(f"not a path: {shown_value(given)}", hint="give a text or a pathlib.Path")
    if Path(given).parts[:1] == ("~",):
        raise BadInput(f"~ is not expanded: {shown_value(given)}", hint="pass Path(...).expanduser()")
    try:
        os.fsencode(given)
    except UnicodeEncodeError as error:
        raise BadInput(
            f"not a path: {shown_value(given)}", hint="give a name that the system can encode"
        ) from error
    return Path(given)


@cache
def _field_readers(struct: type[Checked]) -> list[tuple[str, Callable[[Any], Any]]]:
    """Return each field's name and the function that checks and converts its value."""
    fields = fields_of(struct)
    return [(field.name, reader_of(field)) for field in fields if not field.is_local] + [
        (field.name, partial(_check_callback if field.is_callback else _check_local, field))
        for field in fields
        if field.is_local
    ]


def reader_of(field: Field) -> Callable[[Any], Any]:
    """Return the function that checks and converts a value of a field."""
    if field.reads is not None:
        read = field.reads.read
        return (lambda value: None if value is None else read(value)) if field.is_optional else read
    has_bounds = not field.is_list and (field.least, field.most) != (None, None)
    kind = Annotated[field.kind, msgspec.Meta(ge=field.least, le=field.most)] if has_bounds else field.kind
    return partial(convert_value, field.name, hint=kind | None if field.is_optional else kind)


def _check_callback(field: Field, value: Any) -> Any:  # noqa: ANN401
    if not callable(value) and not (field.is_optional and value is None):
        raise BadInput(f"{field.name} is {shown_value(value)}", hint="give a function")
    return value


def _check_local(field: Field, value: Any) -> Any:  # noqa: ANN401
    kind = get_origin(field.kind) or field.kind
    if not isinstance(value, kind) and not (field.is_optional and value is None):
        raise BadInput(f"{field.name} is {shown_value(value)}", hint=f"give a {kind.__name__}")
    return value


def convert_value(name: str, value: Any, *, hint: Any) -> Any:  # noqa: ANN401
    """Return a value as the type `hint`.

    Raises:
        BadInput: it is not of the type; the message begins with `name`.
    """
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, RecursionError) as error:
        choices = ", ".join(map(repr, choices_of(hint)))
        fault = str(error)[:1].lower() + str(error)[1:].replace("`", "")
        why = f"one of {choices}" if choices else fault
        raise BadInput(f"{name} is {shown_value(value)}", hint=why) from None
