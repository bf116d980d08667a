"""Where no SQLite loads extensions everything but vector search works, and says so.

Many Pythons are built so, and pysqlite3 and sqlean.py have no wheels for some machines.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

# Python runs it before anything else. None in sys.modules is what an import finds where nothing is installed.
_SITECUSTOMIZE = """
import functools
import sqlite3
import sys

sys.modules["pysqlite3"] = sys.modules["sqlean"] = None


class Connection(sqlite3.Connection):
    @property
    def enable_load_extension(self):
        raise AttributeError("enable_load_extension")


sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)
"""
_BROKEN_VEC0 = """
import importlib.util
import pathlib

found = importlib.util.find_spec


def find_spec(name, package=None):
    spec = found(name, package)
    if name == "sqlite_vec":
        spec.submodule_search_locations = [str(pathlib.Path(__file__).parent)]
    return spec


importlib.util.find_spec = find_spec
"""
WHY = "cannot load extensions; pysqlite3 and sqlean.py can"


def _python_that_runs(code: str, folder: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def without_extensions(tmp_path: Path) -> dict[str, str]:
    """An environment in which only the standard library's SQLite is installed, and loads no extensions."""
    return _python_that_runs(_SITECUSTOMIZE, tmp_path / "without-extensions")


def memory(content: str) -> bytes:
    return b'{"type":"memory_saved","memory_id":"y1","content":"%s"}\n' % content.encode()


def test_append_project_and_query_work_and_say_what_does_not(
    memlog: Run, without_extensions: dict[str, str]
) -> None:
    env = without_extensions
    said = ("--chat", "x:1", "--role", "user", "--content", "green tea", "--id", "m1")
    assert memlog("append", "message", *said, env=env).json["id"] == "m1"
    projected = memlog("project", "--json", env=env)
    assert (projected.code, projected.json["rows"], projected.json["vectors_pending"]) == (0, 1, 1)
    assert projected.json["silent"]["vector"].endswith(WHY)
    hybrid = memlog("query", "tea", "--json", env=env).json
    assert [(hit["id"], hit["score"], hit["similarity"]) for hit in hybrid["hits"]] == [("m1", 1.0, None)]
    assert hybrid["silent"] == projected.json["silent"]
    text = memlog("query", "tea", "--mode", "text", "--json", env=env).json
    assert (text["hits"], text["silent"]) == (hybrid["hits"], {})
    assert memlog("verify", env=env).code == 0


def test_a_search_for_meaning_alone_finds_nothing_and_says_why(
    memlog: Run, without_extensions: dict[str, str]
) -> None:
    memlog("append", input=memory("likes tea"))
    done = memlog("query", "tea", "--mode", "vector", "--json", env=without_extensions)
    assert (done.code, done.json["hits"]) == (0, [])
    assert done.json["silent"]["vector"].endswith(WHY)


@pytest.mark.usefixtures("empty_store")
def test_status_names_the_sqlite_and_what_is_missing(memlog: Run, without_extensions: dict[str, str]) -> None:
    status = memlog("status", "--json", env=without_extensions).json
    assert status["sqlite"].startswith("sqlite3 3.")
    assert status["silent"] == {"vector": f"{status['sqlite']} {WHY}"}
    assert (status["sqlite_vec"], status["model"], status["dimension"]) == (None, None, None)
    told = memlog("status", env=without_extensions).err.decode()
    assert told == f"memlog: vector: {status['sqlite']} {WHY}\n"


def test_vectors_come_back_with_a_sqlite_that_loads_extensions(
    memlog: Run, without_extensions: dict[str, str]
) -> None:
    """Also those of a memory that was changed meanwhile, whose old vector nothing could remove."""
    memlog("append", input=memory("likes tea"))
    assert memlog("project", "--json").json["vectors_computed"] == 1
    memlog("append", input=memory("likes black tea"))
    assert memlog("query", "tea", "--json", env=without_extensions).json["hits"][0]["similarity"] is None
    assert memlog("status", "--json", env=without_extensions).json["vectors_pending"] == 1
    projected = memlog("project", "--json").json
    assert (projected["vectors_computed"], projected["vectors_pending"], projected["silent"]) == (1, 0, {})
    assert memlog("verify", "--json").json["vectors"] == 1
    assert (
        memlog("query", "tea", "--mode", "vector", "--json").json["hits"][0]["content"] == "likes black tea"
    )


def test_an_extension_that_does_not_load_is_like_none(memlog: Run, tmp_path: Path) -> None:
    broken = _python_that_runs(_BROKEN_VEC0, tmp_path / "broken")
    (tmp_path / "broken" / "vec0.so").write_bytes(b"not for this machine")
    memlog("append", input=memory("likes tea"))
    done = memlog("query", "tea", "--json", env=broken)
    assert [hit["id"] for hit in done.json["hits"]] == ["y1"]
    assert "cannot load" in done.json["silent"]["vector"]
    assert str(tmp_path / "broken" / "vec0") in done.json["silent"]["vector"]


def test_status_says_what_works_here(memlog: Run) -> None:
    memlog("append", input=memory("likes tea"))
    memlog("project", "--no-embed")
    status = memlog("status", "--json").json
    assert (status["model"], status["dimension"]) == ("all-MiniLM-L6-v2/int8/8199be6f699a/mean/512", 384)
    assert status["sqlite_vec"].startswith("0.1.")
    assert (status["vector_model"], status["vectors_pending"]) == (status["model"], 1)
    assert status["silent"] == {"pending": "1 passages have no vector yet: project the log"}
    memlog("project")
    status = memlog("status", "--json").json
    assert (status["vector_model"], status["silent"]) == (status["model"], {})
