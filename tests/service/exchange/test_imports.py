"""What other programs keep becomes events, once, and each record is accounted for."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

import memlog
from memlog.eventlog.codec import encode
from tests.support.places import FIXTURES

SAMPLES = FIXTURES / "imports"


def database(script: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript((SAMPLES / f"{script}.sql").read_text(encoding="utf-8"))
    return path


def tiered(folder: Path) -> Path:
    return database("tiered", folder / "memory.db")


def chatdo(folder: Path) -> Path:
    database("tracking", folder / "chatdo/tracking.sqlite")
    database("index", folder / "chatdo/project-p1/index.sqlite")
    return folder / "chatdo"


def memory_service(folder: Path) -> Path:
    shutil.copytree(SAMPLES / "memory-service", folder / "memory")
    database("memory-service", folder / "memory/index.db")
    return folder / "memory"


def klaw(_: Path) -> Path:
    return SAMPLES / "klaw"


def memory_folder(_: Path) -> Path:
    return SAMPLES / "memory-folder"


MADE: dict[str, tuple[Callable[[Path], Path], dict[str, int], tuple[int, int, int]]] = {
    "tiered": (
        tiered,
        {
            "core_memory_updated": 1,
            "memory_saved": 3,
            "memory_updated": 1,
            "memory_accessed": 1,
            "memory_archived": 1,
            "daily_event_recorded": 2,
            "daily_events_compressed": 1,
            "message": 1,
        },
        (8, 7, 0),
    ),
    "chatdo": (chatdo, {"fact_stored": 4, "message": 2}, (7, 6, 0)),
    "memory-service": (memory_service, {"memory_saved": 1}, (2, 1, 1)),
    "klaw": (klaw, {"core_memory_updated": 3}, (3, 3, 0)),
    "mcp-memory": (lambda _: SAMPLES / "mcp-memory", {"memory_saved": 4}, (3, 3, 0)),
    "memory-folder": (
        memory_folder,
        {"core_memory_updated": 2, "memory_saved": 3, "daily_event_recorded": 2},
        (7, 7, 0),
    ),
}
"""By format: what makes the sample, its events by type, and records found, used and unreadable."""


@pytest.mark.parametrize("name", MADE)
def test_a_sample_becomes_events_once_and_every_record_is_accounted_for(name: str, tmp_path: Path) -> None:
    make, types, (found, used, unreadable) = MADE[name]
    path = make(tmp_path)
    with memlog.open(tmp_path / "store") as store:
        tried = store.exchange.import_from(name, [path], dry_run=True)
        assert not (tmp_path / "store/log").exists()
        report = store.exchange.import_from(name, [path])
        assert tried.types == report.types == types
        assert (report.found, report.used, report.unreadable) == (found, used, unreadable)
        assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
        assert report.events == report.appended == sum(types.values())
        assert store.maintenance.stats().events_by_type == dict(sorted(types.items()))
        again = store.exchange.import_from(name, [path])
        assert (again.appended, again.known, again.events) == (0, report.events, report.events)
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.digest() == digest


def test_an_import_encodes_each_event_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode_one, encoded = encode._encode_draft, []
    monkeypatch.setattr(
        encode, "_encode_draft", lambda event, source: encoded.append(event) or encode_one(event, source)
    )
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [tiered(tmp_path)])
    assert len(encoded) == report.appended + 1 == 12  # and the line that names them


def test_texts_times_kinds_and_ranks_are_those_of_the_source(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [tiered(tmp_path)])
        assert report.unknown_columns == {"memories.mood": 1}
        assert report.skipped == {"empty": 1}
        tea = store.memories.get("tiered/2")
        assert tea is not None
        assert (tea.content, tea.topic, tea.category, tea.tags) == (
            "We order sencha from Uji",
            "tea",
            "decisions",
            ["teapot"],
        )
        assert (tea.created_at, tea.updated_at, tea.last_accessed) == (
            "2026-01-11T09:30:00.000Z",
            "2026-02-01T10:00:00.000Z",
            "2026-02-02T11:00:00.000Z",
        )
        assert [each.memory_id for each in store.memories.list(archived=True)] == ["tiered/3"]
        assert [hit.id for hit in store.search("улун", k=1, mode="text").hits] == ["tiered/5"]
        assert store.core.get("user", "occupation") == "cook in a tea house"
        first, second = store.daily.list()
        assert (first.event_date, first.summary, bool(first.compressed_at)) == (
            "2026-01-11",
            "Ordered tea",
            True,
        )
        assert second.compressed_at is None
        store.exchange.import_from("chatdo", [chatdo(tmp_path)])
        ranked = store.facts.get("favorite_colors", chat="chatdo:t1").facts
        assert [(each.rank, each.value) for each in ranked] == [(1, "Blue"), (2, "Green"), (3, "Black")]
        assert [each.id for each in store.conversations.window("chatdo:t1").messages] == [
            "chatdo/project-p1/t1/m1",
            "chatdo/project-p1/t1/m2",
        ]
        store.exchange.import_from("memory-folder", [SAMPLES / "memory-folder"])
        assert store.core.get("user", "city") == "Turku"
        kettle = "The kettle holds two litres\n  and whistles."
        assert kettle in [each.content for each in store.memories.list(topic="Tea")]
        assert "Печь починили" in [each.summary for each in store.daily.list(date="2026-02-24")]


def test_what_has_changed_in_the_source_is_named_and_not_doubled(tmp_path: Path) -> None:
    path = tiered(tmp_path)
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [path])
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE memories SET content = 'The oven is new' WHERE id = 3")
            db.commit()
        report = store.exchange.import_from("tiered", [path])
        assert (report.appended, report.changed, report.problems[0].where) == (0, 1, "tiered/3")


def test_notes_that_have_moved_are_neither_doubled_nor_brought_back(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "people").mkdir(parents=True)
    (notes / "MEMORY.md").write_text("# Tea\n\n- green\n- my PIN is 4711\n")
    (notes / "people/MEMORY.md").write_text("# Tea\n\n- Boris drinks none\n")
    with memlog.open(tmp_path / "store") as store:
        assert store.exchange.import_from("memory-folder", [notes]).appended == 3
        store.erasure.forget(memory="memory-folder/MEMORY/Tea/2")
        (notes / "MEMORY.md").write_text("# Tea\n\n- black\n- green\n- my PIN is 4711\n")
        report = store.exchange.import_from("memory-folder", [notes])
        assert (report.appended, report.changed, report.forgotten, report.refused) == (0, 0, 1, 1)
        (notes / "people/MEMORY.md").write_text("# Tea\n\n- Boris drinks none\n- Boris likes it dark\n")
        assert store.exchange.import_from("memory-folder", [notes]).appended == 1
        store.erasure.forget(memory="memory-folder/people/MEMORY/Tea/2")
        (notes / "people/MEMORY.md").write_text(
            "# Tea\n\n- Boris drinks none\n- Boris has a cat\n- Boris likes it dark\n"
        )
        assert store.exchange.import_from("memory-folder", [notes]).appended == 0
        assert not {"PIN", "dark"} & {*str(store.memories.list()).replace("'", " ").split()}


def test_a_placeholder_is_named_and_not_imported(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    user = "# User\n\n- name: <name>\n- city: Turku\n- allergies: none\n"
    notes = "# Notes\n\n- Bank: {bank}\n- No memories.\n- Works at Example Ltd\n"
    (tmp_path / "notes/MEMORY.md").write_text(user + notes)
    tiered_db = tiered(tmp_path)
    with closing(sqlite3.connect(tiered_db)) as db:
        db.execute("UPDATE memories SET content = '<content>' WHERE id IN (1, 2)")
        db.execute("UPDATE extraction_buffer SET content = 'none'")
        db.commit()
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("memory-folder", [tmp_path / "notes"])
        assert report.refused == 3
        assert {each.why for each in report.problems} == {"it is a placeholder without content"}
        assert store.core.get("user") == {"city": "Turku", "allergies": "none"}
        assert [each.content for each in store.memories.list()] == ["Works at Example Ltd"]
        store.exchange.import_from("tiered", [tiered_db])
        assert "<content>" not in str((store.memories.list(), store.core.get("user")))
        (chat,) = store.conversations.sessions()
        assert [each.content for each in store.conversations.window(chat.chat).messages] == ["none"]


def test_a_note_keeps_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    code = "```sh\na\n\n## no heading\nb\n```"
    item = "- how to deploy:\n  - first\n    - then\n\n  more\n"
    text = f"---\ntags: [a]\n---\n# Deploy\n\n{item}- next\n\nRun\n{code}\n"
    (tmp_path / "notes/a.md").write_text(text)
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("memory-folder", [tmp_path / "notes"])
        found = sorted((each.topic, each.content) for each in store.memories.list())
        assert found == [
            ("Deploy", f"Run\n{code}"),
            ("Deploy", "how to deploy:\n  - first\n    - then\n\n  more"),
            ("Deploy", "next"),
        ]


def test_what_was_forgotten_does_not_come_back(tmp_path: Path) -> None:
    path = tiered(tmp_path)
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [path])
        store.erasure.forget(memory="tiered/2")
        report = store.exchange.import_from("tiered", [path])
        assert (report.appended, report.forgotten) == (0, 3)
        assert store.memories.get("tiered/2") is None


def test_half_a_source_then_all_is_the_same_as_all_at_once(tmp_path: Path) -> None:
    contents = []
    for parts in ((1, 300), (300,)):
        with memlog.open(tmp_path / f"store-{len(parts)}") as store:
            for count in parts:
                store.exchange.import_from("tiered", [_many(tmp_path / f"{len(parts)}-{count}.db", count)])
            contents.append(store.maintenance.digest(content=True))
    assert contents[0] == contents[1]


def test_ten_kills_leave_what_one_run_leaves(tmp_path: Path) -> None:
    path = _many(tmp_path / "many.db", 3000)
    program = (
        "import sys, memlog\n"
        "with memlog.open(sys.argv[1]) as store:\n"
        "    store.exchange.import_from('tiered', [sys.argv[2]])\n"
    )
    for number in range(10):
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "store"), str(path)])
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2 + number * 0.05)
        process.kill()
        process.wait(60)
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [path])
        assert report.appended + report.known == report.events == 3000
        assert store.maintenance.stats().events_by_type == {"memory_saved": 3000}


def _many(path: Path, count: int) -> Path:
    database("tiered", path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM memories")
        db.execute("DELETE FROM daily_events")
        db.execute("DELETE FROM extraction_buffer")
        row = "(?, 2, '', 'tea', 'other', ?, 0.5, 'llm', '2026-01-10 08:00:00', NULL, NULL, 0, 0, NULL)"
        texts = [(number, f"Cup number {number}") for number in range(count)]
        db.executemany(f"INSERT INTO memories VALUES {row}", texts)
        db.commit()
    return path


def _truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])


@pytest.mark.parametrize("fault", ["locked", "truncated", "foreign", "zip", "text"])
def test_a_database_that_cannot_be_read_is_reported_and_what_was_read_is_kept(
    fault: str, tmp_path: Path
) -> None:
    path = _many(tmp_path / "memory.db", 2000)
    holder = None
    if fault == "locked":
        program = (
            "import sqlite3, sys\n"
            "db = sqlite3.connect(sys.argv[1])\n"
            "db.execute('BEGIN EXCLUSIVE')\n"
            "print('locked', flush=True)\n"
            "sys.stdin.read()\n"
        )
        command = [sys.executable, "-c", program, str(path)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
    elif fault == "truncated":
        _truncated(path)
    elif fault == "foreign":
        path.unlink()
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE songs (id)")
    else:
        path.write_bytes(b"PK\x03\x04" + bytes(2000) if fault == "zip" else b"This is no database. " * 99)
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [path])
        assert report.unreadable == report.found > 1
        assert report.events == 0
        said = report.problems[0].why
        expected = {
            "locked": "database is locked: stop the program that writes to it",
            "foreign": "there is no such table",
            "zip": "it is a zip archive, unpack it",
            "text": "file is not a database",
            "truncated": "malformed: the .recover of the sqlite3 command",
        }
        assert expected[fault] in said
        if holder is not None:
            holder.communicate(timeout=60)
            assert store.exchange.import_from("tiered", [path]).appended == 2000


@pytest.mark.parametrize(
    "change",
    [
        "importance = 'high'",
        "content = CAST(x'636166e9' AS TEXT)",
        "created_at = 'once'",
        "id = id",
    ],
)
def test_an_odd_value_costs_its_record_alone_and_keys_are_masked(change: str, tmp_path: Path) -> None:
    path = tiered(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE memories SET {change} WHERE id = 3")
        db.execute("UPDATE memories SET content = ? WHERE id = 5", ("The key is ghp_" + "a1B2c3D4e5" * 4,))
        db.execute("UPDATE memories SET topic = ? WHERE id = 1", ("ghp_" + "a1B2c3D4e5" * 4,))
        db.commit()
    with memlog.open(tmp_path / "store", redact=True) as store:
        report = store.exchange.import_from("tiered", [path])
        assert report.found == report.used + sum(report.skipped.values()) + report.unreadable == 8
        assert (
            report.events
            == report.appended + report.known + report.updated + report.forgotten + report.refused
        )
        assert (report.unreadable, report.refused) == ("high" in change, 1)
        again = store.exchange.import_from("tiered", [path])
        assert (again.appended, again.changed) == (0, 0)
        assert store.erasure.prove("a1B2c3D4e5").found == []
        msgspec.json.encode(report)


def test_what_a_forgotten_memory_gains_later_stays_away(tmp_path: Path) -> None:
    path = tiered(tmp_path)
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [path])
        store.erasure.forget(memory="tiered/3")
        store.erasure.scrub()
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE memories SET updated_at = '2026-03-01' WHERE id = 3")
            db.commit()
        assert store.exchange.import_from("tiered", [path]).appended == 0
        assert store.erasure.prove("The oven is broken").found == []


def test_a_program_that_writes_is_not_locked_out_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = _many(tmp_path / "memory.db", 2000)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    with memlog.open(tmp_path / "store") as store:
        assert store.exchange.import_from("tiered", [path]).appended == 2000
    assert [each.name for each in tmp_path.glob("memory.db*")] == ["memory.db"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_notes_of_other_encodings_are_read_or_reported(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/MEMORY.md").write_text("- Ääni kuuluu\n", encoding=encoding)
    (tmp_path / "notes/2026-02-24.md").write_text("- Ordered tea\n")
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("memory-folder", [tmp_path / "notes"])
        contents = [each.content for each in store.memories.list()]
        assert contents == ([] if encoding == "latin-1" else ["Ääni kuuluu"])
        assert report.unreadable == (encoding == "latin-1")
        assert len(store.daily.list()) == 1


def test_a_source_that_has_nothing_of_the_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with memlog.open(tmp_path / "store") as store:
        for name in MADE:
            with pytest.raises(memlog.BadInput, match=f"no {name} data in"):
                store.exchange.import_from(name, [tmp_path / "empty"])
        with pytest.raises(memlog.BadInput, match="there is no format"):
            store.exchange.import_from("nothing", [tmp_path / "empty"])
        with pytest.raises(memlog.BadInput, match="does not exist"):
            store.exchange.import_from("tiered", [tmp_path / "nowhere"])


def test_an_export_has_the_rows_as_plain_tables(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [tiered(tmp_path)])
        store.exchange.import_from("chatdo", [chatdo(tmp_path)])
        report = store.exchange.export_sqlite(tmp_path / "out.db")
        assert report.tables == {
            "messages": 3,
            "memories": 3,
            "facts": 4,
            "core_memory": 1,
            "daily_events": 2,
        }
        with closing(sqlite3.connect(tmp_path / "out.db")) as db:
            rows = db.execute("SELECT value FROM facts WHERE kind = 'ranked' ORDER BY rank").fetchall()
            assert rows == [("Blue",), ("Green",), ("Black",)]
        with pytest.raises(memlog.BadInput, match="exists"):
            store.exchange.export_sqlite(tmp_path / "out.db")
        store.exchange.export_sqlite(tmp_path / "out.db", replace=True)
        with pytest.raises(memlog.BadInput, match="cannot be written"):
            store.exchange.export_sqlite(tmp_path / "nowhere/out.db")
        assert sorted(path.name for path in tmp_path.glob("*out*")) == ["out.db"]
