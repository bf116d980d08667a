"""Where SQL may stand: in the projector and the modules of query, and what a handler may do with it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CALLS = ("execute", "executemany", "executescript")


def statements(folder: str) -> Iterator[tuple[str, str, str]]:
    """Each call that hands SQL to a connection: module, method, beginning of the SQL if it is a literal."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in _CALLS:
                first = node.args[0]
                if isinstance(first, ast.JoinedStr):
                    first = first.values[0]
                sql = str(first.value) if isinstance(first, ast.Constant) else ""
                yield str(path.relative_to(ROOT)), node.func.attr, sql


def test_only_the_projector_and_queries_hold_sql():
    assert len([*statements("projector")]) > 50
    assert len([*statements("query")]) > 50
    for folder in ("eventlog", "service", "cli"):
        assert [*statements(folder)] == []


def test_queries_only_read():
    reading = ("SELECT", "WITH", "")
    assert [found for found in statements("query") if not found[2].startswith(reading)] == []


def test_handlers_write_through_rows_alone():
    found = [*statements("projector/subjects")]
    assert found
    assert [each for each in found if each[1] != "execute" or not each[2].startswith("SELECT")] == []
