"""Two copies of a store that both go on are merged by copying files, with any tool."""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.eventlog.files import disk
from tests.copies.two_copies import Copies, append_some, appended_by, check_merged, digest, texts, verified
from tests.support.forked_memlog import run_memlog
from tests.support.places import ROOT

Run = Callable[..., None]
COPIES_PAGE = ROOT / "docs/copies.md"
GIT_FILES = (".gitignore", ".gitattributes")


def exit_code(*args: str, store: Path) -> int:
    """Of the installed command."""
    return run_memlog("--store", store, *args).returncode


def segments(store: Path, stream: str = "conversations/x_1") -> list[Path]:
    """Those of a stream, the oldest first."""
    return sorted((store / "log" / stream).iterdir())


def both_sides(store: Path, git: Run) -> None:
    """Resolve git's conflicts: remove its lines alone."""
    for file in (store / "log").rglob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for line in lines if line[:7] not in MARKERS))


def the_longer_side(store: Path, git: Run) -> None:
    """Resolve git's conflicts: take the side that appended."""
    git(store, "checkout", "--ours", "log")


MARKERS = (b"<" * 7, b"|" * 7, b"=" * 7, b">" * 7)


def test_rsync_update_both_ways_loses_nothing(copies: Copies, rsync: Run) -> None:
    rsync("-a", "--update", f"{copies.a}/log/", f"{copies.b}/log/")
    rsync("-a", "--update", f"{copies.b}/log/", f"{copies.a}/log/")
    check_merged(copies, "both", "a", "b")


def test_rsync_append_both_ways_loses_nothing(copies: Copies, rsync: Run) -> None:
    rsync("-a", "--append", f"{copies.a}/log/", f"{copies.b}/log/")
    rsync("-a", "--append", f"{copies.b}/log/", f"{copies.a}/log/")
    check_merged(copies, "both", "a", "b")


def test_rsync_append_loses_nothing_where_modification_times_were_not_kept(
    tmp_path: Path, rsync: Run
) -> None:
    """As after git clone, unzip and cp -r: the older and shorter files are newer by their times."""
    copies = Copies(tmp_path / "a", tmp_path / "b")
    append_some(copies.a, "both")
    shutil.copytree(copies.a, copies.b, copy_function=shutil.copyfile)
    for side in copies:
        append_some(side, side.name)
    for file in (copies.b / "log").rglob("*.jsonl"):
        ahead = time.time() + 60
        os.utime(file, (ahead, ahead))
    rsync("-a", "--append", f"{copies.b}/log/", f"{copies.a}/log/")
    rsync("-a", "--append", f"{copies.a}/log/", f"{copies.b}/log/")
    check_merged(copies, "both", "a", "b")


@pytest.mark.parametrize("seal", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("driver", [False, True], ids=["no driver", "union"])
def test_git_merges_both_ways_and_loses_nothing(tmp_path: Path, git: Run, driver: bool, seal: bool) -> None:
    copies = Copies(tmp_path / "a", tmp_path / "b")
    assert exit_code("init", store=copies.a) == 0
    if not driver:
        (copies.a / ".gitattributes").write_text("/log/** -text\n")
    append_some(copies.a, "both")
    git(copies.a, "init")
    git(copies.a, "add", ".")
    git(copies.a, "commit", "-m", "both")
    git(tmp_path, "clone", copies.a, copies.b)
    for side in copies:
        append_some(side, side.name, seal=seal)
        git(side, "add", ".")
        git(side, "commit", "-m", side.name)
    git(copies.b, "pull", "--no-rebase", "--no-edit", copies.a, "main")
    git(copies.a, "pull", "--no-rebase", "--no-edit", copies.b, "main")
    check_merged(copies, "both", "a", "b")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=copies.a, capture_output=True, check=True, timeout=60
    ).stdout.decode()
    assert {name.split("/")[0] for name in tracked.split()} <= {"log", "memlog.toml", *GIT_FILES}


def test_git_unites_what_an_older_memlog_appended_to_one_plain_segment(tmp_path: Path, git: Run) -> None:
    copies = Copies(tmp_path / "a", tmp_path / "b")
    assert exit_code("init", store=copies.a) == 0
    plain = Path("log/conversations/x_1/2026-02-24.jsonl")
    (copies.a / plain).parent.mkdir(parents=True)

    def say(side: Path, text: str) -> None:
        line = (
            f'{{"type":"message","id":"{text}","role":"user","content":"{text}","ts":"2026-02-24T10:00:00Z"}}'
        )
        with (side / plain).open("a") as file:
            file.write(f"{line}\n")

    say(copies.a, "both")
    git(copies.a, "init")
    git(copies.a, "add", ".")
    git(copies.a, "commit", "-m", "both")
    git(tmp_path, "clone", copies.a, copies.b)
    for side in copies:
        say(side, side.name)
        git(side, "commit", "-am", side.name)
    git(copies.b, "pull", "--no-rebase", "--no-edit", copies.a, "main")
    git(copies.a, "pull", "--no-rebase", "--no-edit", copies.b, "main")
    assert texts(copies.a) == texts(copies.b) == {"both", "a", "b"}
    assert digest(copies.a) == digest(copies.b)
    assert verified(copies.a).ok


