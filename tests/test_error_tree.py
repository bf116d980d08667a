"""Errors are one tree in one module; nothing else is raised for a caller to catch."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import memlog
from memlog.cli.process.error_handler import EXIT_CODES, error_to_failure, exit_code_of
from memlog.eventlog import errors
from memlog.projector.sqlite import DAMAGED, INHERITED, NO_ROOM
from memlog.service.engine.operation import NOUNS
from tests.support.places import ROOT

TREE = {name: found for name, found in vars(errors).items() if inspect.isclass(found)}

CAUGHT_INSIDE = {
    *("BadLine", "HistoryChanged", "NoCertainList", "OutputError", "Refused", "ReaderFailed", "Unfit"),
    *("_GenerationChanged", "_NameTakenError", "_Stopped", "NeedsOwnProcess", "NotForwarded"),
}
"""How one module tells another what it met, which makes a row, a replay, a report or an error of it."""

OF_PYTHON = {"ValueError", "TypeError", "AttributeError", "OSError", "FileExistsError", "PermissionError"}
"""What Python's own calls raise in the same place, so that one `except` takes both."""

OF_PYTHON |= {"RuntimeError"}  # as Python raises in place of a StopIteration that leaves a coroutine

VARIABLES = {
    "error",
    "failed",
    "outcome",
    "TOO_LONG",
    "_failure",
    "frozen",
    "unknown_command_error",
    "too_large",
    "key_in_store_file_error",
}
"""Names that hold an error of the tree which was made elsewhere."""


def test_the_tree_is_memlog_error_over_seven():
    assert set(TREE) == {
        "MemlogError",
        *("LogError", "DatabaseError", "EmbeddingError", "NotFound", "BadInput", "Busy", "ProviderError"),
    }
    assert {found.__bases__ for name, found in TREE.items() if name != "MemlogError"} == {
        (errors.MemlogError,)
    }
    assert errors.MemlogError.__bases__ == (Exception,)


def test_the_tree_is_drawn_and_public():
    drawn = (errors.__doc__ or "").partition("MemlogError\n")[2]
    for name, found in TREE.items():
        assert getattr(memlog, name) is found
        assert name == "MemlogError" or f"    {name} " in drawn


def test_each_error_has_a_code_of_its_own_and_an_exit_code():
    made = [found("what happened", hint="what to do") for found in TREE.values()]
    assert len({error.code for error in made}) == len(TREE)
    for error in made:
        failure = error_to_failure(error)
        assert (failure.code, failure.message, failure.hint) == (error.code, "what happened", "what to do")
        assert failure.retryable is (type(error) in (errors.Busy, errors.LogError))
        assert exit_code_of(error) in (1, 65, 69, 70, 74, 75)


@pytest.fixture(scope="module")
def modules() -> dict[Path, list[ast.AST]]:
    """The nodes of each."""
    return {
        path: list(ast.walk(ast.parse(path.read_text())))
        for folder in ("eventlog", "projector", "query", "service", "cli")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def names_in(raised: ast.expr) -> Iterator[str]:
    """The last words of what is raised: of a class, of a function that makes it, of a variable."""
    match raised:
        case ast.BoolOp():
            for value in raised.values:
                yield from names_in(value)
        case ast.Call():
            yield from names_in(raised.func)
        case ast.Attribute():
            yield raised.attr
        case ast.Name():
            yield raised.id


def codes_in(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """The codes of errors that a module makes, each with the name of the class that carries it."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="Failure"), args=[ast.Constant(value=code), *_]):
                yield code, "Failure"
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in TREE:
                for keyword in keywords:
                    if keyword.arg == "code":
                        yield from ((code, name) for code in literals_in(keyword.value))


def literals_in(code: ast.expr) -> Iterator[str]:
    named = {"DAMAGED": DAMAGED, "INHERITED": INHERITED, "NO_ROOM": NO_ROOM}
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name) and node.id in named:
            yield named[node.id]


def test_the_type_of_codes_lists_those_in_use_and_the_page_explains_them(modules):
    used = {code: name for nodes in modules.values() for code, name in codes_in(nodes)}
    used |= {found.code: name for name, found in TREE.items()}
    used |= dict.fromkeys(get_args(errors.LineFault), "BadInput") | dict.fromkeys(NOUNS, "NotFound")
    assert set(used) == set(get_args(errors.ErrorCode))
    page = (ROOT / "docs/json-output.md").read_text()
    explained = re.findall(r"^\| `(\w+)` \| (\d+) \| \S.* \|$", page, re.MULTILINE)
    assert sorted(code for code, _ in explained) == sorted(used)
    for code, exit_code in explained:
        if used[code] in TREE:
            assert exit_code_of(TREE[used[code]]("what happened", code=code)) == int(exit_code), code
        else:
            assert int(exit_code) in EXIT_CODES, code


def test_only_the_tree_is_raised(modules):
    makers = {
        node.name: node.returns.id
        for nodes in modules.values()
        for node in nodes
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name)
    }
    counted = 0
    for path, nodes in modules.items():
        known = {*TREE, *CAUGHT_INSIDE, *OF_PYTHON, *VARIABLES}
        if path.is_relative_to(ROOT / "cli"):
            known |= {"UsageError", "BadParameter"}
        if path.is_relative_to(ROOT / "service/adapters/mcp"):
            known |= {"MCPError"}  # as the SDK answers a client
        for node in nodes:
            if isinstance(node, ast.Raise) and node.exc is not None:
                names = {makers.get(name, name) for name in names_in(node.exc)}
                assert names, f"{path}:{node.lineno}"
                assert names <= known, f"{path}:{node.lineno}: {names}"
                counted += 1
    assert counted > 50


def test_no_other_error_is_defined(modules):
    defined = {
        node.name
        for nodes in modules.values()
        for node in nodes
        if isinstance(node, ast.ClassDef)
        and any(
            name in {"BaseException", "Exception", *TREE, "ValueError", "OSError"}
            for base in node.bases
            for name in names_in(base)
        )
    }
    assert defined == {*TREE, *CAUGHT_INSIDE}


def test_what_modules_tell_each_other_is_caught_in_the_package(modules):
    caught = {
        name
        for nodes in modules.values()
        for node in nodes
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        for kind in (node.type.elts if isinstance(node.type, ast.Tuple) else [node.type])
        for name in names_in(kind)
    }
    assert caught >= CAUGHT_INSIDE
