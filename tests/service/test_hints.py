"""Errors of Python name their argument, and advise in Python; the command line says the same in commands."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.cli.output.help_pages import COMMANDS, PHRASES, translate_calls, translate_hint
from tests.support.command_tree import COMMANDS as TREE
from tests.support.places import ROOT

OF_A_SHELL = re.compile(
    rf"memlog (?:{'|'.join(sorted(path[0] for path in TREE if path))})\b|(?:^|[\s(])--[a-z]|MEMLOG_[A-Z]"
)
OTHERWISE = {
    *("eventlog/files/locks.py", "eventlog/settings.py", "query/gate.py"),
    "service/exchange/checkouts.py",
}
"""How to start a program otherwise that root has started; what settings mean; a pattern for commands; what is
asked of git."""


def texts() -> Iterator[tuple[str, str]]:
    """What the code below the command line may say: all texts but docstrings, with their modules."""
    for package in ("eventlog", "projector", "query", "service"):
        for path in sorted((ROOT / package).rglob("*.py")):
            where, nodes = str(path.relative_to(ROOT)), [*ast.walk(ast.parse(path.read_text()))]
            said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
                    yield where, node.value


def test_nothing_in_python_advises_a_command_line() -> None:
    found = [(where, text) for where, text in texts() if where not in OTHERWISE and OF_A_SHELL.search(text)]
    assert [text for _, text in found if not text.startswith("pip install")] == []


def test_every_call_that_an_error_advises_exists_and_has_a_command(tmp_path: Path) -> None:
    hints = [text for _, text in texts()]
    # An f-string ends before its value.
    calls = {name for text in hints for name in re.findall(r"\bstore\.([a-z_.]+)\(", text)}
    assert calls - {"erasure.prove"} <= COMMANDS.keys()
    assert all(any(phrase in text for text in hints) for phrase in PHRASES)
    store = memlog.open(tmp_path)
    for name, command in COMMANDS.items():
        group, _, method = name.rpartition(".")
        assert callable(getattr(getattr(store, group) if group else store, method)), name
        assert tuple(command.split()) in TREE, command
    called = [hint for hint in hints if re.search(r"\bstore\.[a-z_.]+\(", hint)]
    for hint in (hint for hint in called if hint.count("(") == hint.count(")")):
        assert "store." not in translate_hint(hint).replace("store's", ""), hint


def test_a_hint_has_the_words_of_its_reader() -> None:
    for python, command in {
        "store.facts.list()": "memlog fact list",
        "store.search() returns ids": "memlog query returns ids",
        "choose one: stream=STREAM": "choose one: --stream STREAM",
        "store.maintenance.project(from_scratch=True)": "memlog project --from-scratch",
        "store.documents.add(FOLDER, source='my notes')": "memlog docs add FOLDER --source 'my notes'",
        'store.documents.remove("anna\'s")': "memlog docs remove 'anna'\"'\"'s'",
        "store.core.import_file('/a, b (1)/c.json') appends": "memlog core import '/a, b (1)/c.json' appends",
        "store.documents.add(FOLDER, source='src, B')": "memlog docs add FOLDER --source 'src, B'",
        "a line of the type store.search(')": "a line of the type store.search(')",
        "a number from 0 to 1": "a number from 0 to 1",
        "such as favorite_colors": "such as favorite_colors",
    }.items():
        assert translate_hint(python) == command


def searching(**options: Any) -> Callable[[memlog.Store], object]:
    return lambda store: store.search("tea", mode="text", **options)


CALLS: dict[str, tuple[Callable[[memlog.Store], object], str]] = {
    "since": (searching(filters={"since": "soon"}), "filters: since: invalid timestamp: 'soon'"),
    "until": (searching(filters={"until": 7}), "filters: until: invalid timestamp: 7"),
    "category": (searching(filters={"category": "teas"}), "filters: category is 'teas'"),
    "exclude": (searching(filters={"exclude": "m1"}), "filters: exclude: not a collection of ids: 'm1'"),
    "role": (searching(filters={"role": "cat"}), "filters: role is 'cat'"),
    "a filter": (
        searching(filters={"speeker": "Ann"}),
        "filters: it does not accept 'speeker'",
    ),
    "filters": (searching(filters=7), "filters: it takes fields by name, not 7"),
    "chat": (searching(chat=7), "chat is 7"),
    "k": (searching(k="many"), "k is 'many'"),
    "day": (lambda store: store.daily.list(date="24.2."), "date: "),
    "day of a stretch": (lambda store: store.daily.list(since="now"), "since: "),
    "path": (lambda store: store.documents.add("~/notes"), "path: ~ is not expanded: '~/notes'"),
    "paths": (lambda store: store.documents.add_all([7]), "paths: "),
    "memory ids": (lambda store: store.daily.compress(["d"], memory_ids="m"), "memory_ids is 'm'"),
    "rates": (lambda store: store.memories.decay(rates=7), "rates must be a mapping, not 7"),
    "store": (lambda _: memlog.open("~/notes"), "path: ~ is not expanded: '~/notes'"),
    "model": (lambda store: memlog.open(store.path, model=""), "model: not a path: ''"),
    "create": (lambda store: memlog.open(store.path, create="yes"), "create is 'yes'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_an_error_names_its_argument(
    tmp_path: Path, call: Callable[[memlog.Store], object], message: str
) -> None:
    with memlog.open(tmp_path / "store", create=True) as store, pytest.raises(memlog.BadInput) as caught:
        call(store)
    assert caught.value.message.startswith(message)
    assert not OF_A_SHELL.search(caught.value.message + " " + caught.value.hint)


def test_what_others_wrote_is_told_as_it_is() -> None:
    for text in ("the store run=A/is_raw", "a file store.search(').jsonl", "chat x:store.facts.list("):
        assert translate_calls(text) == text
