"""memlog watch: what is appended or written is there soon, whatever happens to the folders meanwhile."""

import errno
import fcntl
import plistlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.log.writer import Log
from tests.support.command_tree import MEMLOG
from tests.support.places import ROOT
from tests.support.storm_checks import read_model
from tests.support.watched import Watch, appended, until

Run = Callable[..., Any]
Start = Callable[..., Watch]

PAGE = (ROOT / "docs/tools/watch.md").read_text()
NOTES = "SELECT rtrim(content, char(10)) FROM memory_chunks"
STEP = ["projected", "embedded", "indexed", "removed", "pending", "ms"]


@pytest.fixture
def watch(store: Path) -> Iterator[Start]:
    """Starts `memlog watch --json`, which finds no model unless one is asked for."""
    started: list[Watch] = []

    def start(*, with_model: bool = False) -> Watch:
        environment = {} if with_model else {"MEMLOG_MODEL": str(store / "no model")}
        started.append(Watch(store, **environment))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def log(store: Path) -> Log:
    return Log(store, durability="os")


def said(content: str, chat_id: str = "1") -> dict[str, Any]:
    return {"type": "message", "channel": "x", "chat_id": chat_id, "role": "user", "content": content}


def rows(store: Path, sql: str) -> list[Any]:
    """What a look at the read model as it stands finds: nothing catches up."""
    try:
        with closing(read_model(store)) as db:
            return [row[0] for row in db.execute(sql)]
    except (FileNotFoundError, sqlite3.Error):
        # It is being made anew.
        return []


def messages(store: Path) -> list[str]:
    return rows(store, "SELECT content FROM messages ORDER BY content")


def documents(store: Path) -> list[str]:
    return rows(store, "SELECT rtrim(content, char(10)) FROM doc_chunks ORDER BY file")


def test_what_four_processes_append_is_there(store: Path, watch: Start) -> None:
    """The storm `watch` measures how soon."""
    watching = watch()
    appended(store, 100, rng=random.Random(1))
    until(lambda: watching.told("projected") == 100)
    assert all(list(step) == STEP for step in watching.steps)
    assert watching.end() == 0


def test_what_is_appended_while_many_files_are_touched_is_there(
    memlog: Run, store: Path, tmp_path: Path, watch: Start
) -> None:
    """The storm `watch` touches 60,000, which the kernel's queue has no room for."""
    files = [tmp_path / "files" / f"{number}.md" for number in range(100)]
    files[0].parent.mkdir()
    for path in files:
        path.write_text(f"{path.name}\n")
    memlog("docs", "add", files[0].parent)
    watching = watch()
    for path in files:
        path.touch()
    files[7].write_text("It has changed.\n")
    appended(store, 20, rng=random.Random(2))
    until(lambda: "It has changed." in documents(store))
    assert watching.told("indexed") <= 2, "what was only touched is not read into the log again"


def test_rows_do_not_wait_for_vectors(store: Path, log: Log, watch: Start) -> None:
    log.append([said(f"{number}: " + "the harbour master counts the boats. " * 10) for number in range(48)])
    watching = watch(with_model=True)
    until(lambda: watching.told("embedded") > 0)
    log.append([said("zebra")])
    until(lambda: "zebra" in messages(store) and watching.told("projected") == 49)
    (pending,) = [step["pending"] for step in watching.steps[1:] if step["projected"]]
    assert pending > 0
    embedded = watching.told("embedded")
    assert watching.end(signal.SIGINT) == 130, "also in the middle of computing"

    again = watch(with_model=True)
    until(lambda: bool(again.hear()) and again.steps[-1]["pending"] == 0)
    assert again.told("embedded") <= 49 - embedded, "what was computed is not computed again"
    assert again.end() == 0


