"""Projects: each has a store of its own; they are listed, and removed for ever."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog import BadInput, Busy, LogError, NotFound, Projects
from memlog.eventlog.files import disk, locks
from memlog.eventlog.log.log_format import LINE
from tests.support.refusals import refused

FORMAT_WRITER_AND_SEGMENT = 4  # files of a store with one chat; the writer has two


@pytest.fixture
def projects(tmp_path: Path) -> Projects:
    return Projects(tmp_path / "projects")


def make(projects: Projects, name: str, *contents: str) -> Path:
    """A project's store in which these messages stand, each in a chat of its own."""
    path = projects.path(name)
    with memlog.open(path) as store:
        store.append(
            [
                memlog.Message(channel="x", chat_id=str(number), role="user", content=content)
                for number, content in enumerate(contents)
            ]
        )
    return path


def names(projects: Projects) -> list[tuple[str, bool]]:
    return [(each.name, each.is_being_removed) for each in projects.list()]


# Names


def test_what_is_no_name_is_refused_everywhere(projects):
    for name in ["", ".", "..", "...", "\udcff", "x" * 256, "é" * 100]:
        for call in (projects.path, projects.get, projects.remove):
            with refused(name):
                call(name)


def test_no_name_leads_out_of_the_folder(projects):
    for name in ["../x", "/", "/etc", "a/../b", "x\0y", "..\\x", "a\nb", "~", ".x", "%2e%2e"]:
        assert projects.path(name).resolve().parent == projects.folder.resolve(), name
        assert "/" not in projects.path(name).name, name


@pytest.mark.parametrize("names", [("Work", "work"), ("a/b", "a%2fb"), ("a_b", "a"), ("a b", "a%20b")])
def test_two_names_have_two_stores(projects, names):
    one, other = names
    make(projects, one, "tea")
    assert projects.get(other) is None
    make(projects, other, "coffee")
    assert {each.name for each in projects.list()} == {one, other}
    projects.remove(one)
    assert [each.name for each in projects.list()] == [other]


# Listing


def test_where_there_are_no_projects_none_is_listed_and_nothing_is_made(projects):
    assert projects.list() == []
    assert projects.get("work") is None
    assert not projects.folder.exists()


def test_a_project_is_listed_with_what_its_log_says(projects):
    make(projects, "work", "tea", "coffee")
    with memlog.open(projects.path("work")) as store:
        (position,) = store.append([memlog.MemorySaved(content="tea")])
        stored = store.get(position.id)
        log_bytes = store.maintenance.stats().log_bytes - len(LINE)
    (found,) = projects.list()
    assert found == projects.get("work")
    assert (found.name, found.folder) == ("work", str(projects.folder / "work"))
    assert (found.conversations, found.log_bytes, found.last_append) == (2, log_bytes, stored.at)


def test_listing_makes_no_read_model_and_opens_none(projects):
    path = make(projects, "work", "tea")
    (path / "model").mkdir()
    (path / "model" / "CURRENT").write_text("broken.db\n")
    assert names(projects) == [("work", False)]
    assert sorted(each.name for each in path.iterdir()) == ["log", "model", "writers"]


def test_the_last_append_is_found_behind_many_lines_of_others_and_a_torn_one(projects):
    path = make(projects, "work", "tea")
    known = projects.get("work").last_append
    (segment,) = (path / "log/conversations/x_0").iterdir()
    foreign = b'{"type":"message","channel":"x","chat_id":"0","role":"user","content":"%s"}\n' % (b"y" * 400)
    with segment.open("ab") as file:
        file.write(foreign * 200 + b'{"torn')
    (path / "log/memory").mkdir()
    # Of an older day nothing is read.
    (path / "log/memory/2026-02-24.jsonl").write_bytes(b"nonsense\n")
    assert projects.get("work").last_append == known


def test_the_last_append_is_looked_for_in_older_days_where_the_last_is_of_others(projects):
    path = make(projects, "work", "tea")
    known = projects.get("work").last_append
    (path / "log/memory").mkdir()
    (path / "log/memory/2126-02-24.jsonl").write_bytes(b'{"type":"memory_saved","content":"x"}\n')
    assert projects.get("work").last_append == known


