"""The project of a folder: its remote, its checkout, or itself."""

import os
import shutil
from pathlib import Path

import pytest

from memlog.eventlog.log.streams import project_folder
from memlog.service.exchange.checkouts import Checkouts, normalise_remote
from tests.support.agent_homes import git, make_repository

TEA = "github.com/anna/tea"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/anna/tea.git", TEA),
        ("https://anna:ghp_secret@GitHub.com:443/anna/tea/", TEA),
        ("https://github.com/anna/tea.git?access_token=secret#x", TEA),
        ("ssh://git@github.com:22/anna/tea.git/", TEA),
        ("git://github.com//anna/tea", TEA),
        ("git@github.com:anna/tea.git", TEA),
        ("github.com:/anna/tea", TEA),
        ("ssh://git@[::1]:22/tea.git", "[::1]/tea"),
        ("[::1]:tea.git", "[::1]/tea"),
        ("/srv/git/tea.git", "/srv/git/tea"),
        ("file:///srv/git/tea.git", "/srv/git/tea"),
        ("../git/tea.git", "../git/tea"),
        ("..", None),
        ("ext::ssh -i key git@github.com %S anna/tea", None),
        ("", None),
    ],
)
def test_all_ways_to_a_repository_are_one_name_without_secrets(url: str, name: str | None) -> None:
    assert normalise_remote(url) == name


@pytest.fixture
def checkouts(tmp_path: Path) -> Checkouts:
    return Checkouts(tmp_path)


def test_origin_counts_before_other_remotes_and_a_session_s_own(checkouts: Checkouts, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "tea")
    assert checkouts.project_of(str(folder), "git@github.com:anna/told.git") == "github.com/anna/told"
    for name in ("fork", "anna", "origin"):
        git(folder, "remote", "add", name, f"https://github.com/{name}/tea")
        assert Checkouts().project_of(str(folder), "told:x") == f"github.com/{name}/tea"


def test_worktrees_and_bare_repositories_without_a_remote_share_a_path(
    checkouts: Checkouts, tmp_path: Path
) -> None:
    main = make_repository(tmp_path / "tea")
    git(main, "worktree", "add", "--quiet", "../tree")
    (main / "lid").mkdir()
    (tmp_path / "linked").symlink_to(main)
    for folder in (main, main / "lid", main / ".git", tmp_path / "tree", tmp_path / "linked/lid"):
        assert checkouts.project_of(str(folder)) == str(main)
    git(tmp_path, "clone", "--quiet", "--bare", str(main), "pot.git")
    git(tmp_path / "pot.git", "remote", "remove", "origin")
    git(tmp_path / "pot.git", "worktree", "add", "--quiet", "../pot-tree")
    for folder in (tmp_path / "pot.git", tmp_path / "pot-tree"):
        assert checkouts.project_of(str(folder)) == str(tmp_path / "pot.git")


def test_of_a_folder_that_is_gone_the_repository_around_it_counts(
    checkouts: Checkouts, tmp_path: Path
) -> None:
    main = make_repository(tmp_path / "tea", "https://github.com/anna/tea")
    gone = str(main / "trees/lid")
    assert checkouts.project_of(gone) == TEA
    assert checkouts.project_of(gone, "git@github.com:anna/lid.git") == "github.com/anna/lid"
    assert checkouts.project_of(str(tmp_path / "pot/lid")) == str(tmp_path / "pot/lid")


def test_a_repository_of_the_whole_home_folder_holds_only_sessions_in_that_folder(
    checkouts: Checkouts, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "notes").mkdir()
    for folder in (tmp_path, tmp_path / "notes", tmp_path / "gone"):
        assert checkouts.project_of(str(folder)) == str(folder)
    git(tmp_path, "remote", "add", "origin", "https://github.com/anna/home")
    assert Checkouts(tmp_path).project_of(str(tmp_path)) == "github.com/anna/home"
    assert Checkouts(tmp_path).project_of(str(tmp_path / "notes")) == str(tmp_path / "notes")


def test_no_variable_of_the_caller_names_another_repository(
    checkouts: Checkouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "pot")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert checkouts.project_of(str(make_repository(tmp_path / "tea"))) == str(tmp_path / "tea")


def test_without_git_folders_are_projects_and_a_note_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = make_repository(tmp_path / "tea", "https://github.com/anna/tea")
    (main / "lid").mkdir()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    checkouts = Checkouts(tmp_path)
    for folder in (main, main / "lid"):
        assert checkouts.project_of(str(folder)) == str(folder)
    assert checkouts.notes == ["git is not installed: folders stand for projects"]


def test_where_git_refuses_folders_are_projects_and_a_note_says_why(
    checkouts: Checkouts, tmp_path: Path
) -> None:
    main = make_repository(tmp_path / "tea", "https://github.com/anna/tea")
    (main / ".git/config").write_text("[broken\n")
    assert checkouts.project_of(str(main)) == str(main)
    (note,) = checkouts.notes
    assert "bad config" in note


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_checkout_of_another_user_is_refused(checkouts: Checkouts, tmp_path: Path) -> None:
    main = make_repository(tmp_path / "tea", "https://github.com/anna/tea")
    for path in (main, main / ".git"):
        os.chown(path, 12345, 12345)
    assert checkouts.project_of(str(main)) == str(main)
    assert "dubious ownership" in checkouts.notes[0]


def test_a_long_name_is_shortened_and_stays_distinct(checkouts: Checkouts) -> None:
    names = [checkouts.project_of(f"/gone/{'чай' * 60}{ending}") for ending in ("a", "b", "a")]
    assert names[0] == names[2] != names[1]
    assert all(len(project_folder(str(name))) <= 255 for name in names)


def test_a_session_that_names_nothing_has_no_project(checkouts: Checkouts) -> None:
    assert checkouts.project_of(None) is checkouts.project_of("tea") is checkouts.project_of("/a\0b") is None
