"""Code that is made from the catalogue of operations, and from the public names, by `make snapshots`."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, get_overloads, get_type_hints

import memlog
from memlog.service.adapters.async_operations import awaited_methods
from memlog.service.catalogue import GROUPS
from memlog.service.engine.operation import Operation
from tests.support.places import ROOT

_MODULE = re.compile(r"\b((?:memlog|collections|datetime|pathlib|threading)(?:\.[a-z_]+)*)\.[A-Za-z_]+")


def async_operations() -> str:
    """service/adapters/async_operations.pyi: the types of the coroutines of each group, and of the store."""
    classes = [
        line for group, kind in GROUPS.items() if group for line in _class(kind, f"Async{kind.__name__}")
    ]
    groups = [f"    {name}: Async{kind.__name__}" for name, kind in GROUPS.items() if name]
    classes += [*_class(GROUPS[""], "AsyncOperations"), *groups]
    code = "\n".join(classes)
    modules = sorted({*_MODULE.findall(code)})
    head = [
        '"""The operations of a store as coroutines: their types, written by `make snapshots`."""',
        "",
        "import builtins",
        *(f"import {module}" for module in modules),
        "import typing",
        "from typing import Any, Literal, Optional, Union, overload",
        "",
        "from memlog.service.adapters.awaiting import Awaitable, Watching",
    ]
    return _formatted([*head, *classes], "async_operations.pyi")


def _class(kind: type, name: str) -> Iterator[str]:
    base = "Watching" if name == "AsyncMaintenance" else "Awaitable"
    yield from (
        "",
        "",
        f"class {name}({base}):",
        f'    """The methods of `{kind.__name__}` as coroutines."""',
        "",
    )
    for method, member in awaited_methods(kind).items():
        plain = member._method if isinstance(member, Operation) else member
        versions = get_overloads(plain) if inspect.isfunction(plain) else []
        for version in versions:
            yield f"    @overload\n    async def {method}{_signature(version)}: ..."
        if not versions:
            yield f"    async def {method}{_signature(member)}: ..."


def _signature(call: Callable[..., Any]) -> str:
    """The parameters and the answer, all types with their modules."""
    found = inspect.signature(call)
    if inspect.isfunction(call):
        hints = get_type_hints(call, localns={name: getattr(memlog, name) for name in memlog.__all__})
        answer = hints["return"]
    else:
        hints, answer = {}, found.return_annotation
    parameters = [
        each.replace(
            kind=each.POSITIONAL_OR_KEYWORD if each.name == "self" else each.kind,
            annotation=hints.get(each.name, each.annotation),
            default=each.default if each.default is each.empty else ...,
        )
        for each in found.parameters.values()
    ]
    text = str(found.replace(parameters=parameters, return_annotation=answer))
    return (
        re.sub(r"\b(list|set)\[", r"builtins.\1[", text)
        .replace("Ellipsis", "...")
        .replace("NoneType", "None")
    )


def public_names() -> str:
    """memlog/__init__.pyi: the public names, for type checkers and editors."""
    lines = [
        '"""The public names of memlog, for type checkers and editors: written by `make snapshots`."""',
        "",
    ]
    modules = memlog._modules()
    for module, names in groupby(sorted(modules, key=modules.__getitem__), modules.__getitem__):
        listed = ", ".join(f"{name} as {name}" for name in names)
        lines.append(f"from {module} import {listed}")
    lines += ["", "__version__: str"]
    return _formatted(lines, "__init__.pyi")


def _formatted(lines: list[str], name: str) -> str:
    code = "\n".join(lines) + "\n"
    sort = ["check", "--select=I,F401", "--fix-only", "--quiet"]
    for command in (sort, ["format"]):
        run = [Path(sys.executable).with_name("ruff"), *command, f"--stdin-filename={ROOT / name}", "-"]
        code = subprocess.run(run, input=code, capture_output=True, text=True, check=True).stdout
    return code


FILES = {
    ROOT / "service/adapters/async_operations.pyi": async_operations,
    ROOT / ".pkg/memlog/__init__.pyi": public_names,
}
