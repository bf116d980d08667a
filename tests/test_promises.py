"""Each promise of docs/testing.md and docs/reliability.md has a test, and the tier that the page names."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.support.places import ROOT

PAGE = (ROOT / "docs/testing.md").read_text()
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.*?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
RELIABILITY = (ROOT / "docs/reliability.md").read_text()
FAULTS = re.findall(r"^\| (.+?\.) \| (.+?\.) \| (.+?) \|$", RELIABILITY, re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
DEEP = {"deep", "index", "wheel"}
"""Marks of tests that `make test` leaves out."""


@cache
def tiers(path: str) -> dict[str, str]:
    """The tier of each test of a module, by the marks of the test, the module and its folder."""
    module = ast.parse((ROOT / path).read_text())
    folder = path.startswith(("tests/crash/", "tests/growth/"))
    is_deep = folder or any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _marks(node.value)
        for node in module.body
    )
    found = {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = is_deep or any(map(_marks, node.decorator_list))
        elif isinstance(node, ast.ImportFrom | ast.Assign):
            found |= dict.fromkeys(_bound(node), is_deep)
    return {name: "deep" if deep else "test" for name, deep in found.items()}


def _marks(node: ast.expr) -> bool:
    return any(f"pytest.mark.{mark}" in ast.unparse(node) for mark in DEEP)


def _bound(node: ast.ImportFrom | ast.Assign) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return [ast.unparse(target) for target in node.targets]


def test_every_promise_is_made_once_and_has_tests_of_its_tier():
    promises = [promise for promise, _, _ in ROWS]
    assert len(set(promises)) == len(promises) > 80
    for promise, tier, tests in ROWS:
        assert promise.endswith("."), promise
        assert NAMED.sub("", tests).replace("<br>", "") == "", promise
        found = [tiers(path).get(name, f"no {path}::{name}") for path, name in NAMED.findall(tests)]
        assert {tier} == ({"test"} if "test" in found else set(found)), (promise, found)
        assert set(found) <= {"test", "deep"}, (promise, found)


def test_every_fault_of_the_reliability_page_has_a_test():
    assert len(FAULTS) > 12
    for fault, _, tests in FAULTS:
        assert NAMED.sub("", tests).replace("<br>", "") == "", fault
        assert NAMED.search(tests), fault
    named = NAMED.findall(RELIABILITY)
    assert [f"{path}::{name}" for path, name in named if name not in tiers(path)] == []


def test_the_page_of_all_pages_links_each():
    index = (ROOT / "docs/pages.md").read_text()
    pages = [str(path.relative_to(ROOT / "docs")) for path in Path(ROOT, "docs").rglob("*.md")]
    assert [page for page in pages if page != "pages.md" and f"]({page})" not in index] == []