def has_text(store: Path, text: str) -> bool:
    """Whether a text stands in any byte of a store."""
    with memlog.open(store) as opened:
        return bool(opened.erasure.prove(text).found)


@pytest.mark.parametrize("option", ["--update", "--append"])
def test_what_is_forgotten_leaves_every_copy_that_is_scrubbed(
    copies: Copies, rsync: Run, option: str
) -> None:
    def merge() -> None:
        rsync("-a", option, f"{copies.a}/log/", f"{copies.b}/log/")
        rsync("-a", option, f"{copies.b}/log/", f"{copies.a}/log/")

    merge()
    with memlog.open(copies.a) as store:
        store.erasure.forget(match="b remembers")
        store.erasure.scrub()
    merge()
    assert has_text(copies.b, "b remembers"), "a copy is erased by its own scrub alone"
    for side in copies:
        with memlog.open(side) as store:
            store.erasure.scrub()
    merge()
    for side in copies:
        assert texts(side) == appended_by("both", "a", "b") - {"b remembers"}
        assert not has_text(side, "b remembers")
        assert exit_code("verify", store=side) == 0
    assert digest(copies.a) == digest(copies.b)


def test_a_new_history_of_git_holds_nothing_that_was_scrubbed(tmp_path: Path, git: Run) -> None:
    """With the commands of docs/copies.md."""
    append_some(tmp_path / "a", "a")
    (commands,) = re.findall(r"```sh\n(rm -rf [.]git\n.*?)```", COPIES_PAGE.read_text(), re.DOTALL)
    _, *of_git = (shlex.split(line) for line in commands.splitlines())
    for _, *args in of_git:
        git(tmp_path / "a", *args)
    with memlog.open(tmp_path / "a") as store:
        store.erasure.forget(match="a remembers")
        store.erasure.scrub()
    git(tmp_path / "a", "commit", "-am", "scrubbed")

    def history() -> bytes:
        shown = ["git", "log", "--all", "-Sa remembers", "--oneline", "--", "log"]
        return subprocess.run(shown, cwd=tmp_path / "a", capture_output=True, check=True, timeout=60).stdout

    assert history() != b""
    shutil.rmtree(tmp_path / "a/.git")
    for _, *args in of_git:
        git(tmp_path / "a", *args)
    assert history() == b""


@pytest.mark.parametrize("keep", [both_sides, the_longer_side])
def test_a_conflict_that_git_leaves_is_damage_until_it_is_resolved(
    tmp_path: Path, git: Run, keep: Callable[[Path, Run], None]
) -> None:
    """One copy scrubs the last line of a segment, while its writer appends behind that line."""
    copies = Copies(tmp_path / "a", tmp_path / "b")
    assert exit_code("init", store=copies.a) == 0
    append_some(copies.a, "both")
    git(copies.a, "init")
    git(copies.a, "add", ".")
    git(copies.a, "commit", "-m", "both")
    git(tmp_path, "clone", copies.a, copies.b)
    with memlog.open(copies.b) as store:
        store.erasure.forget(match="both remembers")
        store.erasure.scrub()
    append_some(copies.a, "a")
    for side in copies:
        git(side, "add", ".")
        git(side, "commit", "-m", side.name)
    with pytest.raises(subprocess.CalledProcessError):
        git(copies.a, "pull", "--no-rebase", "--no-edit", copies.b, "main")
    assert not (copies.a / "model").exists()
    assert exit_code("verify", store=copies.a) == 1
    shutil.copytree(copies.a / "log", tmp_path / "looked into/log")
    with memlog.open(tmp_path / "looked into") as store:
        assert {line.reason for line in store.maintenance.quarantine()} == {"conflict_marker"}
        assert all(
            "store.erasure.scrub()" in store.maintenance.explain(line)
            for line in store.maintenance.quarantine()
        )
    keep(copies.a, git)
    git(copies.a, "add", ".")
    git(copies.a, "commit", "-m", "merged")
    with memlog.open(copies.a) as store:
        store.erasure.scrub()
    git(copies.a, "commit", "-am", "scrubbed")
    git(copies.b, "pull", "--no-rebase", "--no-edit", copies.a, "main")
    for side in copies:
        assert texts(side) == appended_by("both", "a") - {"both remembers"}
        assert exit_code("verify", store=side) == 0
        assert b"both remembers" not in b"".join(path.read_bytes() for path in segments(side, "memory"))
    assert digest(copies.a) == digest(copies.b)


