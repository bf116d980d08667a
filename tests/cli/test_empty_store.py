"""Reads of a store in which nothing stands yet: an empty answer, exit 0, and behind it the whole schema."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from memlog.projector.sqlite import connect
from tests.support.command_tree import COMMANDS, does_something
from tests.support.places import FIXTURES

READS: dict[tuple[str, ...], Any] = {
    ("query", "tea"): {"hits": []},
    ("query", "tea", "--mode", "text"): {"hits": []},
    ("query", "tea", "--mode", "vector"): {"hits": []},
    ("window", "--chat", "cli:1"): {"messages": []},
    ("buffer",): {"buffers": []},
    ("context", "tea"): {"entries": []},
    ("core", "get"): {"user": {}, "agent": {}},
    ("daily", "list"): {"daily_events": []},
    ("docs", "list"): {"sources": []},
    ("docs", "refresh"): {"sources": []},
    ("docs", "status"): {"sources": []},
    ("docs", "jobs"): {"jobs": []},
    ("docs", "tree"): {"sources": []},
    ("ask", "what is my city?"): {"found": False, "answer": "I don't have that stored yet"},
    ("fact", "get", "city"): {"found": False, "facts": []},
    ("fact", "list"): {"facts": []},
    ("memory", "list"): {"memories": []},
    ("jobs", "log"): {"runs": []},
    ("memory", "conflicts"): {"conflicts": []},
    ("jobs", "run"): {"reports": []},
    ("prune",): {"memories": [], "archived": 0},
    ("session", "content", "cli:1"): {"messages": 0, "content": ""},
    ("sessions",): {"sessions": []},
    ("summaries",): {"summaries": []},
    ("quarantine",): {"lines": []},
    ("stats",): {"events_by_type": {}, "passages": 0, "log_bytes": 0},
    ("status",): {"events": 0, "memories": 0, "vectors_pending": 0},
    ("digest",): {"content": False},
    ("workspace", "list"): {"workspaces": []},
}
"""What each command that reads the read model says of an empty store."""

OTHERS = {
    *(
        "core import",
        *("docs add", "docs show"),
        "doctor",
        "extract",
        "daily distil",
        "fact extract",
        "forget",
        "gate",
        "import",
        "jobs list",
        "memory history",
        "memory show",
        "memory unmerge",
        "project",
        *("projects list", "projects remove", "projects show"),
        "scrub",
    ),
    *("secrets", "show", "verify", "workspace add"),
}
"""Commands that print records, too: they write, make no read model, or are asked for one thing, which is not
there."""


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


def test_a_read_of_an_empty_store_is_empty_and_makes_the_whole_schema(memlog, empty_store, whole_schema):
    assert {"vec_memory", "vec_docs"} <= {name for _, name, _ in whole_schema}
    for command, expected in READS.items():
        done = memlog(*command, "--json")
        assert done.code == (1 if command[:2] == ("fact", "get") else 0), (command, done.err)
        assert done.json.items() >= expected.items(), command
        assert schema_of(empty_store) == whole_schema, command
        shutil.rmtree(empty_store / "model")


def test_without_a_model_the_schema_has_all_but_vectors(memlog, empty_store, tmp_path, whole_schema):
    done = memlog("window", "--chat", "cli:1", env={"MEMLOG_MODEL": str(tmp_path / "nowhere")})
    assert done.code == 0, done.err
    assert schema_of(empty_store) == [row for row in whole_schema if "vec_" not in row[1]]


def test_every_command_that_reads_is_tried_on_an_empty_store():
    prints_records = {
        " ".join(path)
        for path, command in COMMANDS.items()
        if does_something(command) and any(option.name == "format" for option in command.params)
    }
    words = {" ".join(command) for command in READS}
    tried = {name for name in prints_records if any(f"{word} ".startswith(f"{name} ") for word in words)}
    assert tried
    assert prints_records - tried == OTHERS
