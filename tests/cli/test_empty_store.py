"""Reads of a store in which nothing stands yet: an empty answer, exit 0, and behind it the whole schema."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from memlog.projector.sqlite import connect
from tests.support.places import FIXTURES
from tests.support.sample_calls import BY_OPERATION, PROJECTS, arguments_of

MAKE_NO_MODEL = {
    *("erasure.secrets", "exchange.export_sqlite", "extraction.prompt", "jobs.list", "maintenance.verify"),
    *PROJECTS,
}
"""Operations that read without a read model."""

READS = [
    path
    for path, each in BY_OPERATION.items()
    if each.effect == "read" and not each.missing and each.name not in MAKE_NO_MODEL
]
SAYS: dict[tuple[str, ...], Any] = {
    ("query", "tea", "--mode", "text"): {"hits": []},
    ("query", "tea", "--mode", "vector"): {"hits": []},
    ("context", "tea"): {"entries": []},
    ("core", "get"): {"user": {}, "agent": {}},
    ("docs", "refresh"): {"sources": []},
    ("ask", "what is my city?"): {"found": False, "answer": "I don't have that stored yet"},
    ("jobs", "run"): {"reports": []},
    ("prune",): {"memories": [], "archived": 0},
    ("session", "content", "cli:1"): {"messages": 0, "content": ""},
    ("stats",): {"events_by_type": {}, "passages": 0, "log_bytes": 0},
    ("status",): {"events": 0, "memories": 0, "vectors_pending": 0},
    ("digest",): {"content": False},
}
"""What commands say of an empty store where that is not only empty lists."""


def schema_of(store: Path) -> list[tuple[str, str, str]]:
    """Type, name and SQL of all that the live generation holds but SQLite's own tables."""
    generation = store / "model" / (store / "model" / "CURRENT").read_text().strip()
    db = connect(generation, "immutable")
    try:
        found: list[tuple[str, str, str]] = db.execute(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            " ORDER BY type, name"
        ).fetchall()
    finally:
        db.close()
    return found


@pytest.fixture(scope="module")
def whole_schema(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """The schema of a store that was projected with all vectors."""
    store = tmp_path_factory.mktemp("full")
    fixture = FIXTURES / "week" / "log"
    shutil.copytree(fixture / "memory", store / "log" / "memory")
    with library.open(store) as opened:
        opened.maintenance.project()
    return schema_of(store)


def test_a_read_of_an_empty_store_is_empty_and_makes_the_whole_schema(
    memlog_here, empty_store, whole_schema, tmp_path
):
    assert {"vec_memory", "vec_docs"} <= {name for _, name, _ in whole_schema}
    for command in [*((*path, *arguments_of(path, tmp_path)) for path in READS), *SAYS]:
        done = memlog_here(*command, "--json")
        assert done.code == (1 if command[:2] == ("fact", "get") else 0), (command, done.err)
        empty = {name: [] for name, each in done.json.items() if isinstance(each, list)}
        assert done.json.items() >= SAYS.get(command, empty).items(), command
        assert schema_of(empty_store) == whole_schema, command
        shutil.rmtree(empty_store / "model")


def test_what_is_missing_in_an_empty_store_has_the_code_of_its_operation(memlog_here, empty_store, tmp_path):
    for path, operation in BY_OPERATION.items():
        if operation.missing and arguments_of(path, tmp_path):
            done = memlog_here(*path, *arguments_of(path, tmp_path), "--json")
            assert (done.code, done.error["code"]) == (1, operation.missing), path
    assert not any((empty_store / "log").rglob("*.jsonl"))


def test_without_a_model_the_schema_has_all_but_vectors(memlog, empty_store, tmp_path, whole_schema):
    done = memlog("window", "--chat", "cli:1", env={"MEMLOG_MODEL": str(tmp_path / "nowhere")})
    assert done.code == 0, done.err
    assert schema_of(empty_store) == [row for row in whole_schema if "vec_" not in row[1]]
