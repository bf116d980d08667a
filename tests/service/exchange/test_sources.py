"""Two sources with the same ids are told apart, and one source is known again whatever has changed in it."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import memlog
from tests.support.places import FIXTURES

SAMPLES = FIXTURES / "imports"
OLD_STORE = SAMPLES / "store-0.1.0"


class Row(NamedTuple):
    """A memory of a tiered engine."""

    id: int
    content: str
    created: str | None = "2026-01-10 08:00:00"
    updated: str | None = None
    archived: int = 0
    tier: int = 2
    accessed: str | None = None


ANNA = [
    Row(1, "Anna is allergic to penicillin", "2026-01-10 08:00:00", "2026-01-10 08:00:00"),
    Row(2, "The savings book is in the blue box", "2026-01-11 08:00:00", "2026-01-11 08:00:00"),
]
BOB = [
    Row(1, "Bob takes penicillin", "2025-03-01 10:00:00", "2026-05-01 10:00:00", accessed="2026-05-01"),
    Row(2, "Bob has sold the boat", "2025-03-02 10:00:00", "2026-05-02 10:00:00", archived=1),
]


def tiered(
    path: Path, rows: Iterable[Row], days: Iterable[tuple[Any, ...]] = (), *, key: bool = True
) -> Path:
    """A database of the tiered engine with these rows alone. key: whether an id is there but once."""
    script = (SAMPLES / "tiered.sql").read_text(encoding="utf-8")
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script if key else script.replace("id INTEGER PRIMARY KEY", "id INTEGER"))
        for table in ("memories", "daily_events", "extraction_buffer"):
            db.execute(f"DELETE FROM {table}")
        for row in rows:
            db.execute(
                "INSERT INTO memories VALUES (?, ?, '', 'topic', 'other', ?, .5, 'llm', ?, ?, ?, ?, ?, NULL)",
                (
                    *(row.id, row.tier, row.content, row.created, row.updated),
                    *(row.accessed, int(row.accessed is not None), row.archived),
                ),
            )
        db.executemany("INSERT INTO daily_events VALUES (?, ?, 'telegram', 'x', ?, 9, ?)", days)
        db.commit()
    return path


def of_tiered(folder: Path, who: str) -> Path:
    year, changed = ("2026", "") if who == "Anna" else ("2025", " again")
    rows = [
        Row(1, f"{who} is allergic", f"{year}-01-10", f"{year}-12-01" if changed else f"{year}-01-10"),
        Row(2, f"{who} has a boat", f"{year}-01-11", f"{year}-12-02", archived=int(bool(changed))),
        Row(3, f"{who} is a cook", f"{year}-01-12", f"{year}-12-03", tier=1),
    ]
    return tiered(
        folder / "memory.db", rows, [(1, f"{year}-01-10", f"{who} ordered tea", int(bool(changed)))]
    )


def of_memory_service(folder: Path, who: str) -> Path:
    with closing(sqlite3.connect(folder / "index.db")) as db:
        script = (SAMPLES / "memory-service.sql").read_text(encoding="utf-8")
        db.executescript(script)
        year = "2026" if who == "Anna" else "2025"
        db.execute("UPDATE memories SET created_at = ?, salience = .5", (f"{year}-01-10",))
        db.commit()
    for name in ("decisions/a1.md", "context/a2.md"):
        (folder / name).parent.mkdir()
        (folder / name).write_text(f"{who} decided {name}")
    return folder


def of_chatdo(folder: Path, who: str) -> Path:
    for name in ("tracking", "index"):
        script = (SAMPLES / f"{name}.sql").read_text(encoding="utf-8")
        year = "2026" if who == "Anna" else "2025"
        for word in ("Blue", "Green", "Black", "Turku", "Noted"):
            script = script.replace(f"'{word}", f"'{who} {word}")
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as db:
            db.executescript(script.replace("2026", year).replace("'My ", f"'{who}: my "))
    return folder


def of_mcp_memory(folder: Path, who: str) -> Path:
    entity = {"type": "entity", "name": "user", "entityType": "person", "observations": [f"{who} cooks"]}
    relation = {"type": "relation", "from": "user", "to": "tea", "relationType": "likes"}
    (folder / "memory.json").write_text(f"{json.dumps(entity)}\n{json.dumps(relation)}\n")
    return folder


def of_klaw(folder: Path, who: str) -> Path:
    (folder / "core_memory.json").write_text(json.dumps({"user": {"name": who, "city": f"{who}'s"}}))
    return folder


PEOPLE: dict[str, Callable[[Path, str], Path]] = {
    "tiered": of_tiered,
    "memory-service": of_memory_service,
    "chatdo": of_chatdo,
    "mcp-memory": of_mcp_memory,
    "klaw": of_klaw,
}
"""By format: what makes the source of a person, with the same ids for each."""


def rows_of(store: memlog.Store, folder: Path) -> set[tuple[str, ...]]:
    """All that a store shows."""
    report = store.exchange.export_sqlite(folder / "rows.db", replace=True)
    with closing(sqlite3.connect(folder / "rows.db")) as db:
        return {
            (table, *map(str, row)) for table in report.tables for row in db.execute(f"SELECT * FROM {table}")
        }


def people(name: str, folder: Path, *names: str) -> list[Path]:
    for who in names:
        (folder / who).mkdir()
    return [PEOPLE[name](folder / who, who) for who in names]


@pytest.mark.parametrize("name", PEOPLE)
def test_a_second_person_with_the_same_ids_changes_nothing_and_has_all(name: str, tmp_path: Path) -> None:
    anna, bob, carl = people(name, tmp_path, "Anna", "Bob", "Carl")
    with memlog.open(tmp_path / "store") as store, memlog.open(tmp_path / "alone") as alone:
        first = store.exchange.import_from(name, [anna])
        before = rows_of(store, tmp_path)
        tried = store.exchange.import_from(name, [bob], dry_run=True)
        second = store.exchange.import_from(name, [bob])
        expected = alone.exchange.import_from(name, [bob])
        assert (second.appended, second.types) == (expected.appended, expected.types)
        assert (tried.appended, len(second.prefixes), second.refused) == (second.appended, 1, 0)
        assert before < rows_of(store, tmp_path)
        assert all("Anna" not in str(row) for row in rows_of(store, tmp_path) - before)
        again = store.exchange.import_from(name, [carl if name == "klaw" else bob, anna])
        assert (again.appended, again.known) == (
            (2, 2) if name == "klaw" else (0, first.events + second.events)
        )
        assert before < rows_of(store, tmp_path)


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("is_tried", [False, True])
def test_three_sources_in_one_import_are_three(is_tried: bool, is_folder: bool, tmp_path: Path) -> None:
    carl = [Row(1, "Carl sails", None), Row(2, "Carl reads", None)]
    paths = [tiered(tmp_path / f"{at}.db", rows) for at, rows in enumerate((ANNA, BOB, carl))]
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [tmp_path] if is_folder else paths, dry_run=is_tried)
        assert (report.appended, len(report.prefixes)) == (report.events, 2)


VERSIONS: dict[str, tuple[list[Row], list[str], list[str]]] = {
    "updated": ([Row(1, "third", updated="2026-03-01"), Row(2, "b")], ["b", "third"], []),
    "swapped": ([Row(2, "b"), Row(1, "third", updated="2026-03-01")], ["b", "third"], []),
    "fewer": ([Row(1, "third", updated="2026-03-01")], ["b", "third"], []),
    "archived": ([Row(1, "second", updated="2026-03-01", archived=1), Row(2, "b")], ["b"], ["second"]),
    "the same time": ([Row(1, "third", updated="2026-02-01"), Row(2, "b")], ["b", "third"], []),
    "a clock ahead": ([Row(1, "third", updated="2099-03-01"), Row(2, "b")], ["b", "third"], []),
    "emptied": ([Row(1, "", updated="2026-03-01"), Row(2, "b")], ["b", "second"], []),
}
"""By what has changed: a third version of a source, and the active and the archived memories then."""


@pytest.mark.parametrize("what", VERSIONS)
def test_each_version_of_a_source_arrives_once_and_an_older_one_changes_nothing(
    what: str, tmp_path: Path
) -> None:
    third, active, archived = VERSIONS[what]
    first = tiered(tmp_path / "1.db", [Row(1, "first"), Row(2, "b")])
    second = tiered(tmp_path / "2.db", [Row(1, "second", updated="2026-02-01"), Row(2, "b")])
    last = tiered(tmp_path / "3.db", third)
    with memlog.open(tmp_path / "store") as store:
        for path in (first, second, last):
            store.exchange.import_from("tiered", [path])
            assert store.exchange.import_from("tiered", [path]).appended == 0
        for path in (first, second, last):
            found = [
                sorted(each.content for each in store.memories.list(archived=is_archived))
                for is_archived in (False, True)
            ]
            assert found == [active, archived]
            assert store.exchange.import_from("tiered", [path]).appended == 0


@pytest.mark.parametrize("updated", ["2026-02-01", "2026-03-01", None])
def test_what_is_active_again_in_the_source_is_active_again(updated: str | None, tmp_path: Path) -> None:
    active = tiered(tmp_path / "active.db", [Row(1, "a", updated=updated)])
    archived = tiered(tmp_path / "archived.db", [Row(1, "a", updated=updated and "2026-02-01", archived=1)])
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [archived])
        store.memories.update("tiered/1", category="identity")
        for _ in range(2):
            assert store.exchange.import_from("tiered", [active]).types == {"memory_saved": 1}
            assert store.exchange.import_from("tiered", [active]).appended == 0
            assert [(each.content, each.category) for each in store.memories.list()] == [("a", "identity")]
            if updated == "2026-03-01":
                break
            assert store.exchange.import_from("tiered", [archived]).types == {"memory_archived": 1}
            assert store.memories.list() == []
        store.memories.archive("tiered/1")
        store.exchange.import_from("tiered", [active])
        assert store.memories.list() == []


OLDER: dict[str, list[list[Row]]] = {
    "the first that is imported is the newest": [
        [Row(1, "c", updated="2026-04-01"), Row(2, "z", updated="2026-04-01", archived=1)],
        [Row(1, "a"), Row(2, "x")],
    ],
    "between two that are known": [
        [Row(1, "a"), Row(2, "x")],
        [Row(1, "c", updated="2026-04-01"), Row(2, "z", updated="2026-04-01")],
        [Row(1, "b", updated="2026-03-01"), Row(2, "y", updated="2026-03-01")],
    ],
    "archived then": [
        [Row(1, "a", updated="2026-04-01")],
        [Row(1, "a", updated="2026-03-01", archived=1)],
    ],
    "core memory": [[Row(1, "c", updated="2026-04-01", tier=1)], [Row(1, "a", tier=1)]],
    "of a clock ahead": [
        [Row(1, "a"), Row(2, "x")],
        [Row(1, "c", updated="2099-04-01"), Row(2, "x", updated="2099-04-01", archived=1)],
        [Row(1, "b", updated="2099-03-01"), Row(2, "x", updated="2099-03-01")],
    ],
}
"""By what it is: versions of a source in the order of their imports; the last is an older copy."""


@pytest.mark.parametrize("what", OLDER)
def test_an_older_copy_of_a_source_changes_nothing(what: str, tmp_path: Path) -> None:
    *versions, older = OLDER[what]
    with memlog.open(tmp_path / "store") as store:
        for rows in versions:
            store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        before = rows_of(store, tmp_path)
        report = store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", older)])
        assert (report.appended, report.changed, report.prefixes) == (0, 0, [])
        assert rows_of(store, tmp_path) == before


@pytest.mark.parametrize("name", ["tiered", "memory-service"])
def test_what_was_forgotten_stays_forgotten_where_the_other_half_was_edited(
    name: str, tmp_path: Path
) -> None:
    (path,) = people(name, tmp_path, "Anna")
    if name == "tiered":
        tiered(path, ANNA)
    else:
        with closing(sqlite3.connect(path / "index.db")) as db:
            db.execute("UPDATE memories SET updated_at = created_at")
            db.commit()
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from(name, [path])
        store.erasure.forget(memory=f"{name}/1" if name == "tiered" else f"{name}/a1")
        if name == "tiered":
            tiered(path, [ANNA[0], ANNA[1]._replace(content="The savings book is gone")])
        else:
            (path / "context/a2.md").write_text("edited")
        report = store.exchange.import_from(name, [path])
        assert (report.types, report.prefixes, report.changed) == ({}, [], 1)


def test_masked_keys_hide_neither_what_is_known_nor_what_is_new(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 4
    anna = [Row(1, f"The key is {key}"), Row(2, "b")]
    changed = [Row(1, f"The new key is {key}", updated="2026-02-01"), Row(2, "b")]
    bob = [Row(1, f"Bob's key is {key}", "2025-01-01"), Row(2, "c", "2025-01-01")]
    with memlog.open(tmp_path / "store", redact=True) as store:
        for rows, appended in ((anna, 2), (changed, 1), (bob, 2), (changed, 0), (anna, 0), (bob, 0)):
            report = store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
            assert (report.appended, report.changed, len(report.prefixes)) == (appended, 0, int(rows is bob))
        assert store.erasure.prove("a1B2c3D4e5").found == []


def test_what_fades_and_recovers_in_the_source_and_each_access_arrives(tmp_path: Path) -> None:
    (path,) = people("memory-service", tmp_path, "Anna")
    found = []
    with memlog.open(tmp_path / "store") as store:
        for salience, accessed in ((0.5, 12), (0.2, 13), (1.0, 13), (1.0, 14)):
            with closing(sqlite3.connect(path / "index.db")) as db:
                row = (salience, f"2026-01-{accessed} 08:00:00")
                db.execute("UPDATE memories SET salience = ?, last_accessed = ? WHERE id = 'a2'", row)
                db.commit()
            store.exchange.import_from("memory-service", [path])
            memory = store.memories.get("memory-service/a2")
            assert memory is not None
            found.append((memory.salience, memory.access_count))
    assert found == [(0.5, 2), (0.2, 3), (1.0, 3), (1.0, 4)]


@pytest.mark.parametrize("updated", ["2026-02-01 10:00:00", "2099-02-01 10:00:00"])
@pytest.mark.parametrize("change", ["update", "archive", "delete", "core"])
def test_what_a_person_changed_later_holds(change: str, updated: str, tmp_path: Path) -> None:
    tier = 1 if change == "core" else 2
    first = tiered(tmp_path / "1.db", [Row(1, "first", tier=tier, archived=0)])
    second = tiered(tmp_path / "2.db", [Row(1, "second", updated=updated, tier=tier)])
    with memlog.open(tmp_path / "store") as store:
        if change == "core":
            store.core.set("user", "topic", "mine")
        else:
            store.exchange.import_from("tiered", [first])
        if change == "update":
            store.memories.update("tiered/1", content="mine")
        elif change == "archive":
            store.memories.archive("tiered/1")
        elif change == "delete":
            store.memories.delete("tiered/1")
        store.exchange.import_from("tiered", [second])
        found = (
            [store.core.get("user", "topic")]
            if tier == 1
            else [each.content for each in store.memories.list()]
        )
        assert found == (["mine"] if change in ("update", "core") else [])


@pytest.mark.parametrize("is_second", [False, True])
def test_what_was_forgotten_stays_forgotten_whatever_its_source_says_later(
    is_second: bool, tmp_path: Path
) -> None:
    anna, bob = tiered(tmp_path / "a.db", ANNA), tiered(tmp_path / "b.db", BOB)
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [anna, bob] if is_second else [anna])
        prefix = report.prefixes[0] if is_second else "tiered"
        for number in (1, 2):
            store.erasure.forget(memory=f"{prefix}/{number}")
        store.erasure.scrub()
        before = store.memories.list()
        rows = [
            row._replace(content="forgotten", updated="2026-06-01", archived=0)
            for row in (BOB if is_second else ANNA)
        ]
        for kept in (rows, rows[:1], rows[1:]):
            report = store.exchange.import_from("tiered", [tiered(tmp_path / "later.db", kept)])
            assert (report.appended, report.forgotten) == (0, report.events)
        assert store.memories.list() == before


def test_a_forgotten_observation_takes_no_other_of_its_entity(tmp_path: Path) -> None:
    def entity(*observed: str) -> list[Path]:
        said = {"type": "entity", "name": "Me", "entityType": "person", "observations": observed}
        (tmp_path / "memory.json").write_text(json.dumps(said))
        return [tmp_path]

    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("mcp-memory", entity("is allergic to nuts", "likes tea"))
        store.erasure.forget(memory="mcp-memory/Me/1")
        source = entity("is allergic to nuts", "likes tea", "lives in Turku")
        report = store.exchange.import_from("mcp-memory", source)
        assert (report.appended, report.known, report.forgotten) == (1, 1, 1)
        contents = {each.content for each in store.memories.list()}
        assert contents == {"Me: likes tea", "Me: lives in Turku"}
        moved = entity("likes tea", "is allergic to nuts", "lives in Turku", "has a cat")
        assert store.exchange.import_from("mcp-memory", moved).types == {}


def test_archived_core_memory_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = [Row(1, "cook", tier=1, archived=1), Row(2, "b", archived=1)]
    with memlog.open(tmp_path / "store") as store:
        report = store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        assert (report.used, report.skipped, store.core.get("user")) == (1, {"archived": 1}, {})


def test_a_change_alone_that_was_forgotten_stays_away(tmp_path: Path) -> None:
    path = tiered(tmp_path / "a.db", [Row(1, "first")])
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [path])
        tiered(path, [Row(1, "the PIN", updated="2026-02-01")])
        store.exchange.import_from("tiered", [path])
        store.erasure.forget(event_id=store.memories.history("tiered/1")[1].id)
        assert store.exchange.import_from("tiered", [path]).appended == 0
        tiered(path, [Row(1, "third", updated="2026-03-01")])
        assert store.exchange.import_from("tiered", [path]).types == {"memory_updated": 1}


def test_one_id_twice_in_a_source_is_named_and_not_mixed(tmp_path: Path) -> None:
    rows = [Row(1, "first"), Row(1, "other", updated="2026-03-01", archived=1), Row(2, "b"), Row(2, "b")]
    path = tiered(tmp_path / "a.db", rows, key=False)
    with memlog.open(tmp_path / "store") as store:
        for appended in (2, 0):
            report = store.exchange.import_from("tiered", [path])
            assert (report.appended, report.refused) == (appended, 1)
            assert {each.where for each in report.problems} == {"tiered/1", "tiered/2"}
            assert sorted(each.content for each in store.memories.list()) == ["b", "first"]


SOURCES: dict[str, tuple[list[Row], list[Row], int]] = {
    "half is the same": (
        [Row(1, "a"), Row(2, "b")],
        [Row(1, "a"), Row(2, "x", "2025-01-01", "2026-02-01")],
        1,
    ),
    "less than half": (
        [Row(1, "a"), Row(2, "b"), Row(3, "c")],
        [Row(1, "a"), Row(2, "x", "2025-01-01"), Row(3, "y", "2025-01-01")],
        2,
    ),
    "no id in common": ([Row(1, "a")], [Row(2, "b", "2025-01-01")], 1),
    "one second, other texts": (
        [Row(1, "a"), Row(2, "b")],
        [Row(1, "x", updated="2026-02-01"), Row(2, "y")],
        2,
    ),
    "no times": ([Row(1, "a", None)], [Row(1, "x", None, "2026-02-01")], 2),
    "no times, one text of three": (
        [Row(id, text, None, "2026-01-01") for id, text in enumerate("abc")],
        [Row(id, text, None, f"2026-0{id + 1}-01") for id, text in enumerate("axy")],
        2,
    ),
    "no times, one text": ([Row(1, "a", None)], [Row(1, "a", None, "2026-02-01", 1)], 1),
}
"""By what two databases share: their rows, and how many sources they are."""


@pytest.mark.parametrize("what", SOURCES)
def test_a_source_is_known_by_half_of_its_records(what: str, tmp_path: Path) -> None:
    rows, others, count = SOURCES[what]
    with memlog.open(tmp_path / "store") as store:
        store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        report = store.exchange.import_from("tiered", [tiered(tmp_path / "b.db", others)])
        assert len(report.prefixes) + 1 == count
        if what == "half is the same":  # an id that was given anew is named, and changes nothing
            assert ([each.where for each in report.problems], report.refused) == (["tiered/2"], 1)
            assert sorted(each.content for each in store.memories.list()) == ["a", "b"]


def test_an_edited_day_is_named_also_if_it_was_compressed(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        for summary in ("Ordered tea", "Ordered tea and cake"):
            path = tiered(tmp_path / "a.db", ANNA, [(1, "2026-01-10", summary, 1)])
            report = store.exchange.import_from("tiered", [path])
        assert ([each.where for each in report.problems], report.appended) == (["tiered/day/1"], 0)


def test_of_two_sources_that_agree_the_one_with_more_records_is_it(tmp_path: Path) -> None:
    bob = [Row(1, "Bob 1", "2025-02-01"), Row(2, "Bob 2", "2025-02-02")]
    later = [row._replace(updated="2026-06-01", content=f"{row.content}, later") for row in bob]
    with memlog.open(tmp_path / "store") as store:
        for rows in ([Row(1, "Anna 1"), Row(14, "Anna 14", "2026-05-01")], bob):
            store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        rows = [*later, Row(14, "Bob 14", "2026-05-01", "2026-06-01")]
        report = store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        assert (len(report.prefixes), report.refused) == (1, 0)
        contents = {each.content for each in store.memories.list()}
        assert contents == {"Anna 1", "Anna 14", *(row.content for row in rows)}


def test_a_store_of_an_older_version_is_taken_over(tmp_path: Path) -> None:
    shutil.copytree(OLD_STORE, tmp_path / "store")
    rows = [
        Row(1, "Anna is allergic to penicillin, nuts and bees", "2026-01-10 08:00:00", "2026-03-01 10:00:00"),
        Row(2, "The savings book is in the blue box", "2026-01-11 08:00:00", "2026-03-02 10:00:00"),
        Row(3, "The PIN is 4711, and the door code 0815", "2026-01-12 08:00:00", "2026-03-03 10:00:00"),
        Row(4, "baker", "2026-01-13 08:00:00", "2026-03-04 10:00:00", tier=1, accessed="2026-03-04"),
        Row(5, "Anna has a cat", "2026-01-14 08:00:00", accessed="2026-03-05"),
    ]
    with memlog.open(tmp_path / "store") as store:
        assert store.maintenance.verify().ok
        bob = store.exchange.import_from("tiered", [tiered(tmp_path / "b.db", BOB)])
        assert (bob.appended, len(bob.prefixes)) == (bob.events, 1)
        report = store.exchange.import_from("tiered", [tiered(tmp_path / "a.db", rows)])
        assert (report.forgotten, report.prefixes) == (2, [])
        assert report.types == {
            "memory_updated": 1,
            "memory_saved": 1,
            "memory_accessed": 1,
            "core_memory_updated": 1,
        }
        assert store.core.get("user", "topic") == "baker"
        contents = {each.content for each in store.memories.list()}
        assert contents == {rows[0].content, rows[1].content, rows[4].content, BOB[0].content}
        assert store.exchange.import_from("tiered", [tmp_path / "a.db", tmp_path / "b.db"]).appended == 0
