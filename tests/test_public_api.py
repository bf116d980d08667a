"""What `memlog` offers to Python programs: described, typed, and typed as a program would use it."""

import ast
import inspect
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

import memlog
from memlog.eventlog.events import TYPES
from tests.support.places import ROOT
from tests.support.type_checkers import CHECKERS

PACKAGE = Path(memlog.__file__).parent
CHANGELOG = " ".join((ROOT / "CHANGELOG.md").read_text().split())
PROGRAMS = Path(__file__).parent / "typing"
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
            if inspect.isfunction(function) and Path(function.__code__.co_filename).is_relative_to(PACKAGE):
                yield f"{name}.{member}", function


FUNCTIONS = dict(pair for name, found in PUBLIC.items() for pair in functions_of(name, found))
CALLED = [name for name in FUNCTIONS if not name.rpartition(".")[2].startswith("_")]


def test_every_public_name_says_what_it_is():
    described = {
        name: vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
        for name, found in PUBLIC.items()
    }
    assert [name for name, text in described.items() if not (text or "").strip()] == []


def test_every_public_function_says_what_it_does():
    assert [name for name in CALLED if not (FUNCTIONS[name].__doc__ or "").strip()] == []


def test_every_public_function_is_fully_annotated():
    for name, function in FUNCTIONS.items():
        signature = inspect.signature(function)
        given = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
        assert [each.name for each in given if each.annotation is inspect.Parameter.empty] == [], name
        assert signature.return_annotation is not inspect.Signature.empty, name


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


def stub() -> dict[str, str]:
    """Each public name with its module."""
    return {
        alias.asname: node.module
        for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_the_public_names():
    assert stub() == memlog._modules()
    assert set(memlog.__all__) == {*memlog._modules(), "__version__"}


def test_the_public_names_are_listed_and_there():
    assert set(memlog.__all__) <= set(dir(memlog))
    for name in memlog.__all__:
        assert getattr(memlog, name) is not None


@pytest.fixture(scope="module", params=CHECKERS)
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """The lines that a type checker reports of each program of tests/typing, without settings of memlog's."""
    folder = tmp_path_factory.mktemp(request.param)
    for program in ("api.py", "misuses.py"):
        shutil.copy(PROGRAMS / program, folder)
    return CHECKERS[request.param](folder)


@pytest.mark.deep
def test_a_program_that_uses_the_api_is_well_typed(reported: dict[str, set[int]]) -> None:
    assert reported["api.py"] == set()


@pytest.mark.deep
def test_a_program_that_misuses_the_api_is_told(reported: dict[str, set[int]]) -> None:
    lines = (PROGRAMS / "misuses.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")}
    assert len(wrong) > 20
    assert reported["misuses.py"] == wrong