def test_an_edited_line_of_a_document_is_there(
    memlog: Run, store: Path, tmp_path: Path, watch: Start
) -> None:
    def put(name: str, text: str) -> None:
        """At once, so that nobody reads half of it."""
        (tmp_path / "new").write_text(f"{text}\n")
        (tmp_path / "new").rename(notes / name)

    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    put("deep/tea.md", "Green tea.")
    watching = watch()
    assert memlog("docs", "add", notes).code == 0
    until(lambda: documents(store) == ["Green tea."])
    put("deep/tea.md", "Green tea, cold.")
    until(lambda: documents(store) == ["Green tea, cold."])
    (notes / "new").mkdir()
    put("new/coffee.md", "Coffee.")
    until(lambda: documents(store) == ["Green tea, cold.", "Coffee."])
    shutil.rmtree(notes / "deep")
    until(lambda: documents(store) == ["Coffee."])
    until(lambda: (watching.told("indexed"), watching.told("removed")) == (2, 1))


def test_notes_of_a_workspace_are_followed_also_where_git_ignores_them(
    store: Path, tmp_path: Path, memlog: Run, watch: Start
) -> None:
    agent = tmp_path / "agent"
    (agent / "memory").mkdir(parents=True)
    (agent / ".gitignore").write_text("memory/\n")
    note = agent / "memory" / "2026-02-24.md"
    note.write_text("Bought a whisk.\n")
    memlog("workspace", "add", str(agent))
    watch()
    # What stands when the watch starts is read whatever a look finds, and so the first change may be.
    for text in ("Sold the whisk.", "Bought it back."):
        note.write_text(f"{text}\n")
        found = [text]
        until(lambda found=found: rows(store, NOTES) == found)


