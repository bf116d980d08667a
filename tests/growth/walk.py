"""Walks the modules of a package, and what they define."""

import dataclasses
import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator
from types import ModuleType

import msgspec


def modules(package: str) -> Iterator[ModuleType]:
    """A package and each module below it."""
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}."):
        yield importlib.import_module(found.name)


def cached_functions(module: ModuleType) -> Iterator[Callable[[], object]]:
    """Those that take nothing and keep what they return, as a pattern that is compiled when it is needed."""
    for function in vars(module).values():
        is_own = hasattr(function, "cache_info") and function.__module__ == module.__name__
        if is_own and not inspect.signature(function).parameters:
            yield function


def public_functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions of a module, and the public methods of its classes, with their names."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            yield from _methods(value)
        elif inspect.isfunction(inspect.unwrap(value)):
            yield name, value


def _methods(kind: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """A class, where it does more than to keep what it is given, and its public methods."""
    # Imported here: the gate of patterns watches what is imported after this module.
    from memlog.service.engine.operation import Operation

    if "__init__" in vars(kind) and not _only_keeps(kind):
        yield kind.__name__, kind
    for name, value in vars(kind).items():
        plain = getattr(value, "__func__", value)
        if isinstance(plain, types.FunctionType | Operation) and not name.startswith("_"):
            yield f"{kind.__name__}.{name}", plain if plain is value else getattr(kind, name)


def _only_keeps(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct | tuple | Exception)
