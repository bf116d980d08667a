"""`memlog import chatdo`: each project of ChatDO goes into its own store."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from tests.cli.test_projects import environment
from tests.support.places import FIXTURES

__all__ = ["environment"]

Run = Callable[..., Any]

TEA, WORK = 'The tea/"№1"', "work"


@pytest.fixture
def chatdo(tmp_path: Path) -> Path:
    """The databases of two projects, in the layout of ChatDO's document, with an integer chat."""
    folder = tmp_path / "memory_service/store"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "tracking.sqlite")) as db:
        db.executescript((FIXTURES / "imports/tracking.sql").read_text(encoding="utf-8"))
        db.execute("UPDATE facts SET project_id = ?", (TEA,))
        fact = ("favorite_colors", "ranked", 1, "Red", 5, "2026-01-12T08:00:00")
        db.execute("INSERT INTO facts VALUES (9, ?, ?, ?, ?, ?, ?, ?, ?)", (WORK, -100, *fact))
        db.commit()
    (folder / f"project-{WORK}").mkdir()
    with closing(sqlite3.connect(folder / f"project-{WORK}/index.sqlite")) as db:
        db.executescript((FIXTURES / "imports/index.sql").read_text(encoding="utf-8"))
        db.execute("UPDATE chat_messages SET project_id = NULL, chat_id = -100")
        db.execute("UPDATE sources SET project_id = NULL")
        db.commit()
    return folder


def values(memlog: Run, project: str, *options: str) -> list[tuple[str | None, str]]:
    found = memlog("--project", project, "fact", "list", "--json", *options).json["facts"]
    return [(each["chat"], each["value"]) for each in found]


def test_each_project_goes_into_its_own_store_once(memlog: Run, chatdo: Path) -> None:
    for appended in (4, 0):
        tried = memlog("import", "chatdo", chatdo, "--dry-run", "--json").json["projects"]
        done = memlog("import", "chatdo", chatdo, "--json").json["projects"]
        found = [
            [(each["project"], each["found"], each["used"], each["appended"]) for each in reports]
            for reports in (tried, done)
        ]
        counts = [(TEA, 4, 4, appended), (WORK, 4, 3, 3 if appended else 0)]
        assert found == [counts, counts]
    assert {each["name"] for each in memlog("projects", "list", "--json").json["projects"]} == {TEA, WORK}
    assert values(memlog, WORK) == [("chatdo:-100", "Red")]
    assert {chat for chat, _ in values(memlog, TEA)} == {"chatdo:t1"}
    assert len(values(memlog, TEA)) == 4
    assert (
        memlog("--project", TEA, "query", "--in", "messages", "--mode", "text", "colours", "--json").json[
            "hits"
        ]
        == []
    )
    window = memlog("--project", WORK, "window", "--chat", "chatdo:-100", "--json").json["messages"]
    assert len(window) == 2
    told = memlog("import", "chatdo", chatdo).out.decode().splitlines()
    assert [line for line in told if line.startswith("project")] == [f"project  {TEA}", f"project  {WORK}"]


@pytest.mark.parametrize(
    ("before", "behind", "store"),
    [
        (("--project", WORK), (), WORK),
        ((), ("--project", WORK), WORK),
        (("--project", "x"), ("--project", WORK), "x"),
    ],
    ids=["of the command", "of the source", "of both"],
)
def test_one_project_is_chosen(
    memlog: Run, chatdo: Path, before: tuple[str, ...], behind: tuple[str, ...], store: str
) -> None:
    assert memlog(*before, "import", "chatdo", chatdo, *behind).code == 0
    assert [each["name"] for each in memlog("projects", "list", "--json").json["projects"]] == [store]
    assert values(memlog, store) == [("chatdo:-100", "Red")]


def test_a_project_that_the_source_lacks_is_an_error_that_lists_the_projects(
    memlog: Run, chatdo: Path, tmp_path: Path
) -> None:
    for arguments in (
        ["--project", "x", "import", "chatdo", chatdo],
        ["import", "chatdo", chatdo, "--project", "x"],
        ["--store", tmp_path / "store", "import", "chatdo", chatdo],
    ):
        failed = memlog(*arguments)
        assert failed.code == 65
        assert all(name in failed.err.decode() for name in (TEA, WORK)), failed.err
    assert memlog("import", "klaw", chatdo, "--project", "x").code == 65
    assert memlog("projects", "list", "--json").json == {"projects": []}
    assert not (tmp_path / "store").exists()


def test_a_project_that_no_store_can_be_named_after_is_named_and_stops_no_other(
    memlog: Run, chatdo: Path
) -> None:
    with closing(sqlite3.connect(chatdo / "tracking.sqlite")) as db:
        db.execute("UPDATE facts SET project_id = '..' WHERE project_id = ?", (WORK,))
        db.commit()
    done = memlog("import", "chatdo", chatdo, "--json")
    assert done.code == 65
    assert {each["project"] for each in done.json["projects"]} == {TEA, WORK}
    assert done.json["left_out"] == ["left out: invalid project name: '..'"]


def test_a_store_takes_one_project(chatdo: Path, tmp_path: Path) -> None:
    with library.open(tmp_path / "store") as store:
        told: list[str] = []
        report = store.exchange.import_from(
            "chatdo", [chatdo], project=WORK, progress=lambda what, *_: told.append(what)
        )
        assert (report.project, report.used, {*told}) == (WORK, 3, {f"records of {WORK} imported"})
        assert [each.value for each in store.facts.list()] == ["Red"]
        with pytest.raises(library.BadInput, match="several projects"):
            store.exchange.import_from("chatdo", [chatdo])


def test_a_rollout_of_which_no_line_is_understood_is_an_error(memlog: Run, tmp_path: Path) -> None:
    file = tmp_path / "rollout-1.jsonl"
    file.write_text('{"type":"dream","payload":{}}\n' * 2)
    done = memlog("import", "codex", file)
    assert (done.code, b"no line is of a known type" in done.out) == (65, True)
    assert b"type dream: 2 rows" in done.out
