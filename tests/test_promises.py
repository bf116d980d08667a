"""Each promise of docs/testing.md has a test, and the test stands."""

import re
import subprocess
import sys

import pytest

from tests.support.places import ROOT

PAGE = (ROOT / "docs/testing.md").read_text()
ROWS = [
    (promise.strip(), tests.strip())
    for promise, tests in re.findall(r"^\| (.+?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
    if not promise.startswith(("promise", "---"))
]
RELIABILITY = (ROOT / "docs/reliability.md").read_text()
FAULTS = re.findall(r"^\| (.+?\.) \| (.+?\.) \| (.+?) \|$", RELIABILITY, re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")

PAGES = [
    "docs/copies.md",
    "docs/tools/memory.md",
    "docs/memory/core-memory.md",
    "docs/memory/archival-memory.md",
    "docs/storage/database-schema.md",
    "docs/storage/jsonl-format.md",
    "docs/search.md",
    "docs/settings.md",
    "docs/cli.md",
    "docs/architecture.md",
    "docs/python.md",
    "docs/testing.md",
    "docs/reliability.md",
]


def test_there_are_promises():
    assert len(ROWS) > 80


def test_every_promise_is_made_once_and_has_a_test():
    promises = [promise for promise, _ in ROWS]
    assert len(set(promises)) == len(promises)
    for promise, tests in ROWS:
        assert promise.endswith("."), promise
        assert NAMED.sub("", tests).replace("<br>", "") == "", promise
        assert NAMED.search(tests), promise


def test_every_fault_of_the_reliability_page_has_a_test():
    assert len(FAULTS) > 12
    for fault, _, tests in FAULTS:
        assert NAMED.sub("", tests).replace("<br>", "") == "", fault
        assert NAMED.search(tests), fault


def test_every_test_that_a_promise_names_stands(request: pytest.FixtureRequest):
    named = {f"{path}::{name}" for path, name in NAMED.findall(PAGE + RELIABILITY)}
    check_that_there_are(named - {item.nodeid.partition("[")[0] for item in request.session.items})


def check_that_there_are(tests: set[str]) -> None:
    """Tests of other targets, or those that this run was not asked for."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", *sorted(tests)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("page", PAGES)
def test_a_promised_page_stands_and_readme_links_it(page):
    assert (ROOT / page).is_file()
    assert f"]({page})" in (ROOT / "README.md").read_text()


def test_readme_links_every_page():
    readme = (ROOT / "README.md").read_text()
    pages = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f"]({page})" not in readme] == []
