"""The types of event members, and structs whose fields are validated and described to adapters."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from memlog.eventlog.errors import BadInput, format_value_for_message

if TYPE_CHECKING:
    from contextvars import ContextVar

T = TypeVar("T")

MAX_TARGETS = 1000
"""The most targets of one redaction, so that its line stays below 1 MB."""

MAX_LEVELS = 100
"""The most levels in a document's path, because parsing and printing a tree of paths is recursive."""

Text = Annotated[str, msgspec.Meta(min_length=1)]

Id = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f]+\Z", max_length=512)]
"""An event's id, without control characters."""

Channel = Annotated[str, msgspec.Meta(pattern=r"\A[^:]+\Z")]
"""A channel's name, without `:`, since a chat's name is `<channel>:<chat_id>`."""

Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
"""The shared key of facts about one subject: `favorite_colors`."""

SourceId = Annotated[str, msgspec.Meta(pattern=r"\A[^/\x00-\x1f\x7f]+\Z", max_length=255)]
"""A source's name, without `/`, since a document's name is `<source_id>/<file>`."""

Day = Annotated[str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\d\Z")]
"""A date: 2026-02-24."""

Ids = Annotated[list[Text], msgspec.Meta(min_length=1)]

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A count small enough for SQLite to store."""

MOST_TIMES = 1_000_000
"""The bound on `Times`, so that SQLite can store the sum over all events."""

Times = Annotated[int, msgspec.Meta(ge=1, le=MOST_TIMES)]
"""The number of times something happened."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Role = Literal["user", "assistant", "system", "tool"]
MessageState = Literal["current", "superseded", "rewound"]
MemoryKind = Literal["fact", "preference", "insight"]
FactKind = Literal["ranked", "single"]
SourceKind = Literal["memory", "docs"]
ModelTask = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""The name of a language-model task, such as `merge`."""
AccessKind = Literal["read", "save", "import"]
"""Why an access counts: a memory was given to an agent, saved again unchanged, or used in another program."""
FailureKind = Literal["refused", "unusable", "failed", "late"]
Durability = Literal["fsync", "os"]
"""What an acknowledged event survives: a power cut (`fsync`), or just the end of the process (`os`)."""

# A string in a field's annotation is the field's description.

Form = Literal["category", "chat", "day", "ids", "path", "time"]
"""The meaning of a field's value, if its type does not show it."""

_LISTS = (list, tuple, frozenset, Sequence)


class Reads(msgspec.Struct, frozen=True):
    """Annotates the type of a field that accepts several forms.

    read: converts any of them to memlog's own form, or raises BadInput.
    form: what the field holds, for adapters. wire: its type in JSON. choices: all values, if limited.
    """

    read: Callable[[Any], Any]
    form: Form | None = None
    wire: Any = str
    choices: tuple[str, ...] = ()


class Local(msgspec.Struct, frozen=True):
    """Annotates a field that only a caller in the same process can set: a callback or another object."""

    is_callback: bool = True


class Help(msgspec.Struct, frozen=True):
    """Describes a setting: its meaning, its unit, and what applies if it is None or empty."""

    meaning: str
    unit: str
    without: str = ""


class Field(msgspec.Struct, frozen=True):
    """A field of a struct, as described to adapters.

    kind: its type without None, for Python callers.
    wire: its type in JSON. member: the JSON type of each item if the field is a list, otherwise `wire`.
    least, most: the bounds of each value. default: `msgspec.NODEFAULT` if the field is required.
    title: the value's placeholder in a usage line.
    key: its name in files. unit, without: see `Help`.
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
    key: str
    unit: str
    without: str

    @property
    def is_local(self) -> bool:
        """Whether only a caller in the same process can set the field."""
        return self.local is not None

    @property
    def is_callback(self) -> bool:
        """Whether the field holds a callback."""
        return self.local is not None and self.local.is_callback

    @property
    def struct(self) -> Any:  # noqa: ANN401 - a request, for most
        """The struct that the field holds; None for a plain value."""
        return self.wire if isinstance(self.wire, type) and issubclass(self.wire, msgspec.Struct) else None

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values of the field or of its list items; empty if any value is allowed."""
        return self.reads.choices if self.reads and self.reads.choices else list_choices_of_type(self.wire)

    @property
    def is_list(self) -> bool:
        """Whether the field holds a list."""
        return get_origin(self.wire) in _LISTS


@cache
def list_fields(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of `struct` in order, as described to adapters."""
    hints: dict[str, Any] = {}
    for base in reversed(struct.__mro__):
        hints |= vars(base).get("__annotations__", {})
    if any(isinstance(hint, str) for hint in hints.values()):
        hints = get_type_hints(struct, include_extras=True)  # slow, since it rebuilds each type
    return tuple(_describe_field(each, hints[each.name]) for each in msgspec.structs.fields(struct))


def list_choices_of_type(hint: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the values of a Literal type or of its list items; empty for other types."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(choice for member in get_args(hint) for choice in list_choices_of_type(member))


def _describe_field(field: msgspec.structs.FieldInfo, hint: Any) -> Field:  # noqa: ANN401 - any type
    kind, marks, is_optional = _unwrap_type(hint)
    reads = next((mark for mark in marks if isinstance(mark, Reads)), None)
    wire = reads.wire if reads else kind
    member, of_member, _ = (
        _unwrap_type(get_args(wire)[0]) if get_origin(wire) in _LISTS else (wire, [], False)
    )
    metas = [mark for mark in (*marks, *of_member) if isinstance(mark, msgspec.Meta)]
    help = next((mark for mark in marks if isinstance(mark, Help)), Help("", ""))
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return Field(
        name=field.name,
        kind=kind,
        wire=wire,
        member=member,
        description=_find_first_not_none(mark for mark in marks if isinstance(mark, str)) or help.meaning,
        title=_find_first_not_none(meta.title for meta in metas),
        default=default,
        least=_find_first_not_none(meta.ge for meta in metas),
        most=_find_first_not_none(meta.le for meta in metas),
        reads=reads,
        is_optional=is_optional,
        local=next((mark for mark in marks if isinstance(mark, Local)), None),
        key=field.encode_name,
        unit=help.unit,
        without=help.without,
    )


def _unwrap_type(hint: Any) -> tuple[Any, list[Any], bool]:  # noqa: ANN401
    """Return a bare type, its annotations (outermost first), and whether it allows None."""
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


def _find_first_not_none(values: Iterable[Any]) -> Any:  # noqa: ANN401
    return next((value for value in values if value is not None), None)


class Checked(msgspec.Struct, frozen=True):
    """Base class that validates its fields against their annotations on construction.

    Raises:
        BadInput: a value has the wrong type or is out of bounds; the message names the field and the value.
    """

    def __post_init__(self) -> None:
        """Validate and convert the fields."""
        for name, read in _make_field_readers(type(self)):
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
        if error.message.startswith((f"{name} is ", f"{name} must ")):
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
            f"{name} contains an unpaired surrogate: {format_value_for_message(text)}", hint="remove it"
        ) from None
    return text


def to_path(given: str | Path) -> Path:
    """Convert `given` to a `Path`.

    Raises:
        BadInput: not a path, empty, impossible as a file name, or starting with `~`, which only shells
            expand.
    """
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise BadInput(f"not a path: {format_value_for_message(given)}", hint="pass a str or a pathlib.Path")
    if Path(given).parts[:1] == ("~",):
        raise BadInput(
            f"~ is not expanded: {format_value_for_message(given)}", hint="pass Path(...).expanduser()"
        )
    try:
        os.fsencode(given)
    except UnicodeEncodeError as error:
        raise BadInput(
            f"not a path: {format_value_for_message(given)}",
            hint="use a name that the file system can encode",
        ) from error
    return Path(given)


@cache
def _make_field_readers(struct: type[Checked]) -> list[tuple[str, Callable[[Any], Any]]]:
    """Return each field's name and the function that checks and converts its value."""
    fields = list_fields(struct)
    return [(field.name, find_field_reader(field)) for field in fields if not field.is_local] + [
        (field.name, partial(_check_callback if field.is_callback else _check_local, field))
        for field in fields
        if field.is_local
    ]


def find_field_reader(field: Field) -> Callable[[Any], Any]:
    """Return the function that checks and converts a value of a field."""
    if field.reads is not None:
        read = field.reads.read
        return (lambda value: None if value is None else read(value)) if field.is_optional else read
    has_bounds = not field.is_list and (field.least, field.most) != (None, None)
    kind = Annotated[field.kind, msgspec.Meta(ge=field.least, le=field.most)] if has_bounds else field.kind
    return partial(convert_value, field.name, hint=kind | None if field.is_optional else kind)


def _check_callback(field: Field, value: Any) -> Any:  # noqa: ANN401
    if not callable(value) and not (field.is_optional and value is None):
        raise BadInput(f"{field.name} is {format_value_for_message(value)}", hint="pass a function")
    return value


def _check_local(field: Field, value: Any) -> Any:  # noqa: ANN401
    kind = get_origin(field.kind) or field.kind
    if not isinstance(value, kind) and not (field.is_optional and value is None):
        raise BadInput(f"{field.name} is {format_value_for_message(value)}", hint=f"pass a {kind.__name__}")
    return value


def convert_value(name: str, value: Any, *, hint: Any) -> Any:  # noqa: ANN401
    """Convert a value to the type `hint`.

    Raises:
        BadInput: the value does not fit the type; the message begins with `name`.
    """
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, RecursionError) as error:
        choices = ", ".join(map(repr, list_choices_of_type(hint)))
        fault = str(error)[:1].lower() + str(error)[1:].replace("`", "")
        why = f"use one of: {choices}" if choices else fault
        raise BadInput(f"{name} is {format_value_for_message(value)}", hint=why) from None


class GivenEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a context.

    id: a memory's memory_id, otherwise the event's id. stream: the event's stream; None for a memory.
    score: the hit's score, from 0 to 1; None if the entry did not come from a search.
    is_best: whether the entry is one of the two best hits for the message.
    """

    part: Text
    id: Text
    stream: Text | None = None
    score: float | None = None
    is_best: bool = False


ChatName = tuple[str, str | int] | str
"""A chat in arguments: (channel, chat_id), a `Chat`, or its text form `telegram:7`."""

_MOST_BITS = 64


def chat_id_to_text(chat_id: Any) -> Any:  # noqa: ANN401 - what a caller gives
    """Convert an integer id, as messengers use, to text; return any other value unchanged."""
    is_integer = isinstance(chat_id, int) and not isinstance(chat_id, bool)
    return str(chat_id) if is_integer and chat_id.bit_length() <= _MOST_BITS else chat_id


@cache
def other_chat_names() -> "ContextVar[Callable[[str], tuple[str, str] | None]]":
    """Return the context variable for a function that finds a chat by another name, such as its folder."""
    from contextvars import ContextVar  # most appends name their chats

    return ContextVar("other_chat_names", default=lambda _: None)


class Chat(tuple[str, str]):
    """A chat as a (channel, chat_id) pair; its text is, for example, `telegram:7`.

    Raises:
        BadInput: channel or chat_id is empty, channel is not text, or chat_id is neither text nor an integer.
    """

    __slots__ = ()

    def __new__(cls, channel: str, chat_id: str | int) -> Self:
        """Return the chat with this channel and id. Raises BadInput; see the class."""
        named = chat_id_to_text(chat_id)
        if isinstance(channel, str) and isinstance(named, str) and channel and named:
            return super().__new__(cls, (channel, named))
        raise BadInput(
            f"channel is {format_value_for_message(channel)}, chat_id is {format_value_for_message(chat_id)}",
            hint="pass non-empty strings; chat_id may also be an integer: Chat('telegram', 7)",
        )

    def __getnewargs__(self) -> tuple[str, str]:
        return self.channel, self.chat_id

    @property
    def channel(self) -> str:
        """The channel's name, such as `telegram`."""
        return self[0]

    @property
    def chat_id(self) -> str:
        """The conversation's id within its channel."""
        return self[1]

    def __str__(self) -> str:
        return ":".join(self)

    def __repr__(self) -> str:
        return f"Chat({self.channel!r}, {self.chat_id!r})"

    @classmethod
    def of(cls, name: ChatName) -> Self:
        """Return the chat named by a pair or by text such as `telegram:7`. Raises BadInput.

        During an operation, the name of the chat's folder in the store is also accepted: `telegram_7`.
        """
        if isinstance(name, cls):
            return name
        match name.split(":", 1) if isinstance(name, str) else name:
            case (str(channel), str() | int() as chat_id) if (
                channel and chat_id != "" and type(chat_id) is not bool
            ):
                return cls(channel, chat_id)
        if isinstance(name, str) and (found := other_chat_names().get()(name)) is not None:
            return cls(*found)
        raise BadInput(
            f"chat is {format_value_for_message(name)}",
            hint="use the form telegram:7, or pass (channel, chat_id)",
        )