def test_the_documents_of_a_folder_that_is_gone_stay_until_it_is_back(
    memlog: Run, store: Path, tmp_path: Path, watch: Start
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("Green tea.\n")
    memlog("docs", "add", notes)
    watching = watch()
    notes.rename(tmp_path / "elsewhere")
    until(lambda: any("its documents stay" in note for note in watching.notes()))
    notes.mkdir()
    (notes / "tea.md").write_text("Black tea.\n")
    until(lambda: documents(store) == ["Black tea."])
    assert len([note for note in watching.notes() if "its documents stay" in note]) == 1


def remove(folder: Path) -> None:
    """As `rm -r` does, again where the watch has made a file in it meanwhile."""
    while folder.exists():
        try:
            return shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
    return None


def test_folders_may_go_and_come_again(store: Path, log: Log, watch: Start) -> None:
    watching = watch()
    for gone in ("log", "log/conversations/x_1", "model", "."):
        log.append([said("before")])
        until(lambda: "before" in messages(store))
        remove(store / gone)
        Log(store, durability="os").append([said(f"after {gone}"), said("elsewhere", "2")])
        until(lambda: {f"after {gone}", "elsewhere"} <= set(messages(store)))  # noqa: B023 - asked at once
    assert watching.end() == 0


def test_the_cache_may_go_while_vectors_are_computed(store: Path, log: Log, watch: Start) -> None:
    watching = watch(with_model=True)
    log.append([said("one")])
    until(lambda: watching.told("embedded") == 1)
    remove(store / "cache")
    log.append([said("two")])
    until(lambda: watching.told("embedded") == 2)
    assert (store / "cache/embeddings.db").exists()


def test_a_second_watch_ends_and_names_the_first(memlog: Run, watch: Start) -> None:
    first = watch()
    second = memlog("watch", "--json")
    assert second.code == 75
    assert second.error["code"] == "busy"
    assert f"process {first.process.pid}" in second.error["message"]
    assert memlog("watch", "--once").code == 75
    first.process.kill()
    first.process.wait()
    assert memlog("watch", "--once", "--json").code == 0


def test_what_goes_wrong_is_said_once_and_over_when_it_is(store: Path, log: Log, watch: Start) -> None:
    watching = watch()
    with (store / "projector.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log.append([said("one")])
        until(lambda: any("is locked by" in note for note in watching.notes()))
        log.append([said("two")])
        assert messages(store) == []
    until(lambda: messages(store) == ["one", "two"])
    until(lambda: any("goes on" in note for note in watching.notes()))
    locked = [note for note in watching.notes() if "is locked by" in note]
    assert len(locked) == 1, locked


def test_a_lost_segment_is_said_and_all_else_is_watched(
    memlog: Run, store: Path, log: Log, watch: Start
) -> None:
    log.append([said("one"), said("two", "2")])
    assert memlog("seal").code == 0
    watching = watch()
    next((store / "log/conversations/x_1").iterdir()).unlink()
    until(lambda: any("is gone" in note for note in watching.notes()))
    log.append([said("three", "2")])
    until(lambda: messages(store) == ["three", "two"])
    log.append([said("four", "2")])
    until(lambda: messages(store) == ["four", "three", "two"])
    for said_once in ("is gone: memlog verify", "no vectors"):
        assert len([note for note in watching.notes() if said_once in note]) == 1, watching.notes()


def test_once_brings_everything_up(memlog: Run, store: Path, tmp_path: Path, log: Log) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("Green tea.\n")
    memlog("docs", "add", notes)
    (notes / "tea.md").write_text("Black tea.\n")
    log.append([said("one")])
    step = memlog("watch", "--once", "--json").json
    assert list(step) == STEP
    assert (step["projected"], step["embedded"], step["indexed"], step["pending"]) == (4, 2, 1, 0)
    assert (messages(store), documents(store)) == (["one"], ["Black tea."])
    assert memlog("watch", "--once").out == b"0 events projected, 0 passages embedded\n"


def test_on_a_terminal_one_line_says_what_was_done(
    log: Log, with_terminal_errors: Callable[..., Any]
) -> None:
    terminal = with_terminal_errors("watch")
    terminal.see(b"watching: 0 events projected")
    log.append([said("one")])
    terminal.see(b"watching: 1 events projected")
    terminal.see(b"1 passages embedded")
    terminal.process.send_signal(signal.SIGTERM)
    done = terminal.end()
    assert (done.code, done.out) == (0, b"")
    assert b"\n" not in done.err, "the line is written over, and gone at the end"


# The page


def test_the_systemd_unit_of_the_page_is_one(tmp_path: Path) -> None:
    (unit,) = re.findall(r"^```ini\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert "ExecStart=%h/.local/bin/memlog watch" in unit
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd here")
    command = shutil.which("true")
    path = tmp_path / "memlog.service"
    path.write_text(unit.replace("%h/.local/bin/memlog", str(command)))
    done = subprocess.run([verify, "--user", "verify", path], capture_output=True, text=True, check=False)
    assert "memlog.service" not in done.stderr, done.stderr


def test_the_launchd_list_of_the_page_is_one() -> None:
    (plist,) = re.findall(r"^```xml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    said = plistlib.loads(plist.encode())
    assert said["ProgramArguments"][1:] == ["watch"]
    assert said["KeepAlive"] == {"SuccessfulExit": False}
    assert set(said) == {
        "Label",
        "ProgramArguments",
        "RunAtLoad",
        "KeepAlive",
        "ProcessType",
        "StandardErrorPath",
    }


def test_the_table_of_the_page_has_the_members_of_a_step() -> None:
    named = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert re.findall(r"`(\w+)`", ", ".join(named)) == STEP


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_watch_in_the_background_says_what_it_does(
    memlog: Run, store: Path, environment: dict[str, str], tmp_path: Path, is_quiet: bool
) -> None:
    said = tmp_path / "said"
    memlog("append", "memory_saved", "--content", "green tea")
    words = ["--quiet", "watch"] if is_quiet else ["watch"]
    with (
        said.open("wb") as err,
        subprocess.Popen([MEMLOG, *words], stdout=err, stderr=err, env=environment) as watching,
    ):
        until(lambda: (store / "watch.lock").exists())
        if not is_quiet:
            until(lambda: "1 events projected" in said.read_text())
            memlog("append", "memory_saved", "--content", "black tea")
            until(lambda: said.read_text().count("1 events projected") == 2)
        watching.terminate()
    lines = said.read_text().splitlines()
    assert is_quiet or "memlog: watching until SIGTERM or Ctrl-C" in lines
    assert not is_quiet or lines == []
