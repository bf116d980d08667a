"""Code that is made from the catalogue of operations, and from the public names, by `make snapshots`."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import memlog
from memlog.service.catalogue import GROUPS
from memlog.service.engine.operation import Operation
from tests.support.places import ROOT

NOT_AWAITED = ("close", "is_of_another_copy")
"""Methods of groups that are no operations, and not for programs."""


def async_operations() -> str:
    """service/adapters/async_operations.py: a class for each group of operations, and one for the store."""
    groups = {name: kind for name, kind in GROUPS.items() if name}
    modules = sorted({(kind.__module__, kind.__name__) for kind in GROUPS.values()})
    lines = [
        '"""The operations of a store as coroutines: made from its catalogue by `make snapshots`."""',
        "",
        *(f"from {module} import {name}" for module, name in modules),
        "from memlog.service.adapters.awaiting import Awaitable, Watching, awaited, awaited_method",
    ]
    for kind in groups.values():
        lines += [*_class_of(f"Async{kind.__name__}", kind), *_methods_of(kind)]
    lines += _class_of("AsyncOperations", GROUPS[""])
    lines += [f"    {name}: Async{kind.__name__}" for name, kind in groups.items()]
    lines += _methods_of(GROUPS[""])
    return _formatted(lines, "async_operations.py")


def remote_operations() -> str:
    """service/adapters/remote_operations.py: the same classes, whose operations a server does."""
    groups = {name: kind for name, kind in GROUPS.items() if name}
    modules = sorted({(kind.__module__, kind.__name__) for kind in GROUPS.values()})
    lines = [
        '"""The operations of a store that a server does: made from its catalogue by `make snapshots`."""',
        "",
        *(f"from {module} import {name}" for module, name in modules),
        "from memlog.service.adapters.remote import Remote, remote",
    ]
    for group, kind in [*groups.items(), ("", GROUPS[""])]:
        name = f"Remote{kind.__name__}" if group else "RemoteOperations"
        lines += ["", "", f"class {name}(Remote):", f'    """The operations of `{kind.__name__}`."""', ""]
        if not group:
            lines += [f"    {each}: Remote{of.__name__}" for each, of in groups.items()]
        lines += [
            f"    {operation} = remote({kind.__name__}.{operation})"
            for operation, member in vars(kind).items()
            if isinstance(member, Operation) and not member.is_endless
        ]
    return _formatted(lines, "remote_operations.py")


def _class_of(name: str, kind: type) -> list[str]:
    endless = any(each.is_endless for each in vars(kind).values() if isinstance(each, Operation))
    base = "Watching" if endless else "Awaitable"
    return [
        "",
        "",
        f"class {name}({base}):",
        f'    """The methods of `{kind.__name__}` as coroutines."""',
        "",
    ]


def _methods_of(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if isinstance(member, Operation) and not member.is_endless:
            yield f"    {name} = awaited({kind.__name__}.{name})"
        elif inspect.isfunction(member) and name[0] != "_" and name not in NOT_AWAITED:
            yield f"    {name} = awaited_method({kind.__name__}.{name})"


def public_names() -> str:
    """memlog/__init__.pyi: the public names, for type checkers and editors."""
    lines = [
        '"""The public names of memlog, for type checkers and editors: written by `make snapshots`."""',
        "",
    ]
    for module, names in groupby(memlog._HOME, memlog._HOME.__getitem__):
        listed = ", ".join(f"{name} as {name}" for name in names)
        lines.append(f"from {module} import {listed}")
    lines += ["", "__version__: str"]
    return _formatted(lines, "__init__.pyi")


def _formatted(lines: list[str], name: str) -> str:
    code = "\n".join(lines) + "\n"
    sort = ["check", "--select=I", "--fix-only", "--quiet"]
    for command in (sort, ["format"]):
        run = [Path(sys.executable).with_name("ruff"), *command, f"--stdin-filename={ROOT / name}", "-"]
        code = subprocess.run(run, input=code, capture_output=True, text=True, check=True).stdout
    return code


FILES = {
    ROOT / "service/adapters/async_operations.py": async_operations,
    ROOT / "service/adapters/remote_operations.py": remote_operations,
    ROOT / ".pkg/memlog/__init__.pyi": public_names,
}
