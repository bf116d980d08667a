"""The time of every pattern and every function of memlog grows no faster than the text that it is given."""

import sys
from fnmatch import filter as filter_names

import pytest

from tests.growth.arguments import LEFT_OUT, RECIPES
from tests.growth.functions import text_functions
from tests.growth.gate import growing_functions, growing_patterns, uncovered
from tests.growth.patterns import patterns
from tests.growth.world import World
from tests.support.places import ROOT

_NOT_OURS = {"service/engine/sandbox_program.py": "a person's pattern, in a process that is ended"}


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.chdir(made.folder)
    yield made
    made.close()


def _named(found):
    return [f"{where}: {what}" for where, what in found]


def test_no_pattern_grows_faster_than_its_text():
    found, unseen = patterns("memlog", exercise="tests.growth.exercise")
    others = [
        str(site) for site in unseen if not str(site).startswith(tuple(f"{ROOT}/{it}" for it in _NOT_OURS))
    ]
    assert not others, "compiles a pattern when it is called, and the gate calls nothing that leads to it"
    assert len(found) > 100
    assert _named(growing_patterns(found, most=3, share=8)) == []


def test_no_function_that_takes_text_grows_faster_than_it(world):
    assert _named(growing_functions("memlog", world, share=8)) == []


def test_every_function_that_takes_text_is_covered_or_left_out_with_a_reason(world):
    assert list(uncovered("memlog", world)) == []
    assert all(LEFT_OUT.values())


def test_each_exclusion_and_each_recipe_names_a_function_that_there_is():
    names = [function.name for function in text_functions("memlog")]
    assert [entry for entry in (*LEFT_OUT, *RECIPES) if not filter_names(names, entry)] == []


_PLANTED = """
import re
from functools import cache

SPACES_AT_THE_END = re.compile(r"\\s+$")


def ends(text: str) -> bool:
    return SPACES_AT_THE_END.search(text) is not None


@cache
def _by_name() -> dict[str, tuple[re.Pattern[str], ...]]:
    return {"lists": (re.compile(r"[ *]*[ *]*-"),)}


def is_list(text: str) -> bool:
    return any(pattern.match(text) for pattern in _by_name()["lists"])


def seen_before(text: str) -> int:
    return sum(other == letter for letter in text for other in text)


def linear(text: str) -> list[str]:
    return text.split()
"""


def test_the_gate_fails_at_each_of_three_planted_quadratic_things(tmp_path, monkeypatch, world):
    package = tmp_path / "planted"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "module.py").write_text(_PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    found, unseen = patterns("planted", path=str(tmp_path))
    assert not unseen
    lines = [int(where.rpartition(":")[2]) for where, _ in growing_patterns(found, most=4)]
    assert lines == [5, 14]
    functions = [name for name, _ in growing_functions("planted", world)]
    assert functions == ["module.ends:text", "module.is_list:text", "module.seen_before:text"]


def test_a_pattern_that_the_gate_cannot_see_fails(tmp_path):
    (tmp_path / "hiding.py").write_text("import re\n\n\ndef found(text):\n    return re.search('a', text)\n")
    _, unseen = patterns("hiding", path=str(tmp_path))
    assert [site.line for site in unseen] == [5]


def test_a_function_that_the_gate_cannot_call_fails(tmp_path, monkeypatch, world):
    (tmp_path / "odd.py").write_text("def read(text: str, other: complex) -> None: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert list(uncovered("odd", world)) == [".read: nothing fills other: <class 'complex'>"]
    sys.modules.pop("odd")
