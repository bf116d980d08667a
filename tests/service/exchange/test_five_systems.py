"""Rows of docs/five-systems.md about data of the five systems, in the layouts of their own documents."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import memlog
from tests.support.places import FIXTURES

SAMPLE = FIXTURES / "imports/memory-service.sql"


def memory_service(folder: Path, paths: dict[str, str], *, accesses: int = 0) -> Path:
    """An index.db in its folder: paths are those of the database, and of the files."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "index.db")) as db:
        db.executescript(SAMPLE.read_text(encoding="utf-8"))
        db.execute("DELETE FROM memories")
        for number, (path, file) in enumerate(paths.items(), start=1):
            row = (f"m{number}", "2026-01-10 08:00:00", "2026-01-12 08:00:00", accesses, path)
            db.execute("INSERT INTO memories VALUES (?1, ?1, 'context', ?2, ?2, ?3, ?4, 1.0, ?5)", row)
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(f"text of {file}")
        db.commit()
    return folder


@pytest.mark.parametrize("moved_to", ["data/memory", "backup"])
@pytest.mark.parametrize("names_database", [False, True])
def test_index_db_and_its_markdown_files(moved_to: str, names_database: bool, tmp_path: Path) -> None:
    files = ("context/a1.md", "decisions/a2.md", "summaries/a3.md")
    folder = memory_service(tmp_path / moved_to, {f"data/memory/{name}": name for name in files})
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from(
            "memory-service", [folder / "index.db" if names_database else tmp_path]
        )
        assert (report.used, report.unreadable) == (3, 0)
        assert {each.content for each in store.memories.list()} == {f"text of {name}" for name in files}


def test_access_count(tmp_path: Path) -> None:
    folder = memory_service(tmp_path / "memory", {"data/memory/context/a1.md": "context/a1.md"}, accesses=7)
    found = []
    with memlog.open(tmp_path / "store") as store:
        for count, day in ((7, 12), (7, 12), (9, 13), (8, 12)):
            with closing(sqlite3.connect(folder / "index.db")) as db:
                row = (count, f"2026-01-{day} 08:00:00")
                db.execute("UPDATE memories SET access_count = ?, last_accessed = ?", row)
                db.commit()
            store.exchange.import_from("memory-service", [folder])
            (memory,) = store.memories.list()
            found.append((memory.access_count, (memory.last_accessed or "")[:10]))
        assert store.maintenance.stats().counters["memory.retrieved.count"] == 0
    assert found == [(7, "2026-01-12"), (7, "2026-01-12"), (9, "2026-01-13"), (9, "2026-01-13")]