def test_a_log_that_others_alone_have_written_has_no_last_append(projects):
    log = projects.path("work") / "log" / "memory"
    log.mkdir(parents=True)
    (log / "2026-02-24.jsonl").write_bytes(b'{"type":"memory_saved","content":"x"}\n')
    assert projects.get("work").last_append is None


def test_what_is_no_store_is_no_project(projects, tmp_path):
    for name in ("empty", "notes/log", "UPPER/log", "a_b/log/memory"):
        (projects.folder / name).mkdir(parents=True)
    (projects.folder / "file").write_text("x")
    (projects.folder / "notes" / "log" / "access.log").write_text("x")
    (projects.folder / "gone").symlink_to(tmp_path / "nowhere")
    assert projects.list() == []


def test_a_store_that_was_read_before_it_had_a_log_is_listed(projects):
    projects.path("read").mkdir(parents=True)
    (projects.path("read") / "memlog.toml").touch()
    with memlog.open(projects.path("read")) as store:
        store.maintenance.status()
    (found,) = projects.list()
    assert (found.name, found.log_bytes, found.last_append) == ("read", 0, None)


# Removing


def test_a_removed_project_is_gone_and_no_other(projects):
    path = make(projects, "work", "tea")
    before = make(projects, "work2", "coffee")
    with memlog.open(path) as store:
        store.maintenance.project(embed=False)
    files = [each for each in path.rglob("*") if each.is_file()]
    done = projects.remove("work")
    assert (done.done, done.name, done.files) == (True, "work", len(files))
    assert done.bytes > 0
    assert list(projects.folder.iterdir()) == [before]
    with pytest.raises(NotFound) as error:
        projects.remove("work")
    assert error.value.code == "project_not_found"


def test_a_dry_run_removes_nothing(projects):
    path = make(projects, "work", "tea")
    found = projects.remove("work", dry_run=True)
    assert (found.files, found.last_append, found.done) == (
        FORMAT_WRITER_AND_SEGMENT,
        projects.get("work").last_append,
        False,
    )
    assert sorted(each.name for each in path.iterdir()) == ["log", "writers"]


def test_what_is_no_store_is_not_removed(projects):
    for name in ("photos", "logs/log"):
        (projects.folder / name).mkdir(parents=True)
    (projects.folder / "photos" / "cat.jpg").write_bytes(b"x")
    (projects.folder / "logs" / "log" / "access.log").write_bytes(b"x")
    (projects.folder / "file").write_bytes(b"x")
    for name in ("photos", "logs", "file"):
        with pytest.raises(BadInput, match="not a store"):
            projects.remove(name)
    assert (projects.folder / "photos" / "cat.jpg").exists()
    assert (projects.folder / "logs" / "log" / "access.log").exists()
    assert (projects.folder / "file").exists()


def test_a_link_to_a_store_is_not_followed(projects, tmp_path):
    make(Projects(tmp_path), "elsewhere", "tea")
    projects.folder.mkdir()
    projects.path("work").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="is a symbolic link"):
        projects.remove("work")
    assert projects.path("work").is_symlink()
    assert Projects(tmp_path).get("elsewhere") is not None


def test_what_a_link_in_a_store_points_to_stays_and_is_named(projects, tmp_path):
    path = make(projects, "work", "tea")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "photo").write_bytes(b"x")
    (path / "cache").symlink_to(kept)
    (path / "notes").mkdir()
    (path / "notes" / "link").symlink_to(kept / "photo")
    done = projects.remove("work")
    assert (sorted(done.links), done.others) == (["cache", "notes/link"], ["notes"])
    assert (kept / "photo").exists()
    assert not path.exists()


@pytest.mark.parametrize(
    "name",
    [
        *("projector.lock", "scrub.lock", "model/build.lock"),
        *("log/seals.jsonl", "log/conversations/x_0"),
    ],
)
def test_who_holds_a_lock_keeps_the_store(projects, name):
    path = make(projects, "work", "tea")
    with memlog.open(path) as store:
        store.maintenance.project(embed=False)
    file = path / name
    if name.endswith("x_0"):
        (file,) = file.iterdir()
    with locks.holding_lock(file, "it", 1.0):
        before = sorted(path.rglob("*"))
        with pytest.raises(Busy):
            projects.remove("work", lock_timeout=0.05)
        assert sorted(path.rglob("*")) == before
        assert names(projects) == [("work", False)]
    assert projects.remove("work").done


