"""Operations: methods whose signatures declare commands, HTTP routes, MCP tools and reference pages."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import MethodType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from memlog.eventlog.errors import BadInput, ErrorCode, NotFound, convert_system_error
from memlog.eventlog.events import Event
from memlog.eventlog.fields import list_fields, other_chat_names
from memlog.eventlog.log.streams import chat_of_folder
from memlog.eventlog.positions import Position
from memlog.query.request import Request, check_names_are_known, unpack_single_list

if TYPE_CHECKING:
    from memlog.service.engine.engine import Engine

P = ParamSpec("P")
S = TypeVar("S")
Q = TypeVar("Q", bound=Request)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Effect = Literal["read", "append", "erase", "maintain"]
"""The effect of an operation. read: it appends no event; the read model may catch up. append: it appends
events.
erase: it makes events or their bytes disappear. maintain: it changes files that can be restored from the
log."""


class _Traits(TypedDict, total=False):
    check: Callable[[Any], None]
    missing: ErrorCode
    is_endless: bool
    reads_paths: bool
    writes_paths: bool
    for_agents: bool
    is_destructive: bool


class _Doc:
    """The docstring of an operation, composed when it is first read."""

    def __get__(self, operation: "Operation | None", _: type) -> str:
        return "A method of `operation`." if operation is None else operation.documentation()


@contextmanager
def naming_chats_by_folders_of_store(owner: object) -> Iterator[None]:
    """Let fields name chats by their folders in the owner's store, if it has a store."""
    path = getattr(getattr(owner, "_engine", owner), "path", None)
    token = other_chat_names().set(
        partial(chat_of_folder, path) if isinstance(path, Path) else lambda _: None
    )
    try:
        yield
    finally:
        other_chat_names().reset(token)