def test_files_put_behind_each_other_lose_nothing_and_duplicates_are_counted(
    tmp_path: Path, rsync: Run
) -> None:
    copies = Copies(tmp_path / "a", tmp_path / "b")
    append_some(copies.a, "both")
    shutil.copytree(copies.a, copies.b)
    append_some(copies.a, "a")
    append_some(copies.b, "b")
    for file in sorted(copies.b.glob("log/**/*.jsonl")):
        other = copies.a / file.relative_to(copies.b)
        subprocess.run(f"cat '{file}' >> '{other}'", shell=True, check=True, timeout=60)
    rsync("-a", f"{copies.a}/log/", f"{copies.b}/log/")
    check_merged(copies, "both", "a", "b")
    assert verified(copies.a).duplicates == SAME_EVENTS


SAME_EVENTS = 4
CONFLICT_NAMES = [
    "{}.sync-conflict-20261123-101500-ABCDEFG.jsonl",
    "{} (conflicted copy 2026-11-23 101500).jsonl",
    "{} (Anna's conflicted copy 2026-11-23).jsonl",
]


def conflict_copies(store: Path) -> list[Path]:
    """Those that file syncs have left in a store."""
    return sorted(path for path in (store / "log").rglob("*") if "conflict" in path.name)


def put_conflict_copies(origin: Path, store: Path, pattern: str = CONFLICT_NAMES[0]) -> None:
    """The segments of `origin` that `store` lacks, as second versions of files of `store`: a fork, as after a
    restored backup that went on as the same writer.
    """
    for file in [each for stream in ("conversations/x_1", "memory") for each in segments(origin, stream)]:
        if not (store / file.relative_to(origin)).exists():
            stream = store / file.parent.relative_to(origin)
            shutil.copy2(file, stream / pattern.format(file.name.removesuffix(".jsonl")))


def remedies(store: Path) -> list[str]:
    """The commands that doctor gives for files that are not read."""
    with memlog.open(store) as opened:
        found = [finding for finding in opened.maintenance.examine() if finding.check == "unread files"]
    return [finding.remedy.partition("in the store's folder, ")[2] for finding in found if finding.remedy]


def follow_remedies(store: Path) -> None:
    for command in remedies(store):
        subprocess.run(command, shell=True, cwd=store, check=True, timeout=60)


@pytest.mark.parametrize("pattern", CONFLICT_NAMES)
def test_a_conflict_copy_is_reported_and_with_the_remedy_of_doctor_its_events_are_read(
    copies: Copies, pattern: str
) -> None:
    put_conflict_copies(copies.b, copies.a, pattern)
    assert exit_code("verify", store=copies.a) == 3
    assert texts(copies.a) == appended_by("both", "a")
    assert len(remedies(copies.a)) == 2
    assert [each for each in verified(copies.a).tampered if each.endswith(tuple(remedies(copies.a)))]
    follow_remedies(copies.a)
    assert conflict_copies(copies.a) == []
    assert texts(copies.a) == appended_by("both", "a", "b")
    assert exit_code("verify", store=copies.a) == 0


def test_two_copies_that_follow_the_remedy_for_different_conflict_copies_merge(
    tmp_path: Path, rsync: Run
) -> None:
    copies = Copies(tmp_path / "a", tmp_path / "b")
    append_some(copies.a, "both")
    shutil.copytree(copies.a, copies.b, copy_function=shutil.copy2)
    for side, said in zip(copies, ("on a's other laptop", "on b's other laptop"), strict=True):
        shutil.copytree(side, tmp_path / said)
        append_some(tmp_path / said, said)
        put_conflict_copies(tmp_path / said, side)
        follow_remedies(side)
    rsync("-a", "--update", f"{copies.a}/log/", f"{copies.b}/log/")
    rsync("-a", "--update", f"{copies.b}/log/", f"{copies.a}/log/")
    check_merged(copies, "both", "on a's other laptop", "on b's other laptop")


def test_one_conflict_copy_on_two_copies_gets_one_name(copies: Copies, tmp_path: Path) -> None:
    shutil.copytree(copies.a, tmp_path / "other")
    append_some(tmp_path / "other", "other")
    for side in copies:
        put_conflict_copies(tmp_path / "other", side)
    names: list[set[str]] = []
    for side in copies:
        before = set(segments(side))
        follow_remedies(side)
        names.append({path.name for path in segments(side) if path not in before})
    assert len(names[0]) == 1
    assert names[0] == names[1]


