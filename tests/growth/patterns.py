"""Every pattern that a package compiles, found by importing and using it, and by reading its sources.

`re._compile`, through which each function of `re` goes, is watched in a process of its own while the package
is imported and its functions are called. The sources say where `re` is called: a place that compiled nothing
then is one that the gate does not see, and fails. They also say by which methods a pattern is used.
"""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tests.growth import walk
from tests.support.places import ROOT

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_COMPILING = ("compile", *METHODS)


class Site(NamedTuple):
    """A call of a function of `re` in a source."""

    file: Path
    line: int
    last_line: int
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Found(NamedTuple):
    """A pattern, and where and how it is used."""

    site: Site
    pattern: re.Pattern[str] | re.Pattern[bytes]

    def calls(self) -> Iterator[tuple[str, "Call"]]:
        """What a text is given to: each method, with its name."""
        for name in sorted(self.site.methods):
            yield name, Call(self.pattern, name)


class Call(NamedTuple):
    """A method of a pattern that takes a text."""

    pattern: re.Pattern[str] | re.Pattern[bytes]
    method: str

    def __call__(self, text: str) -> None:
        """Use it, to the end of the text."""
        data = text.encode() if isinstance(self.pattern.pattern, bytes) else text
        nothing = type(data)()
        arguments = (nothing, data) if self.method in ("sub", "subn") else (data,)
        found = getattr(self.pattern, self.method)(*arguments)
        if self.method == "finditer":
            for _ in found:
                pass


def patterns(package: str, *, path: str = "", exercise: str = "") -> tuple[list[Found], list[Site]]:
    """The patterns of an installed package, and the places in its sources that compiled none.

    path: a folder in which the package stands that is not installed.
    exercise: a module beside this one, whose `run()` calls what compiles only when it is called.
    """
    files, compiled = _watched(package, path, exercise)
    sites = [site for source in _sources(files) for site in source.sites]
    found = {
        (site, pattern): Found(site, pattern)
        for site in sites
        for file, line, pattern in compiled
        if file == site.file and site.line <= line <= site.last_line
    }
    seen = {site for site, _ in found}
    return list(found.values()), [site for site in sites if site not in seen]


class _Source:
    def __init__(self, file: Path) -> None:
        self.file = file
        self._tree = ast.parse(file.read_text())

    @cached_property
    def sites(self) -> list[Site]:
        """Its calls of `re`."""
        names = {id(node.value): _name(node.targets[0]) for node in self._of(ast.Assign)}
        for function in self._of(ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Return):
                    names[id(node.value)] = function.name
        return [
            Site(self.file, call.lineno, call.end_lineno, self._methods(call, names.get(id(call))))
            for call in self._of(ast.Call)
            if _function_of_re(call) in _COMPILING
        ]

    @property
    def hides_re(self) -> bool:
        """Whether it takes functions out of `re`, whose calls cannot be told."""
        taken = {name.name for node in self._of(ast.ImportFrom) if node.module == "re" for name in node.names}
        return bool(taken & {*_COMPILING}) or any(
            name.name == "re" and name.asname for node in self._of(ast.Import) for name in node.names
        )

    def _methods(self, call: ast.Call, name: str | None) -> frozenset[str]:
        function = _function_of_re(call)
        if function != "compile":
            return frozenset({function})
        own = self._uses.get(name, frozenset()) if name else frozenset()
        return own or self._uses.get(None, frozenset()) or frozenset(METHODS)

    @cached_property
    def _uses(self) -> dict[str | None, frozenset[str]]:
        """By the name of a constant or function, the methods that it is used by; None: by another name."""
        constants = {_name(node.targets[0]) for node in self._of(ast.Assign)}
        functions = {node.name for node in self._of(ast.FunctionDef)}
        uses: dict[str | None, frozenset[str]] = {}
        for node in self._of(ast.Attribute):
            if node.attr in METHODS:
                name = _name(node.value)
                key = name if name in constants | functions else None
                uses[key] = uses.get(key, frozenset()) | {node.attr}
        for call in self._of(ast.Call):  # re.sub(_PATTERN, …)
            function = _function_of_re(call)
            if function in METHODS and call.args and (name := _name(call.args[0])):
                uses[name] = uses.get(name, frozenset()) | {function}
        return uses

    def _of(self, kind: type) -> list:
        return [node for node in ast.walk(self._tree) if isinstance(node, kind)]


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.Name():
            return node.id
        case ast.Call():
            return _name(node.func)
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return node.attr
    return None


def _function_of_re(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=name):
            return name
    return None


def _sources(files: list[Path]) -> list[_Source]:
    sources = [_Source(file) for file in files]
    hiding = [str(source.file) for source in sources if source.hides_re]
    assert not hiding, f"import re, and call its functions by that name: {', '.join(hiding)}"
    return sources


def _watched(package: str, path: str, exercise: str) -> tuple[list[Path], list[tuple[Path, int, re.Pattern]]]:
    """The sources of a package, and what it compiles when it is imported and used: where, and the pattern."""
    command = [sys.executable, "-m", "tests.growth.patterns", package, path, exercise]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return [Path(file) for file in told["files"]], [
        (Path(file), line, re.compile(pattern.encode("latin-1") if is_bytes else pattern, flags))
        for file, line, pattern, is_bytes, flags in told["compiled"]
    ]


def _watch(package: str, path: str, exercise: str) -> None:
    """Print what `_watched` reads."""
    compiled = set()
    compile_ = re._compile

    def watched(pattern: object, flags: int) -> re.Pattern:
        made = compile_(pattern, flags)
        caller = sys._getframe(2).f_code, sys._getframe(2).f_lineno
        compiled.add((os.path.realpath(caller[0].co_filename), caller[1], made))
        return made

    re._compile = watched
    sys.path.append(path)
    found = list(walk.modules(package))
    for function in chain.from_iterable(map(walk.cached_functions, found)):
        function()
    if exercise:
        importlib.import_module(exercise).run()
    files = sorted({os.path.realpath(module.__file__) for module in found})
    told = [_told(*each) for each in compiled if each[0] in files]
    print(json.dumps({"files": files, "compiled": told}))


def _told(file: str, line: int, pattern: re.Pattern) -> tuple[str, int, str, bool, int]:
    is_bytes = isinstance(pattern.pattern, bytes)
    text = pattern.pattern.decode("latin-1") if is_bytes else pattern.pattern
    return file, line, text, is_bytes, pattern.flags


if __name__ == "__main__":
    _watch(*sys.argv[1:])
