"""memlog import memory-folder: journals, Logseq's graphs, and notes that change."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog

DAYS = {
    "2026-02-24": "2026-02-24",
    "2026_02_24": "2026-02-24",
    "20260225": "2026-02-25",
    "2026.02.26": "2026-02-26",
    "2026 02 26": "2026-02-26",
    "26-02-2026": "2026-02-26",
    "26.02.2026": "2026-02-26",
    "03-04-2026": "2026-04-03",
    "02-27-2026": "2026-02-27",
    "Feb 27th, 2026": "2026-02-27",
    "February 1st, 2026": "2026-02-01",
    "Friday, February 27, 2026": "2026-02-27",
    "27 Feb 2026": "2026-02-27",
    "2026-02-24 Tuesday": "2026-02-24",
    "2026-02-24-standup": "2026-02-24",
    "2026-2-3": "2026-02-03",
    "3.2.2026": "2026-02-03",
    "2026-Feb-15": "2026-02-15",
    "15_Feb_2026": "2026-02-15",
    "Feb-16-2026": "2026-02-16",
    "Sat, 14-02-2026": "2026-02-14",
    "Sat, 2026-02-14": "2026-02-14",
    "v1.2.2026": None,
    "2026-02-30": None,
    "2026-02": None,
    "2026-W09": None,
    "202602251": None,
    "Foo 27th, 2026": None,
}
"""The days of journals by their names; None for a note that is no journal."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[memlog.Store]:
    with memlog.open(tmp_path / "store") as opened:
        yield opened


def imported(store: memlog.Store, *folders: Path) -> memlog.ImportReport:
    report: memlog.ImportReport = store.exchange.import_from("memory-folder", folders)
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    made = report.appended + report.restored + report.known + report.updated
    assert report.events == made + report.forgotten + report.refused
    return report


def contents(store: memlog.Store) -> list[str]:
    return sorted(each.content for each in store.memories.list())


def test_a_journal_keeps_its_day_in_imports_workspaces_and_documents(
    tmp_path: Path, store: memlog.Store
) -> None:
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    for name in DAYS:
        (notes / "memory" / f"{name}.md").write_text(f"- Ordered {name}\n")
        os.utime(notes / "memory" / f"{name}.md", (0, 1.5e9))
    imported(store, notes)
    days = {each.summary.removeprefix("Ordered "): each.event_date for each in store.daily.list()}
    assert days == {name: day for name, day in DAYS.items() if day is not None}
    store.documents.add(notes, source="docs")
    store.workspaces.add(notes, source="agent")
    for source in ("docs", "agent"):
        dated = {Path(each.file).stem: each.dated_at for each in store.documents.list(source)}
        assert dated == {
            name: f"{day}T00:00:00.000Z" if day else "2017-07-14T02:40:00.000Z" for name, day in DAYS.items()
        }


def make_graph(folder: Path) -> dict[str, int]:
    """Make a graph of Logseq with 300 files; return how many blocks of each kind it has."""
    counts = {"days": 0, "memories": 0, "empty": 0, "properties": 0}
    for name in ("journals", "pages", "logseq/bak/pages", "assets"):
        (folder / name).mkdir(parents=True)
    for number in range(300):
        blocks = [
            f"- Block {number}.{each} of [[Tea]]\n\t- with a child\n\t- \n" for each in range(number % 4)
        ]
        blocks.append(f"- TODO {number}\n  id:: 65a1-{number}\n  collapsed:: true\n")
        if number % 3 == 0:
            text = "".join(blocks) + "-\n"
            (folder / f"journals/2026_{number // 28 % 12 + 1:02}_{number % 28 + 1:02}.md").write_text(text)
        else:
            text = f"title:: Page {number}\ntags:: tea, pots\n\n" + "- \n".join(blocks)
            (folder / f"pages/Page {number}.md").write_text(text)
            counts["properties"] += 1
        counts["days" if number % 3 == 0 else "memories"] += len(blocks)
        counts["empty"] += 1 if number % 3 == 0 else len(blocks) - 1
    (folder / "logseq/bak/pages/Page 1.md").write_text("- An older page\n")
    (folder / "logseq/config.edn").write_text("{:meta/version 1}")
    (folder / "pages/old.org").write_text("* An Org file\n")
    return counts


def test_a_graph_of_logseq_with_300_pages_is_read_whole(tmp_path: Path, store: memlog.Store) -> None:
    graph = tmp_path / "graph"
    counts = make_graph(graph)
    assert len([*graph.glob("journals/*.md"), *graph.glob("pages/*.md")]) == 300
    report = imported(store, graph)
    assert report.types == {"daily_event_recorded": counts["days"], "memory_saved": counts["memories"]}
    assert report.skipped == {
        "empty": counts["empty"],
        "mirror": 1,
        "structure": counts["properties"],
        "unsupported": 1,
    }
    assert report.unknown_columns == {"Org file pages/old.org": 1}
    for each in store.daily.list():
        assert each.summary.startswith(("Block", "TODO"))
        number = int(each.summary.split()[1].partition(".")[0])
        assert each.event_date == f"2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"
    assert not any("::" in each or "\t- \n" in each or "older" in each for each in contents(store))
    assert imported(store, graph).appended == 0


