"""Fields of structs: what requests and events are made of, as adapters need it.

A text in the annotation of a field is its description.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

Form = Literal["category", "chat", "day", "ids", "path", "time"]
"""What a field holds whose type does not tell."""


_LISTS = (list, tuple, frozenset, Sequence)


class Reads(msgspec.Struct, frozen=True):
    """Marks the type of a field that takes several forms.

    read: turns any of them into the form that memlog works with, or raises BadInput.
    form: what the field holds, for adapters.
    wire: its type in JSON.
    choices: all values, where they are known.
    """

    read: Callable[[Any], Any]
    form: Form | None = None
    wire: Any = str
    choices: tuple[str, ...] = ()


class Local(msgspec.Struct, frozen=True):
    """Marks a field that only a caller in the same process can give: a callback, or another object."""

    is_callback: bool = True


class Field(msgspec.Struct, frozen=True):
    """A field of a struct, for adapters.

    kind: its type without None, as Python callers give it.
    wire: its type in JSON. member: that, or of a list the type of each value.
    least, most: bounds of each value.
    default: `msgspec.NODEFAULT` where it must be given.
    title: what stands for the value in a usage line.
    """

    name: str
    kind: Any
    wire: Any
    member: Any
    description: str
    title: str | None
    default: Any
    least: float | None
    most: float | None
    reads: Reads | None
    is_optional: bool
    local: Local | None

    @property
    def is_local(self) -> bool:
        """Whether only a caller in the same process can give it."""
        return self.local is not None

    @property
    def is_callback(self) -> bool:
        """Whether it holds a function of the caller."""
        return self.local is not None and self.local.is_callback

    @property
    def struct(self) -> Any:  # noqa: ANN401 - a request, for most
        """The struct that the field holds; None where it holds a plain value."""
        return self.wire if isinstance(self.wire, type) and issubclass(self.wire, msgspec.Struct) else None

    @property
    def choices(self) -> tuple[str, ...]:
        """All values that the field, or each member of its list, may have; empty where any will do."""
        return self.reads.choices if self.reads and self.reads.choices else choices_of(self.wire)

    @property
    def is_list(self) -> bool:
        """Whether the field holds several values."""
        return get_origin(self.wire) in _LISTS


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The fields of a struct, in their order, as adapters need them."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(_described(each, hints[each.name]) for each in msgspec.structs.fields(struct))


def choices_of(hint: Any) -> tuple[str, ...]:  # noqa: ANN401
    """All values of a type, or of the members of its list; empty where they are not listed."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(choice for member in get_args(hint) for choice in choices_of(member))


def _described(field: msgspec.structs.FieldInfo, hint: Any) -> Field:  # noqa: ANN401 - any type
    kind, marks, is_optional = _taken_apart(hint)
    reads = next((mark for mark in marks if isinstance(mark, Reads)), None)
    wire = reads.wire if reads else kind
    member, of_member, _ = (
        _taken_apart(get_args(wire)[0]) if get_origin(wire) in _LISTS else (wire, [], False)
    )
    metas = [mark for mark in (*marks, *of_member) if isinstance(mark, msgspec.Meta)]
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return Field(
        name=field.name,
        kind=kind,
        wire=wire,
        member=member,
        description=_first(mark for mark in marks if isinstance(mark, str)) or "",
        title=_first(meta.title for meta in metas),
        default=default,
        least=_first(meta.ge for meta in metas),
        most=_first(meta.le for meta in metas),
        reads=reads,
        is_optional=is_optional,
        local=next((mark for mark in marks if isinstance(mark, Local)), None),
    )


def _taken_apart(hint: Any) -> tuple[Any, list[Any], bool]:  # noqa: ANN401
    """A type without None and annotations, the annotations, the outer ones first, and whether None is one."""
    marks: list[Any] = []
    is_optional = False
    while True:
        if get_origin(hint) is Annotated:
            marks += get_args(hint)[1:]
            hint = get_args(hint)[0]
            continue
        members = [each for each in get_args(hint) if each is not type(None)]
        if get_origin(hint) not in (Union, UnionType) or len(members) == len(get_args(hint)):
            return hint, marks, is_optional
        is_optional = True
        hint = Union[tuple(members)]  # noqa: UP007 - of a list


def _first(values: Iterable[Any]) -> Any:  # noqa: ANN401
    return next((value for value in values if value is not None), None)
