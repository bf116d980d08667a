"""Sessions of coding agents go into the stores of their projects, and one query finds them all."""

import os
import pty
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from tests.cli.test_projects import SAID, environment
from tests.support.agent_homes import add_claude_session, add_codex_thread, add_prompt, git, make_repository
from tests.support.agent_samples import sample
from tests.support.command_tree import MEMLOG

__all__ = ["environment"]

Run = Callable[..., Any]

TEA, POT = "github.com/anna/tea", "gitlab.example.org/pots/pot"
TOKEN = "glpat-0123456789abcdefghij"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of the fixture `environment`; with the folders of both agents."""
    (tmp_path / ".claude/projects").mkdir(parents=True)
    (tmp_path / ".codex/sessions").mkdir(parents=True)
    return tmp_path


def appended(memlog: Run, *words: str) -> dict[str, int]:
    """By project."""
    done = memlog(*(words or ("import", "claude-code")), "--json")
    assert done.code == 0, done.err
    return {each["project"]: each["appended"] for each in done.json["projects"]}


def found(memlog: Run, word: str) -> set[tuple[str, str]]:
    """The projects and chats in which people said a word."""
    hits = memlog("query", "--all-projects", "--mode", "text", word, "--json").json["hits"]
    return {(hit["project"], hit["chat"]) for hit in hits if hit["role"] == "user" and word in hit["content"]}


@pytest.mark.usefixtures("environment")
def test_two_agents_and_five_folders_are_four_projects(memlog: Run, home: Path) -> None:
    tea = make_repository(home / "src/tea", f"https://anna:{TOKEN}@GitHub.com/anna/tea.git")
    clone = make_repository(home / "work/tea", "git@github.com:anna/tea.git")
    pot = make_repository(home / "src/pot", "ssh://git@gitlab.example.org:2222/pots/pot.git")
    own = make_repository(home / "src/own")
    git(own, "worktree", "add", "--quiet", "../own-tree")
    (home / "notes").mkdir()
    folders = {
        tea: TEA,
        clone: TEA,
        pot: POT,
        own: str(own),
        home / "src/own-tree": str(own),
        home / "notes": str(home / "notes"),
    }
    said: dict[str, tuple[str, str]] = {}
    for number, (folder, project) in enumerate(folders.items(), 1):
        said[f"kettle{number}"] = (
            project,
            f"claude-code:{add_claude_session(home, number, folder, f'kettle{number}')}",
        )
        said[f"saucer{number}"] = (
            project,
            f"codex:{add_codex_thread(home, number, folder, f'saucer{number}')}",
        )

    table = [line.split()[:4] for line in memlog("import").out.decode().splitlines()[1:]]
    assert table == [["claude-code", "~/.claude", "6", "90"], ["codex", "~/.codex", "6", "12"]]

    tried = appended(memlog, "import", "codex", "--dry-run")
    assert memlog("projects", "list", "--json").json == {"projects": []}
    assert (
        appended(memlog, "import", "codex") == tried == {TEA: 4, POT: 2, str(own): 4, str(home / "notes"): 2}
    )
    ledger = memlog("import", "claude-code").out.decode()
    assert [line for line in ledger.splitlines() if line.startswith("project")] == [
        f"project  {name}" for name in sorted({*folders.values()})
    ]
    assert "private  sent to no provider on another machine" in ledger
    assert TOKEN not in ledger
    stores = {each["name"]: each for each in memlog("projects", "list", "--json").json["projects"]}
    assert stores.keys() == {*folders.values()}
    for agent in ("claude-code", "codex"):
        reports = memlog("import", agent, "--json").json["projects"]
        assert {each["project"]: each["store"] for each in reports} == {
            name: each["folder"] for name, each in stores.items()
        }
        assert {each["appended"] for each in reports} == {0}

    shutil.rmtree(home / ".claude")
    shutil.rmtree(home / ".codex")
    for name in stores:
        assert memlog("--project", name, "project", "--from-scratch", "--no-embed").code == 0
    assert {word: found(memlog, word) for word in said} == {word: {where} for word, where in said.items()}


def test_all_is_imported_once_it_is_agreed(memlog: Run, home: Path, environment: dict[str, str]) -> None:
    add_claude_session(home, 1, make_repository(home / "src/tea", "https://github.com/anna/tea"), "kettle")
    add_codex_thread(home, 2, home / "src/tea", "saucer")
    ours, its = pty.openpty()
    with subprocess.Popen([MEMLOG, "import"], env=environment, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        os.write(ours, b"y\n")
        assert process.wait(60) == 0
    os.close(ours)
    listed = memlog("projects", "list", "--json").json["projects"]
    assert [(each["name"], each["conversations"]) for each in listed] == [(TEA, 3)]


@pytest.mark.parametrize("named", [["--store", "here"], ["--project", "all"]])
def test_all_goes_into_a_store_that_is_named(memlog: Run, home: Path, named: list[str]) -> None:
    for number, name in enumerate(("tea", "pot"), 1):
        folder = make_repository(home / "src" / name, f"https://github.com/anna/{name}")
        add_claude_session(home, number, folder, "kettle")
    named = [word.replace("here", str(home / "here")) for word in named]
    done = memlog(*named, "import", "claude-code", "--json").json
    assert (done["project"], len(memlog(*named, "sessions", "--json").json["sessions"])) == (None, 4)
    one = memlog(*named, "import", "claude-code", "--project", TEA, "--dry-run", "--json").json
    assert one["known"] * 2 == done["appended"]


def test_one_project_is_chosen_and_an_unknown_one_is_an_error_that_lists_them(
    memlog: Run, home: Path
) -> None:
    for number, name in enumerate(("tea", "pot"), 1):
        folder = make_repository(home / "src" / name, f"https://github.com/anna/{name}")
        add_claude_session(home, number, folder, "kettle")
    failed = memlog("import", "claude-code", "--project", "cup")
    assert failed.code == 65
    assert all(
        text in failed.err for text in (b"github.com/anna/pot, github.com/anna/tea", b"--project NAME")
    )
    assert [*appended(memlog, "import", "claude-code", "--project", TEA)] == [TEA]


def test_a_session_stays_where_it_is_when_its_folder_gets_a_remote(memlog: Run, home: Path) -> None:
    folder = make_repository(home / "src/tea")
    add_claude_session(home, 1, folder, "kettle")
    first = appended(memlog)
    git(folder, "remote", "add", "origin", "https://github.com/anna/tea")
    add_claude_session(home, 2, folder, "saucer")
    assert appended(memlog) == {str(folder): 0, TEA: first[str(folder)]}


def test_what_was_forgotten_does_not_come_back_in_another_store(memlog: Run, home: Path) -> None:
    folder = make_repository(home / "src/tea")
    session = add_claude_session(home, 1, folder, "kettle")
    appended(memlog)
    memlog("--project", str(folder), "forget", "--chat", f"claude-code:{session}", "--yes")
    git(folder, "remote", "add", "origin", "https://github.com/anna/tea")
    assert appended(memlog) == {str(folder): 0}


def test_a_link_decides_for_a_folder_and_those_below_it(memlog: Run, home: Path) -> None:
    folder = make_repository(home / "src/tea", "https://github.com/anna/tea")
    add_claude_session(home, 1, folder, "kettle")
    appended(memlog)
    (folder / "lid").mkdir()
    add_claude_session(home, 2, folder / "lid", "saucer")
    memlog("projects", "link", folder, "crockery")
    assert memlog("projects", "links", "--json").json == {
        "links": [{"folder": str(folder), "project": "crockery"}]
    }
    done = memlog("import", "claude-code")
    assert f"{TEA} keeps sessions that are linked to crockery (1)" in done.err.decode()
    sessions = [f"claude-code:5e55104e-000{number}-4000-8000-000000000001" for number in (1, 2)]
    assert found(memlog, "kettle") | found(memlog, "saucer") == {
        (TEA, sessions[0]),
        ("crockery", sessions[1]),
    }
    (run,) = memlog("--project", TEA, "import", "runs", "--json").json["imports"]
    assert memlog("--project", TEA, "import", "undo", run["run"]).code == 0
    assert [*appended(memlog)] == ["crockery"]
    assert found(memlog, "kettle") == {("crockery", sessions[0])}
    assert memlog("projects", "unlink", folder).code == 0
    assert memlog("projects", "unlink", folder, "--json").error["code"] == "link_not_found"


def test_prompts_of_deleted_sessions_go_where_their_sessions_went(memlog: Run, home: Path) -> None:
    tea = make_repository(home / "src/tea", "https://github.com/anna/tea")
    session = add_claude_session(home, 1, tea, "kettle")
    appended(memlog)
    (home / "elsewhere").mkdir()
    add_prompt(home, session, home / "elsewhere", "kettle")
    add_prompt(home, "gone", tea, "saucer")
    add_prompt(home, "also-gone", home / "elsewhere", "tray")
    with (home / ".claude/history.jsonl").open("a") as file:
        file.write("nonsense\n")
    reports = memlog("import", "claude-code", "--json").json["projects"]
    assert sum(each["unreadable"] for each in reports) == 1
    assert {each["project"]: each["appended"] for each in reports} == {TEA: 1, str(home / "elsewhere"): 1}
    assert found(memlog, "saucer") == {(TEA, "claude-code:gone")}
    assert found(memlog, "tray") == {(str(home / "elsewhere"), "claude-code:also-gone")}


def test_a_thread_of_a_folder_that_is_gone_says_its_remote(memlog: Run, home: Path) -> None:
    add_codex_thread(home, 1, home / "gone", "kettle", "https://github.com/anna/tea.git")
    assert [*appended(memlog, "import", "codex")] == [TEA]


def test_a_store_that_fails_hides_no_other(memlog: Run, home: Path) -> None:
    for project, text in (("anna", "green"), ("boris", "green"), ("boris", "black"), ("carl", "white")):
        memlog("--project", project, *SAID, f"{text} tea", "--id", text)
    carl = Path(memlog("projects", "show", "carl", "--json").json["project"]["folder"])
    (carl / "memlog.toml").write_text("nonsense")
    search = ("query", "--all-projects", "--mode", "text", "tea")
    done = memlog(*search, "--json").json
    assert sorted((hit["event_id"], hit["content"]) for hit in done["hits"]) == [
        ("black", "black tea"),
        ("green", "green tea"),
    ]
    assert [hit["score"] for hit in done["hits"]] == sorted(
        (hit["score"] for hit in done["hits"]), reverse=True
    )
    assert done["silent"].keys() == {"carl"}
    shown = memlog(*search)
    assert b"carl: store: " in shown.err
    assert b" 1. 1.000  boris message x:1 user " in shown.out
    assert memlog(*search, "--format", "md").out.startswith(b"| rank | score | project |")


@pytest.mark.parametrize("named", [("--store", "x"), ("--project", "anna")])
def test_all_projects_and_a_named_one_are_wrong_usage(memlog: Run, named: tuple[str, str]) -> None:
    assert memlog(*named, "query", "--all-projects", "tea").code == 2


def test_in_python_stores_have_the_settings_of_the_caller(home: Path, tmp_path: Path) -> None:
    add_claude_session(home, 1, make_repository(home / "src/tea", "https://github.com/anna/tea"), "kettle")
    opened: list[Path] = []

    def open_store(path: Path) -> library.Store:
        opened.append(path)
        return library.open(path, redact=True)

    projects = library.Projects(tmp_path / "stores", open_store)
    done = projects.import_from("claude-code", [home / ".claude"])
    assert [(each.project, each.store) for each in done.projects] == [(TEA, str(opened[0]))]
    assert [hit.project for hit in projects.search("kettle", k=1, mode="text").hits] == [TEA]


@pytest.mark.usefixtures("environment")
def test_an_import_into_several_projects_is_undone_in_all_of_them(memlog: Run, home: Path) -> None:
    add_claude_session(home, 1, make_repository(home / "src/tea", "https://github.com/anna/tea"), "kettle")
    add_claude_session(home, 2, make_repository(home / "src/own"), "saucer")
    ledger = memlog("import", "claude-code", "--json").json["projects"]
    (run,) = {each["run"] for each in ledger}
    listed = memlog("import", "runs", "--json").json["imports"]
    assert {(each["run"], each["project"]) for each in listed} == {(run, str(home / "src/own")), (run, TEA)}
    undone = memlog("import", "undo", run, "--json").json["projects"]
    assert {each["project"]: each["done"] for each in undone} == {str(home / "src/own"): True, TEA: True}
    assert found(memlog, "kettle") | found(memlog, "saucer") == set()
    assert memlog("import", "undo", run).code == 65
    again = memlog("import", "claude-code", "--json").json["projects"]
    assert [each["restored"] for each in again] == [each["appended"] for each in ledger]
    assert {project for project, _ in found(memlog, "kettle")} == {TEA}


@pytest.mark.usefixtures("environment")
def test_what_was_erased_comes_back_in_no_other_project(memlog: Run, home: Path) -> None:
    tea = make_repository(home / "src/tea")
    add_codex_thread(home, 1, tea, "kettle")
    (first,) = memlog("import", "codex", "--json").json["projects"]
    assert memlog("import", "undo", first["run"], "--erase", "--yes").code == 0
    git(tea, "remote", "add", "origin", "https://github.com/anna/tea")
    assert memlog("projects", "link", str(home / "src"), "other").code == 0
    (again,) = memlog("import", "codex", "--json").json["projects"]
    assert (again["project"], again["forgotten"], again["appended"]) == (str(tea), first["events"], 0)
    assert found(memlog, "kettle") == set()


def pots_of_pi(source: Path) -> None:
    first = next(source.rglob("*.jsonl"))
    text = first.read_text().replace("91000000", "92000000").replace("/home/mia/src/teapot", "/pots")
    first.with_name(first.name.replace("91000000", "92000000")).write_text(text.replace("2026-03", "2026-04"))


def pots_of_gemini_cli(source: Path) -> None:
    old = next(source.rglob("session-*.json"))
    new = source / "tmp/pots/chats" / old.name
    new.parent.mkdir(parents=True)
    old.rename(new)
    (source / "tmp/pots/.project_root").write_text("/pots")


def pots_of_opencode(source: Path) -> None:
    with closing(sqlite3.connect(source / "opencode.db")) as db:
        db.execute("UPDATE session_v2 SET directory = '/pots' WHERE id = 'ses_c01'")
        db.execute("UPDATE session_v2 SET directory = '/elsewhere' WHERE parent_id = 'ses_c01'")
        db.execute("DELETE FROM session_v2 WHERE fork_session_id = 'ses_c01'")
        db.commit()


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("format", "move", "counts"),
    [
        ("pi", pots_of_pi, {"/home/mia/src/teapot": 8, "/pots": 8}),
        ("gemini-cli", pots_of_gemini_cli, {"/home/mia/src/teapot": 8, "/pots": 2}),
        # With its subagent. The rows of the fork belong to no session any more.
        ("opencode", pots_of_opencode, {"/home/mia/src/teapot": 8 + 3 + 3, "/pots": 12 + 2}),
    ],
)
def test_sessions_of_pi_gemini_cli_and_opencode_go_into_the_projects_of_their_folders(
    memlog: Run, home: Path, format: str, move: Callable[[Path], None], counts: dict[str, int]
) -> None:
    source = sample(format, home / "source")
    move(source)
    assert appended(memlog, "import", format, source) == counts
    assert appended(memlog, "import", format, source) == dict.fromkeys(counts, 0)
