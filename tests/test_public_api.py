"""What `memlog` offers to Python programs: described, typed, and typed as a program would use it."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

import memlog
from memlog.eventlog.events import TYPES
from tests.support.places import ROOT

PUBLIC = {name: getattr(memlog, name) for name in memlog.__all__ if name != "__version__"}


def functions_of(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """The function itself, or those methods and properties of a class that are written in memlog."""
    if inspect.isfunction(found):
        yield name, found
        return
    for base in found.__mro__:
        for member, value in vars(base).items():
            function = getattr(value, "fget", None) or getattr(value, "func", None)
            function = function or getattr(value, "__func__", value)
            if inspect.isfunction(function) and Path(function.__code__.co_filename).is_relative_to(ROOT):
                yield f"{name}.{member}", function


FUNCTIONS = dict(pair for name, found in PUBLIC.items() for pair in functions_of(name, found))
CALLED = [name for name in FUNCTIONS if not name.rpartition(".")[2].startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_is(name):
    described = vars(PUBLIC[name]).get("__doc__") if inspect.isclass(PUBLIC[name]) else PUBLIC[name].__doc__
    assert described
    assert described.strip()


@pytest.mark.parametrize("name", CALLED)
def test_every_public_function_says_what_it_does(name):
    assert (FUNCTIONS[name].__doc__ or "").strip()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_is_fully_annotated(name):
    signature = inspect.signature(FUNCTIONS[name])
    given = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    assert [each.name for each in given if each.annotation is inspect.Parameter.empty] == []
    assert signature.return_annotation is not inspect.Signature.empty


def test_every_event_is_public():
    assert set(TYPES.values()) <= set(PUBLIC.values())


def structs_in(hint: Any) -> Iterator[type]:
    """The structs that a type hint names, however deep."""
    for inner in getattr(hint, "__args__", ()):
        yield from structs_in(inner)
    if inspect.isclass(hint) and issubclass(hint, msgspec.Struct):
        yield hint


def imported_for_types(module: str) -> dict[str, Any]:
    """What a module imports for type checkers alone."""
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


def returned_by(function: Any) -> Any:
    """The type that a function is annotated to return."""
    names = function.__globals__ | imported_for_types(function.__module__)
    return get_type_hints(function, names).get("return")


def test_whatever_a_public_function_returns_is_public():
    returned = {struct for name in CALLED for struct in structs_in(returned_by(FUNCTIONS[name]))}
    members = {
        struct
        for result in returned
        for hint in get_type_hints(result).values()
        for struct in structs_in(hint)
    }
    assert memlog.LinePosition in members
    assert returned | members <= set(PUBLIC.values())


def checked(*args: str) -> subprocess.CompletedProcess[str]:
    """What mypy says, by the rules of pyproject.toml."""
    command = [sys.executable, "-m", "mypy", "--strict", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_program_that_uses_the_api_is_well_typed():
    done = checked("tests/typing/api.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "misuse",
    [
        "memlog.open('x').append(5)",
        "memlog.open('x').search('tea', mode='magic')",
        "memlog.open('x', durability='never')",
        "memlog.Message(channel='cli', chat_id='1', role='robot', content='x')",
        "memlog.open('x').get('id').raw",
        "memlog.MemlogError('no tea', code='no_tea')",
        "memlog.open_async('x').search('tea', mode='magic')",
        "memlog.open_async('x').search('tea').hits",
    ],
)
def test_a_program_that_misuses_the_api_is_told(misuse, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import memlog\n\n{misuse}\n")
    done = checked(str(program))
    assert (done.returncode, "program.py:3: error" in done.stdout) == (1, True), done.stdout + done.stderr