@pytest.mark.parametrize("kind", ["notes", "journal"])
def test_an_edit_in_the_middle_of_a_file_replaces_its_own_entry_and_no_other(
    tmp_path: Path, store: memlog.Store, kind: str
) -> None:
    file = tmp_path / "notes" / ("MEMORY.md" if kind == "notes" else "2026_02_24.md")
    file.parent.mkdir()

    def write(*items: str) -> memlog.ImportReport:
        file.write_text("# Tea\n\n" + "".join(f"- {each}\n" for each in items))
        os.utime(file, (0, 1.7e9 + next(clock)))
        return imported(store, file.parent)

    def shown() -> list[str]:
        if kind == "notes":
            return contents(store)
        return sorted(each.summary for each in store.daily.list(uncompressed=True))

    clock = iter(range(0, 10_000, 100))
    assert write("green", "black", "white").appended == 3
    report = write("green", "black from Assam", "white", "mint")
    assert (report.changed, report.refused) == (0, 0)
    assert shown() == ["black from Assam", "green", "mint", "white"]
    report = write("oolong", "green", "black from Ceylon", "white", "mint")
    assert (report.changed, report.refused) == (0, 0)
    assert shown() == ["black from Ceylon", "green", "mint", "oolong", "white"]
    assert write("oolong", "green", "black from Ceylon", "white", "mint").appended == 0
    write("green", "white", "mint")
    assert "green" in shown()
    assert write("mint", "white", "green").appended == 0
    store.maintenance.project(from_scratch=True)
    assert "black from Ceylon" in shown()


def test_a_value_of_the_user_that_changes_in_its_file_changes(tmp_path: Path, store: memlog.Store) -> None:
    file = tmp_path / "notes/MEMORY.md"
    file.parent.mkdir()
    for seconds, city in enumerate(("Turku", "Oslo", "Oslo")):
        file.write_text(f"## User\n\n- Name: Anna\n- City: {city}\n- Job: cook\n")
        os.utime(file, (0, 1.7e9 + seconds))
        assert imported(store, file.parent).refused == 0
        assert store.core.get("user") == {"name": "Anna", "city": city, "job": "cook"}


def test_another_file_of_the_same_name_replaces_nothing(tmp_path: Path, store: memlog.Store) -> None:
    for who, items in {"anna": "green black", "boris": "coffee milk black"}.items():
        (tmp_path / who).mkdir()
        (tmp_path / who / "MEMORY.md").write_text("".join(f"- {each}\n" for each in items.split()))
    imported(store, tmp_path / "anna")
    report = imported(store, tmp_path / "boris")
    assert report.appended == 0
    assert report.refused
    assert contents(store) == ["black", "green"]


def test_front_matter_ends_at_three_dots_too(tmp_path: Path, store: memlog.Store) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/tea.md").write_text("---\ndate: 2024-05-06\n...\n- Green\n")
    imported(store, tmp_path / "notes")
    assert contents(store) == ["Green"]
    store.documents.add(tmp_path / "notes", source="docs")
    assert store.documents.list("docs")[0].dated_at == "2024-05-06T00:00:00.000Z"


def test_what_an_older_memlog_took_for_notes_is_known(tmp_path: Path, store: memlog.Store) -> None:
    def saved(name: str, content: str) -> Any:
        return memlog.MemorySaved(id=name, memory_id=name, content=content, source="migration", ts=ts)

    (tmp_path / "notes/journals").mkdir(parents=True)
    blocks = ["one", "two\n  id:: 2", "three", "four"]
    (tmp_path / "notes/journals/2026_02_24.md").write_text("".join(f"- {each}\n" for each in blocks))
    (tmp_path / "notes/page.md").write_text("-\n" + "".join(f"- {each}\n" for each in blocks))
    for file in (tmp_path / "notes").rglob("*.md"):
        os.utime(file, (0, 1.5e9))
    ts = "2017-07-14T02:40:00Z"
    journal, page = ("memory-folder/journals/2026_02_24//", "memory-folder/page//")
    store.append([saved(f"{journal}{number}", each) for number, each in enumerate(blocks[:3], 1)])
    store.append([saved(f"{page}{number}", each) for number, each in enumerate(["-", *blocks[:3]], 1)])
    report = imported(store, tmp_path / "notes")
    assert (report.known, report.changed, report.refused, report.problems) == (6, 0, 0, [])
    assert report.types == {"daily_event_recorded": 1, "memory_saved": 1, "memory_updated": 2}
    assert contents(store) == sorted(["-", "four", *["one", "two", "three"] * 2])
    assert imported(store, tmp_path / "notes").appended == 0


def test_an_edit_among_equal_lines_replaces_its_own_entry(tmp_path: Path) -> None:
    lines = ["same", "same", "green mint", "black", "white", "red"]
    for edits in ({0: "same CHANGED", 2: "green ginger"}, {0: "same CHANGED"}, {1: "same CHANGED"}):
        folder = tmp_path / "-".join(map(str, edits))
        folder.mkdir()
        edited = [edits.get(number, line) for number, line in enumerate(lines)]
        with memlog.open(folder / "store", create=True) as store:
            for texts in (lines, edited):
                (folder / "notes.md").write_text("# T\n\n" + "".join(f"- {text}\n" for text in texts))
                report = store.exchange.import_from("memory-folder", [folder / "notes.md"])
            assert report.types == {"memory_updated": len(edits)}
            assert sorted(each.content for each in store.memories.list()) == sorted(edited)