class Operation:
    """A method that can be called with its arguments or with one request that has them as fields.

    Each parameter is `Annotated` with its description. Type checkers see the plain method. See `operation`.
    """

    __doc__ = _Doc()

    def __init__(
        self,
        method: Callable[..., Any],
        effect: Effect,
        request: type[Request] | None = None,
        **traits: Unpack[_Traits],
    ) -> None:
        self._method, self._given, self._check = method, request, traits.get("check")
        self.effect = effect
        self.missing = traits.get("missing")
        self.is_endless = traits.get("is_endless", False)
        self.reads_paths = traits.get("reads_paths", False)
        self.writes_paths = traits.get("writes_paths", False)
        self.for_agents = traits.get("for_agents", False)
        self.is_destructive = traits.get("is_destructive", False)
        self.__name__ = method.__name__
        self.__qualname__ = method.__qualname__
        self.__module__ = method.__module__
        self.__wrapped__ = method

    def __get__(self, owner: object, kind: type) -> Any:  # noqa: ANN401 - itself, or a method
        """Return the operation itself, or bound to the object through which it is accessed."""
        return self if owner is None else MethodType(self, owner)

    def __call__(self, owner: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Check the arguments, and call the method with them.

        Raises:
            BadInput: an argument is unknown or missing, or its value is wrong. LogError: a file or folder
                cannot be read or written.
        """
        with naming_chats_by_folders_of_store(owner):
            request = self.build_request(args, kwargs)
        try:
            if self._given is not None:
                return self._method(owner, request)
            values = {name: getattr(request, name) for name in request.__struct_fields__}
            if self._variadic_name is None:
                return self._method(owner, **values)
            rest = values.pop(self._variadic_name)
            first = (values.pop(name) for name in self.arguments if name != self._variadic_name)
            return self._method(owner, *first, *rest, **values)
        except OSError as error:
            raise convert_system_error(error) from error

    @property
    def request(self) -> type[Request]:
        """The arguments as a struct, for options, JSON schemas, OpenAPI, MCP and pages."""
        # Made when it is needed, since most processes call few operations. If two threads make it, the first
        # one's is kept.
        made: type[Request] | None = vars(self).get("_request")
        return made or vars(self).setdefault("_request", self._given or self._make_request())

    def _make_request(self) -> type[Request]:
        hints, fields, check = self._type_hints(include_extras=True), [], self._check
        for each in self._parameters:
            hint = hints[each.name]
            if each.kind is each.VAR_POSITIONAL:
                hint = Annotated[(Sequence[get_args(hint)[0]], *hint.__metadata__)]  # type: ignore[misc]
            fields.append(
                (each.name, hint) if each.default is each.empty else (each.name, hint, each.default)
            )

        def checked(request: Request) -> None:
            Request.__post_init__(request)
            if check is not None:
                check(request)

        namespace = {"__doc__": self._method.__doc__, "__post_init__": checked}
        made: Any = msgspec.defstruct(
            self.name, fields, bases=(Request,), namespace=namespace, frozen=True, kw_only=True
        )
        return cast("type[Request]", made)

    def build_request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        """Convert a call's arguments to a request.

        Raises:
            BadInput: an argument is unknown or missing, or its value is wrong.
        """
        if len(args) == 1 and not kwargs and isinstance(args[0], self.request):
            return args[0]
        named = [name for name in self.request.__struct_fields__ if name != self._variadic_name]
        check_names_are_known(f"{self.name}()", kwargs, named)
        first = [name for name in self.arguments if name != self._variadic_name]
        values: dict[str, Any] = dict(zip(first, args, strict=False))
        rest = args[len(values) :]
        if self._variadic_name is not None:
            values[self._variadic_name], rest = unpack_single_list(rest), ()
        if rest:
            wrong = f"takes {len(first)} positional arguments but {len(args)} were given"
            raise BadInput(f"{self.name}() {wrong}", hint=self._describe_call())
        if twice := values.keys() & kwargs.keys():
            raise BadInput(f"{self.name}() got {min(twice)} twice", hint=self._describe_call())
        try:
            return self.request(**(kwargs | values))
        except TypeError as error:
            raise BadInput(f"{self.name}(): {error}", hint=self._describe_call()) from None

    @property
    def name(self) -> str:
        """The name that adapters use, such as `facts.set`."""
        kind = f":{self.__qualname__.partition('.')[0]}"
        group = next(group for group, place in (PLACES | _BESIDE).items() if place.endswith(kind))
        return f"{group}.{self.__name__}".lstrip(".")

    @cached_property
    def arguments(self) -> Sequence[str]:
        """The parameters that may be passed by position. Commands take them as arguments, not as options."""
        return [each.name for each in self._parameters if each.kind is not each.KEYWORD_ONLY]

    @cached_property
    def _variadic_name(self) -> str | None:
        return next((each.name for each in self._parameters if each.kind is each.VAR_POSITIONAL), None)

    @cached_property
    def _parameters(self) -> Sequence[inspect.Parameter]:
        if self._given is not None:
            return [*inspect.signature(self._given).parameters.values()]
        return [*inspect.signature(self._method).parameters.values()][1:]

    def _describe_call(self) -> str:
        """Describe a call, such as `search(text)`, with the parameters that must be passed by name."""
        usage = f"{self.__name__}({', '.join(self.arguments)})"
        by_name = [each.name for each in self._parameters if each.name not in self.arguments]
        return f"{usage}, and by name: {', '.join(by_name)}" if by_name else usage

    @property
    def type_of_answer(self) -> Any:  # noqa: ANN401 - a type, or a union of types
        """The type of the answer, including None or False for something that is missing."""
        return self._type_hints()["return"]

    @property
    def types_if_found(self) -> tuple[Any, ...]:
        """The types of the answer, except None and False where they mean that something is missing."""
        if self.type_of_answer is None or self.type_of_answer is NoneType:
            return (NoneType,)
        kinds = (
            get_args(self.type_of_answer)
            if get_origin(self.type_of_answer) in (UnionType, Union)
            else (self.type_of_answer,)
        )
        return tuple(each for each in kinds if each not in (NoneType, Literal[False]))

    def _type_hints(self, *, include_extras: bool = False) -> dict[str, Any]:
        """Return the parameters' types, keyed by name, and the answer's type under `return`."""
        # A module that imports the type of an answer only for type checkers uses a public name of the
        # package.
        package = import_module("memlog")
        named = re.findall(r"\w+", str(self._method.__annotations__["return"]))
        public = {name: getattr(package, name) for name in named if name in package.__all__}
        return get_type_hints(self._method, localns=public, include_extras=include_extras)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the method, with plain types, for `inspect.signature`."""
        hints = get_type_hints(self._given) if self._given is not None else self._type_hints()
        owner = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [each.replace(annotation=hints[each.name]) for each in self._parameters]
        return inspect.Signature([owner, *parameters], return_annotation=self.type_of_answer)

    def documentation(self) -> str:
        """Return the full docstring: the operation's description, arguments and errors."""
        says, raises, errors = inspect.cleandoc(self.request.__doc__ or "").partition("Raises:")
        arguments = "".join(f"{each.name}: {each.description}\n" for each in list_fields(self.request))
        return f"{says.rstrip()}\n\n{arguments}\n{raises}{errors}".rstrip() + "\n"


@overload
def operation(effect: Effect, /, **traits: Unpack[_Traits]) -> Callable[[F], F]: ...
@overload
def operation(
    effect: Effect, /, request: Callable[P, Q], **traits: Unpack[_Traits]
) -> Callable[[Callable[[S, Q], T]], Callable[Concatenate[S, P], T]]: ...
def operation(effect: Effect, /, request: Any = None, **traits: Unpack[_Traits]) -> Any:
    """Return a decorator that turns a method into an operation.

    request: the query layer's class that the method takes instead of its own parameters.
    check: called with the request; raises BadInput for arguments that do not go together.
    missing: the code of the NotFound error that adapters make from the answer None, False or an empty list.
    is_endless: whether it may run until it is stopped.
    reads_paths, writes_paths: whether its parameters name files or folders of this machine that it reads, or
        files that it writes.
    for_agents: whether it is offered to agents as a tool.
    is_destructive: whether a tool replaces or archives existing data, which the log keeps.
    """
    return lambda method: Operation(method, effect, request, **traits)


class OperationGroup:
    """A group of related operations, such as `store.memories`."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._read = engine.read
        self._decide = engine.decide
        self._append = engine.append

    def _append_one(self, event: Event) -> Position:
        (position,) = self._append([event])
        return position


PLACES = {
    "": "store:Store",
    "conversations": "memory.conversations:Conversations",
    "memories": "memory.memories:Memories",
    "core": "memory.core:Core",
    "facts": "memory.facts:Facts",
    "daily": "memory.daily:DailyEvents",
    "documents": "documents.documents:Documents",
    "workspaces": "documents.documents:Workspaces",
    "extraction": "llm.extraction:Extractions",
    "jobs": "upkeep.jobs:Jobs",
    "exchange": "exchange.exchange:DataExchange",
    "erasure": "upkeep.erasure:Erasure",
    "maintenance": "upkeep.maintenance:Maintenance",
    "tools": "retrieval.tools:Tools",
}
"""The module in `memlog.service` and the class of each operation group, keyed by the store's attribute."""


_BESIDE = {"projects": "projects:Projects"}


def import_group_named(name: str) -> type[Any]:
    """Return the class of an operation group. The first call imports it."""
    module, _, kind = (PLACES | _BESIDE)[name].partition(":")
    found: type[Any] = getattr(import_module(f"memlog.service.{module}"), kind)
    return found


def operations_of_group(group: str) -> dict[str, Operation]:
    """Return a group's operations, keyed by method name."""
    return {
        name: each for name, each in vars(import_group_named(group)).items() if isinstance(each, Operation)
    }


def find_operation_named(name: str) -> Operation:
    """Return the operation with a name such as `facts.set`."""
    group, _, method = name.rpartition(".")
    found: Operation = vars(import_group_named(group))[method]
    return found


def bind_operation(store: object, name: str) -> Callable[[Request], Any]:
    """Return the operation with a name such as `facts.set`, bound to a store."""
    group, _, method = name.rpartition(".")
    found: Callable[[Request], Any] = getattr(getattr(store, group) if group else store, method)
    return found


def call_and_require_answer(operation: Callable[[Q], T], request: Q) -> Any:  # noqa: ANN401 - T without None and False
    """Call a bound operation, and return its answer.

    Raises:
        NotFound: the answer says that what the request names is missing.
    """
    declared: Operation = operation.__func__  # type: ignore[attr-defined]
    answer = operation(request)
    if declared.missing is not None and (answer is None or answer is False or answer == []):
        raise make_not_found_error(declared.missing, ".".join(_identifying_values(request)))
    return answer


def _identifying_values(request: Request) -> list[str]:
    """Return the values of a request's required fields or, if it has none, of all fields that are set."""
    fields = list_fields(type(request))
    named = [field for field in fields if field.default is msgspec.NODEFAULT] or fields
    return [str(value) for field in named if (value := getattr(request, field.name)) is not None]


NOUNS: dict[ErrorCode, tuple[str, str]] = {
    "core_key_not_found": ("core memory key", "store.core.get()"),
    "daily_event_not_found": ("daily event", "store.daily.list()"),
    "document_not_found": ("source or document", "store.documents.list()"),
    "event_not_found": ("event or memory", "store.search(TEXT) returns ids"),
    "import_not_found": ("import", "store.exchange.list_imports()"),
    "link_not_found": ("linked folder", "Projects.links()"),
    "memory_not_found": ("memory", "store.memories.list()"),
    "project_not_found": ("project", "Projects.list()"),
    "session_not_found": ("chat", "store.conversations.sessions()"),
    "source_not_found": ("source", "store.documents.list()"),
}
"""For each error code: the kind of thing that is missing, and the place that lists such things."""


def make_not_found_error(code: ErrorCode, *names: str) -> NotFound:
    """Return the error for names that do not exist."""
    what, hint = NOUNS[code]
    return NotFound(f"no {what} {', '.join(map(repr, names))}", hint=hint, code=code)
