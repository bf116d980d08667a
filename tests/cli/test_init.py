"""`memlog init` makes a store with a settings file, and leaves alone what stands."""

import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.options.settings import flatten_sections
from memlog.cli.options.settings_schema import all_settings

Run = Callable[..., Any]

MADE = ["log", "log/FORMAT", "memlog.toml", ".gitignore", ".gitattributes"]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_a_folder_for_its_owner_alone(memlog: Run, store: Path) -> None:
    done = memlog("init", preexec_fn=lambda: os.umask(0))
    assert (done.code, done.err) == (0, b"")
    assert done.out.decode() == f"{store}: made {', '.join(MADE)}\n"
    assert (_mode(store), _mode(store / "log"), _mode(store / "memlog.toml")) == (0o700, 0o700, 0o600)
    assert sorted(path.name for path in store.iterdir()) == [
        ".gitattributes",
        ".gitignore",
        "log",
        "memlog.toml",
    ]


def test_what_init_prints_for_programs(memlog: Run, store: Path) -> None:
    assert memlog("init", "--json").json == {"store": str(store), "made": MADE, "missing": {}}
    assert memlog("init", "--json").json == {"store": str(store), "made": [], "missing": {}}


def test_a_second_init_changes_nothing_and_says_so(memlog: Run, store: Path) -> None:
    memlog("init")
    (store / "memlog.toml").write_text("search_limit = 3\n")
    (store / ".gitignore").write_text(f"mine\n{(store / '.gitignore').read_text()}")
    done = memlog("init")
    assert (done.code, done.out.decode()) == (0, f"{store}: it already exists: nothing was changed\n")
    assert (store / "memlog.toml").read_text() == "search_limit = 3\n"
    assert (store / ".gitignore").read_text().startswith("mine\n")


IGNORED = ["/model/", "/cache/", "/writers/", "/*.lock", "/watermarks.jsonl", "/store.key"]


def test_init_names_the_lines_that_the_files_of_git_lack(memlog: Run, store: Path) -> None:
    store.mkdir()
    (store / ".gitignore").write_bytes(b"mine\n /cache/ \r\n\xff")
    done = memlog("init")
    lacking = [line for line in IGNORED if line != "/cache/"]
    assert done.code == 0
    assert done.out.decode().splitlines()[2:] == lacking
    assert ".gitignore already existed; add these lines to it" in done.out.decode()
    assert (store / ".gitignore").read_bytes() == b"mine\n /cache/ \r\n\xff"
    (store / ".gitattributes").write_text("")
    missing = memlog("init", "--json").json["missing"]
    assert missing[".gitignore"] == lacking
    assert [line.split()[1] for line in missing[".gitattributes"]] == ["-text", "merge=union", "merge=union"]


def test_with_the_lines_that_init_names_git_takes_the_log_alone(memlog: Run, store: Path) -> None:
    store.mkdir()
    (store / ".gitignore").write_text("mine\n")
    with (store / ".gitignore").open("a") as file:
        file.write("\n".join(memlog("init", "--json").json["missing"][".gitignore"]))
    memlog("memory", "save", "--content", "green tea")
    memlog("project")
    subprocess.run(["git", "init"], cwd=store, check=True, timeout=60)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=store,
        check=True,
        timeout=60,
        capture_output=True,
    )
    tops = {name.split("/")[0] for name in listed.stdout.decode().split()}
    assert tops == {"log", "memlog.toml", ".gitignore", ".gitattributes"}


def test_init_takes_a_gitignore_that_it_cannot_read_for_an_empty_one(
    memlog: Run, store: Path, bound_by_modes: dict[str, Any]
) -> None:
    memlog("init")
    (store / ".gitignore").chmod(0)
    done = memlog("init", "--json", **bound_by_modes)
    assert (done.code, done.json["missing"]) == (0, {".gitignore": IGNORED})


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_init_passes_over_what_is_no_file_of_git(
    memlog: Run, store: Path, make: Callable[[Path], None]
) -> None:
    store.mkdir()
    make(store / ".gitignore")
    assert memlog("init", "--json").json["missing"] == {".gitignore": IGNORED}


def test_init_gives_a_store_that_an_append_made_its_settings_file(memlog: Run, store: Path) -> None:
    memlog("append", "session_break", "--chat", "x:1")
    assert memlog("init", "--json").json["made"] == MADE[2:]
    assert memlog("status", "--json").json["events"] == 1


def test_the_file_changes_nothing_and_has_every_setting_with_its_default(memlog: Run, store: Path) -> None:
    memlog("init")
    text = (store / "memlog.toml").read_text()
    assert tomllib.loads(text) == {}
    uncommented = re.sub(r"(?m)^# (\w+ = |\[)", r"\1", text)
    assert dict(flatten_sections(tomllib.loads(uncommented))) == {
        setting.name: _in_file(setting.default)
        for setting in all_settings()
        if setting.may_be_in_file and not setting.is_only_of_user
    }
    (store / "memlog.toml").write_text(uncommented)
    origins = {each["name"]: each["origin"] for each in memlog("config", "--json").json["settings"]}
    unset = {name for name, origin in origins.items() if origin != "memlog.toml"}
    empty = {setting.name for setting in all_settings() if setting.default is None}
    own = {setting.name for setting in all_settings() if setting.is_only_of_user}
    assert unset == {"store", "project", *empty, *own}


def _in_file(default: Any) -> Any:
    return "" if default is None else [*default] if isinstance(default, tuple) else default


def test_every_setting_in_the_file_is_explained(memlog: Run, store: Path) -> None:
    memlog("init")
    text = (store / "memlog.toml").read_text()
    for setting in all_settings():
        assert (f"# {setting.meaning}" in text) is (setting.may_be_in_file and not setting.is_only_of_user)


def test_where_a_file_stands_in_the_way_no_store_is_made(memlog: Run, store: Path) -> None:
    store.write_bytes(b"mine")
    done = memlog("init", "--json")
    assert (done.code, done.error["code"]) == (73, "cannot_create")
    assert done.error["message"].startswith(str(store))
    assert store.read_bytes() == b"mine"


def test_a_folder_that_cannot_be_written_is_named(
    memlog: Run, read_only: Run, bound_by_modes: dict[str, Any]
) -> None:
    read_only()
    done = memlog("init", "--json", **bound_by_modes)
    assert (done.code, done.error["code"]) == (73, "cannot_create")


def test_notes_beside_an_empty_store_are_named(memlog: Run, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("- Anna lives in Turku\n")
    store = ("--store", str(tmp_path / "store"))
    assert f"import memory-folder {tmp_path}".encode() in memlog(*store, "init").err
    found = {each["check"]: each for each in memlog(*store, "doctor", "--json").json["findings"]}
    assert "memory-folder" in found["notes"]["finding"]
    memlog(*store, "import", "memory-folder", str(tmp_path))
    assert b"import" not in memlog(*store, "init").err
