"""Databases of strangers: what computes its values is not read, and two imports at once write once."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

import memlog
from tests.support.command_tree import MEMLOG

COLUMNS = (
    "id INTEGER, tier INTEGER, project TEXT, topic TEXT, category TEXT, importance REAL, source TEXT,"
    " created_at TEXT, updated_at TEXT, last_accessed TEXT, access_count INTEGER, is_archived INTEGER"
)
PLAIN = f"CREATE TABLE memories ({COLUMNS}, content TEXT)"
ROW = "INSERT INTO memories (id, tier, content, created_at) VALUES (1, 2, 'Anna likes tea', '2026-01-01')"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 2 AS tier FROM n"
HOSTILE = {
    "generated": [
        f"CREATE TABLE memories ({COLUMNS}, content TEXT AS (hex(zeroblob(50000000))))",
        "INSERT INTO memories (id, tier) VALUES (1, 2)",
    ],
    "generated beside": [
        f"CREATE TABLE memories ({COLUMNS}, content TEXT, more TEXT AS (hex(zeroblob(50000000))))",
        ROW,
    ],
    "another case": [f"CREATE TABLE Memories ({COLUMNS.upper()}, Content TEXT)", ROW],
    "endless view": [f"CREATE VIEW memories AS {ENDLESS}"],
    "virtual": ["CREATE VIRTUAL TABLE memories USING fts5(id, tier, content)"],
}


def database(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE daily_events (id INTEGER)")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_what_computes_its_values_is_not_read(tmp_path: Path, name: str) -> None:
    path = database(tmp_path / "a.db", *HOSTILE[name])
    with memlog.open(tmp_path / "store", create=True) as store:
        report = store.exchange.import_from("tiered", [path])
        found = [memory.content for memory in store.memories.list()]
    assert found == (["Anna likes tea"] if name in ("generated beside", "another case") else [])
    assert any("no such table" in each.why for each in report.problems) is (
        name in ("endless view", "virtual")
    )


def test_rows_that_are_older_than_their_columns_are_read(tmp_path: Path) -> None:
    more = [
        f"ALTER TABLE memories ADD COLUMN more{n} TEXT NOT NULL DEFAULT 'by-the-old-version-of-the-program'"
        for n in range(9)
    ]
    rows = [f"INSERT INTO memories (id, tier, content) VALUES ({n}, 2, 'row {n}')" for n in range(500)]
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE memories (id INTEGER, tier INTEGER, content TEXT)",
        *rows,
        *more,
        "ALTER TABLE memories ADD COLUMN category TEXT NOT NULL DEFAULT 'not-named-by-the-old-version'",
    )
    with memlog.open(tmp_path / "store", create=True) as store:
        report = store.exchange.import_from("tiered", [path])
        assert report.problems == []
        assert len(store.memories.list()) == 500


def test_two_first_imports_at_once_write_nothing_twice(tmp_path: Path) -> None:
    rows = [
        f"INSERT INTO memories (id, tier, content, created_at) VALUES ({n}, 2, 'row {n}', '2026-01-01')"
        for n in range(300)
    ]
    path = database(tmp_path / "a.db", PLAIN, *rows)
    command = [MEMLOG, "--store", tmp_path / "store", "import", "tiered", path]
    for process in [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "12"]:
        assert process.communicate(timeout=60)
        assert process.returncode == 0
    lines = [line for file in (tmp_path / "store/log/memory").rglob("*.jsonl") for line in file.open("rb")]
    assert len(lines) == 300
