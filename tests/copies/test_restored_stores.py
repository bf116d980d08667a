"""Older files take the place of those that a store's writer made: what it appends next goes elsewhere.

So a copy that has the newer lines gives them back."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memlog.eventlog.integrity import copy_identity
from memlog.eventlog.integrity.seal_close import accept_losses
from memlog.eventlog.log.writer import Log
from tests.copies.two_copies import Copies, append_some, check_merged, texts, verified

Run = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of which `old` is a copy; then it went on, and `other` is a copy of that."""
    path = tmp_path / "store"
    append_some(path, "both")
    _copied(path, tmp_path / "old")
    append_some(path, "newer")
    _copied(path, tmp_path / "other")
    return path


def _copied(old: Path, new: Path) -> None:
    subprocess.run(["cp", "-a", old, new], check=True)


def _cp_log_times(old: Path, store: Path, rsync: Run) -> None:
    subprocess.run(["cp", "-a", f"{old}/log/.", store / "log"], check=True)


def _log_anew(old: Path, store: Path, rsync: Run) -> None:
    shutil.rmtree(store / "log")
    shutil.copytree(old / "log", store / "log")


def _rsync(old: Path, store: Path, rsync: Run) -> None:
    rsync("-a", "--delete", f"{old}/", f"{store}/")


def _rsync_inplace(old: Path, store: Path, rsync: Run) -> None:
    rsync("-a", "--inplace", "--ignore-times", "--exclude=writers", f"{old}/", f"{store}/")


@pytest.mark.parametrize("restore", [_cp_log_times, _log_anew, _rsync, _rsync_inplace])
def test_what_is_appended_after_a_restore_that_nothing_had_read_is_in_another_file(
    store: Path, rsync: Run, restore: Callable[[Path, Path, Run], None]
) -> None:
    restore(store.parent / "old", store, rsync)
    append_some(store, "after")
    _merge_and_check(store, rsync, "both", "newer", "after")


@pytest.mark.parametrize("option", ["-a", "-r"])
def test_a_backup_of_the_whole_store_that_is_copied_over_it_is_seen_an_hour_after_its_writer_was_minted(
    store: Path, rsync: Run, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_identity, "_SETTLING_NS", 10_000_000)
    time.sleep(0.05)
    subprocess.run(["cp", option, f"{store.parent}/old/.", store], check=True)
    append_some(store, "after")
    _merge_and_check(store, rsync, "both", "newer", "after")


def test_a_writer_whose_loss_was_accepted_takes_another_name(store: Path, rsync: Run) -> None:
    assert verified(store).ok
    shutil.rmtree(store / "log/memory")
    assert len(verified(store).tampered) == 1
    accept_losses(store)
    append_some(store, "after")
    _merge_and_check(store, rsync, "both", "newer", "after")


def test_branches_of_one_store_under_git_have_files_of_their_own(tmp_path: Path, git: Run) -> None:
    store = tmp_path / "store"
    append_some(store, "both")
    for args in (["init"], ["add", "log"], ["commit", "-m", "both"], ["checkout", "-b", "feature"]):
        git(store, *args)
    append_some(store, "feature")
    git(store, "add", "log")
    git(store, "commit", "-m", "feature")
    git(store, "checkout", "main")
    append_some(store, "main")
    git(store, "add", "log")
    git(store, "commit", "-m", "main")
    git(store, "merge", "--no-edit", "feature")
    assert texts(store) == {
        f"{who} {number}" for who in ("both", "feature", "main") for number in range(3)
    } | {f"{who} remembers" for who in ("both", "feature", "main")}


def test_what_git_stashes_comes_back_beside_what_was_appended_meanwhile(tmp_path: Path, git: Run) -> None:
    store = tmp_path / "store"
    append_some(store, "both")
    for args in (["init"], ["add", "log"], ["commit", "-m", "both"]):
        git(store, *args)
    append_some(store, "stashed")
    git(store, "stash")
    append_some(store, "meanwhile")
    git(store, "stash", "pop")
    found = texts(store)
    assert {"both remembers", "stashed remembers", "meanwhile remembers"} <= found


def test_a_store_that_is_appended_to_by_many_processes_keeps_one_writer(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(5):
        append_some(store, f"process {number}", seal=number % 2 == 0)
    assert len(Log(store).read_own_writer_names()) == 1


def _merge_and_check(store: Path, rsync: Run, *names: str) -> None:
    other = store.parent / "other"
    # Not with --update: a restore may give an older file a newer time.
    rsync("-a", "--append-verify", f"{store}/log/", f"{other}/log/")
    rsync("-a", "--append-verify", f"{other}/log/", f"{store}/log/")
    for side in (store, other):
        # The read model of a restored store may know of what came back only now.
        verified(side)
    check_merged(Copies(store, other), *names)