def test_a_conflict_copy_that_comes_again_is_to_be_removed(copies: Copies) -> None:
    for _ in range(2):
        put_conflict_copies(copies.b, copies.a)
        assert len(conflict_copies(copies.a)) == 2
        follow_remedies(copies.a)
        assert conflict_copies(copies.a) == []
    assert texts(copies.a) == appended_by("both", "a", "b")


def test_a_conflict_copy_that_cannot_be_read_keeps_nothing_else_from_being_told(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_conflict_copies(copies.b, copies.a)
    opened = disk.open

    def refuse(path: Path | str, *rest: Any, **more: Any) -> int:
        if ".sync-conflict-" in str(path):
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr(disk, "open", refuse)
    told = [each for each in verified(copies.a).tampered if "make it readable (Permission denied)" in each]
    assert len(told) == 2


def test_a_renamed_conflict_copy_that_was_cut_gets_its_bytes_back(copies: Copies) -> None:
    put_conflict_copies(copies.b, copies.a)
    before = set(segments(copies.a))
    follow_remedies(copies.a)
    (renamed,) = set(segments(copies.a)) - before
    renamed.write_bytes(b"")
    put_conflict_copies(copies.b, copies.a)
    follow_remedies(copies.a)
    assert texts(copies.a) == appended_by("both", "a", "b")


def test_a_conflict_copy_that_can_be_no_segment_has_a_remedy_of_its_own(tmp_path: Path) -> None:
    append_some(tmp_path / "s", "a")
    for name, says in (
        ("seals.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl", "move it out of log/"),
        ("FORMAT.sync-conflict-20261123-101500-ABCDEFG", "replace log/FORMAT with it"),
        ("2026-11-23.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl", "move it out of log/"),
        ("memory/2026-99-99.sync-conflict-20261123-101500-ABCDEFG.jsonl", "move it out of log/"),
    ):
        odd = tmp_path / "s/log" / name
        odd.write_text("x\n")
        assert exit_code("verify", store=tmp_path / "s") == 3, name
        with memlog.open(tmp_path / "s") as store:
            (found,) = (each for each in store.maintenance.examine() if each.check == "unread files")
            (note,) = (each for each in store.maintenance.project(embed=False).notes if "conflict" in each)
        told = (name in found.finding, says in found.remedy, "mv" in found.remedy)
        assert told == (True, True, False), name
        assert "store.maintenance.examine()" in note, name
        odd.unlink()


def test_verify_reports_what_is_not_read_and_leaves_hidden_files_alone(tmp_path: Path) -> None:
    append_some(tmp_path / "s", "a")
    for name, code in (
        ("seals.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl", 3),
        ("conversations/x_1/notes.txt", 1),
        ("conversations/x_1/2026-11-23.k7f3qz.jsonl.orig", 1),
        (".stignore", 0),
        ("conversations/x_1/.syncthing.2026-11-23.k7f3qz.jsonl.tmp", 0),
    ):
        odd = tmp_path / "s/log" / name
        odd.write_text("x\n")
        assert exit_code("verify", store=tmp_path / "s") == code, name
        with memlog.open(tmp_path / "s") as store:
            named = [each.finding for each in store.maintenance.examine() if each.check == "unread files"]
        assert any(name in finding for finding in named) is (code != 0), name
        odd.unlink()


def test_an_older_copy_over_the_origin_is_seen_and_its_lines_come_back(tmp_path: Path, rsync: Run) -> None:
    """Plain `rsync -a` cuts the origin's own segment: what is appended next goes into another file, so that
    the copy which still has the cut lines can give them back."""
    a, b, old = tmp_path / "a", tmp_path / "b", tmp_path / "old"
    append_some(a, "both")
    shutil.copytree(a / "log", old / "log")
    for file in (old / "log").rglob("*.jsonl"):
        # `--update` compares times in whole seconds.
        os.utime(file, (0, 0))
    append_some(a, "a")
    assert verified(a).ok
    shutil.copytree(a / "log", b / "log")
    rsync("-a", "--ignore-times", f"{old}/log/", f"{a}/log/")
    assert exit_code("verify", store=a) == 3
    append_some(a, "later")
    assert len(segments(a)) == 2, "the writer whose segment shrank takes a new name"
    rsync("-a", "--update", f"{a}/log/", f"{b}/log/")
    rsync("-a", "--update", f"{b}/log/", f"{a}/log/")
    check_merged(Copies(a, b), "both", "a", "later")
    assert exit_code("verify", store=a) == 0