def test_who_lets_go_of_a_lock_in_time_is_waited_for(projects):
    path = make(projects, "work", "tea")
    fd = os.open(path / "projector.lock", os.O_CREAT | os.O_RDWR)
    disk.lock(fd)
    timer = threading.Timer(0.1, lambda: os.close(fd))
    timer.start()
    assert projects.remove("work", lock_timeout=60).done
    timer.join()


class Killed(BaseException):
    """Ends the removal where it stands, as a kill does."""


def killed_at(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk does no more from the `call`th change on."""
    left = [call]

    def stand_in(real: Any) -> Any:
        def one(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*args, **options)

        return one

    for name in ("rename", "unlink", "remove_folder", "sync"):
        monkeypatch.setattr(disk, name, stand_in(getattr(disk, name)))


def test_a_removal_that_is_killed_anywhere_leaves_a_whole_store_or_what_the_next_one_finishes(
    tmp_path, monkeypatch
):
    gone_at = None
    for call in range(200):
        projects = Projects(tmp_path / f"{call}")
        path = make(projects, "work", "tea")
        with memlog.open(path) as store:
            store.maintenance.project(embed=False)
        with monkeypatch.context() as disk_of_a_kill:
            killed_at(call, disk_of_a_kill)
            try:
                projects.remove("work")
            except Killed:
                pass
            else:
                gone_at = call
        if gone_at is not None:
            assert names(projects) == []
            break
        (found,) = projects.list()
        if not found.is_being_removed:
            assert call == 0
            with memlog.open(path) as store:
                assert store.search("tea", mode="text").hits
            continue
        assert projects.get("work") is None
        done = projects.remove("work")
        assert (done.done, done.files, done.finished) == (True, 0, ["work"])
        assert list(projects.folder.iterdir()) == []
    assert gone_at is not None
    assert gone_at > 10


def test_what_a_killed_removal_left_stays_apart_from_a_new_store_of_the_name(projects, monkeypatch):
    make(projects, "work", "tea")
    with monkeypatch.context() as disk_of_a_kill:
        killed_at(4, disk_of_a_kill)
        with pytest.raises(Killed):
            projects.remove("work")
    make(projects, "work", "coffee")
    assert names(projects) == [("work", True), ("work", False)] or names(projects) == [
        ("work", False),
        ("work", True),
    ]
    with memlog.open(projects.path("work")) as store:
        assert [hit.content for hit in store.search("tea coffee", mode="text").hits] == ["coffee"]
    make(projects, "other", "milk")
    done = projects.remove("other")
    assert done.finished == ["work"]
    assert names(projects) == [("work", False)]


def test_a_folder_that_only_has_such_a_name_is_not_taken_for_what_a_removal_left(projects):
    kept = projects.folder / "work~0123abcd"
    kept.mkdir(parents=True)
    (kept / "photo").write_bytes(b"x")
    make(projects, "work", "tea")
    projects.remove("work")
    assert projects.list() == []
    assert (kept / "photo").exists()


def test_what_cannot_be_removed_is_named_and_stays_listed(projects, monkeypatch):
    make(projects, "work", "tea")

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as unwilling:
        unwilling.setattr(disk, "unlink", refused)
        with pytest.raises(LogError, match="Permission denied"):
            projects.remove("work")
    assert names(projects) == [("work", True)]
    assert projects.remove("work").done
    assert projects.list() == []


def test_a_store_that_is_in_use_is_made_anew_by_the_next_append(projects):
    with memlog.open(make(projects, "work", "tea")) as store:
        assert store.search("tea", mode="text").hits
        projects.remove("work")
        with pytest.raises(memlog.NotFound):
            store.search("tea", mode="text")
        store.append([memlog.MemorySaved(content="coffee")])
        assert store.search("coffee", mode="text").hits
    assert names(projects) == [("work", False)]
