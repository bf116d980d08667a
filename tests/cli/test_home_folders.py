"""`~` in a path stands for a home folder; without a home folder there is no default store."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SAID = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "tea")
BY_PROJECT = {"MEMLOG_STORE": ""}


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anna has a home folder; who runs the test has none but HOME."""
    anna = pwd.struct_passwd(("anna", "x", 7, 7, "", str(tmp_path / "anna"), "/bin/sh"))
    known = {"anna": anna}
    monkeypatch.setattr(pwd, "getpwnam", known.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/notes", "notes"),
        ("~", "."),
        ("~/a b/~", "a b/~"),
        ("~anna/notes", "anna/notes"),
        ("./~s", "here/~s"),
    ],
)
def test_a_home_folder_is_expanded_wherever_a_setting_is(
    memlog_here: Run, tmp_path: Path, written: str, meant: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    store = Path(os.path.normpath(tmp_path / meant))
    assert memlog_here(*SAID, env={"MEMLOG_STORE": written}, cwd=here).code == 0
    assert (store / "log").is_dir()
    assert memlog_here("--store", written, "config", "store", cwd=here).code == 0
    assert b"tea" in memlog_here("--store", written, "query", "tea", "--mode", "text", cwd=here).out


@pytest.mark.usefixtures("homes")
def test_a_home_folder_is_expanded_in_a_settings_file(memlog_here: Run, store: Path, tmp_path: Path) -> None:
    store.mkdir()
    for written, meant in (("~/m", tmp_path / "m"), ("~anna", tmp_path / "anna"), ("./~m", store / "~m")):
        (store / "memlog.toml").write_text(f'model = "{written}"')
        assert memlog_here("config", "model").out.decode() == f"{meant}\n", written


@pytest.mark.usefixtures("homes")
def test_a_home_folder_that_is_not_known_is_refused(memlog_here: Run, tmp_path: Path) -> None:
    for written, home in (("~bob/notes", str(tmp_path)), ("~/notes", ""), ("~", "home"), ("~bob", "")):
        variables = {"HOME": home, "MEMLOG_STORE": ""}
        option = memlog_here("--store", written, *SAID, env=variables, cwd=tmp_path)
        variable = memlog_here(*SAID, env=variables | {"MEMLOG_STORE": written}, cwd=tmp_path)
        assert (option.code, variable.code) == (2, 65), written
        assert b"not a home folder" in option.err, written
        assert b"not a home folder" in variable.err, written
    assert [*tmp_path.iterdir()] == []


def test_a_file_of_a_source_may_begin_with_a_tilde(memlog_here: Run, tmp_path: Path) -> None:
    (tmp_path / "~notes.md").write_text("green tea")
    (tmp_path / "home.md").write_text("black tea")
    for path in ("~notes.md", "~/home.md"):
        assert memlog_here("docs", "add", path, env={"HOME": str(tmp_path)}, cwd=tmp_path).code == 0, path
    assert len(memlog_here("query", "tea", "--mode", "text", "--json").json["hits"]) == 2


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize("home", ["", "home", ".", "~"])
@pytest.mark.parametrize(
    "command", [SAID, ("query", "tea"), ("projects", "list"), ("config", "store")], ids=" ".join
)
def test_without_a_home_folder_the_error_names_the_option_of_the_store(
    memlog_here: Run, tmp_path: Path, home: str, command: tuple[str, ...]
) -> None:
    done = memlog_here(*command, env=BY_PROJECT | {"HOME": home}, cwd=tmp_path)
    assert (done.code, done.out) == (65, b"")
    assert done.err.startswith(b"memlog: no home folder")
    assert b"--store" in done.err
    assert [*tmp_path.iterdir()] == []
