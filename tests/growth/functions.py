"""Every public function and method of a package that takes text, found by its annotations."""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from memlog.service.engine.operation import Operation
from tests.growth import walk

_TEXTS = (str, bytes, memoryview)


class Function(NamedTuple):
    """A function that takes text.

    name: with its module below the package, and its class: `query.search.fts_query.parse`.
    texts: by its parameters that take text, what they take.
    """

    name: str
    call: Callable[..., Any]
    texts: dict[str, Any]

    @property
    def kind(self) -> str | None:
        """The class whose method it is; None where it needs no object to be called."""
        *_, before, _ = self.name.split(".")
        is_method = before[:1].isupper() and (
            inspect.isfunction(self.call) or isinstance(self.call, Operation)
        )
        return before if is_method else None

    def parameters(self) -> Mapping[str, tuple[inspect.Parameter, Any]]:
        """What it takes, and what of."""
        hints = _hints(self.call)
        named = inspect.signature(self.call).parameters
        return {name: (each, hints.get(name)) for name, each in named.items() if name != "self"}


def text_functions(package: str) -> Iterator[Function]:
    """Each of a package."""
    for module in walk.modules(package):
        for name, function in walk.public_functions(module):
            hints = _hints(function)
            texts = {name: kind for name, kind in hints.items() if name != "return" and takes_text(kind)}
            if texts:
                yield Function(f"{module.__name__.partition('.')[2]}.{name}", function, texts)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Its annotations; those whose names are imported for type checkers alone are unknown."""
    made = function.__init__ if inspect.isclass(function) else function
    plain = inspect.unwrap(getattr(made, "__func__", made))
    if isinstance(plain, Operation):
        return {name: each.annotation for name, each in inspect.signature(plain).parameters.items()}
    names = dict[str, Any]()
    while True:
        try:
            return typing.get_type_hints(plain, localns=names)
        except NameError as error:
            names[error.name] = _Unknown


class _AnyMember(type):
    def __getattr__(cls, name: str) -> Any:
        return cls

    def __getitem__(cls, of: Any) -> Any:
        return cls


class _Unknown(metaclass=_AnyMember):
    """A type that is not imported, as that of an array."""


def takes_text(kind: Any) -> bool:
    """Whether an annotation is a text, may be one, or is a list of texts."""
    if kind in _TEXTS:
        return True
    origin = typing.get_origin(kind)
    return origin not in (Literal, Callable) and any(map(takes_text, typing.get_args(kind)))


def as_kind(text: str, kind: Any) -> Any:
    """A text as an annotation asks for it."""
    if kind is str:
        return text
    if kind in (bytes, memoryview):
        return text.encode()
    origin = typing.get_origin(kind)
    members = typing.get_args(kind)
    member = next(each for each in members if takes_text(each))
    if origin in (typing.Union, types.UnionType):
        return as_kind(text, member)
    if issubclass(origin, Mapping):
        return {as_kind(text, each) if takes_text(each) else text: 1 for each in members[:1]}
    if origin is tuple:
        return tuple(as_kind(text, each) for each in members if each is not Ellipsis)
    return origin([as_kind(text, member)]) if origin in (set, frozenset) else [as_kind(text, member)]
