"""`memlog init` makes a store with a settings file, and leaves alone what stands."""

import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlog.cli.settings import SETTINGS

Run = Callable[..., Any]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_a_folder_for_its_owner_alone(memlog: Run, store: Path) -> None:
    done = memlog("init", preexec_fn=lambda: os.umask(0))
    assert (done.code, done.err) == (0, b"")
    assert done.out.decode() == f"{store}: made log, memlog.toml\n"
    assert (_mode(store), _mode(store / "log"), _mode(store / "memlog.toml")) == (0o700, 0o700, 0o600)
    assert sorted(path.name for path in store.iterdir()) == ["log", "memlog.toml"]


def test_what_init_prints_for_programs(memlog: Run, store: Path) -> None:
    assert memlog("init", "--json").json == {"store": str(store), "made": ["log", "memlog.toml"]}
    assert memlog("init", "--json").json == {"store": str(store), "made": []}


def test_a_second_init_changes_nothing_and_says_so(memlog: Run, store: Path) -> None:
    memlog("init")
    (store / "memlog.toml").write_text("search_limit = 3\n")
    done = memlog("init")
    assert (done.code, done.out.decode()) == (0, f"{store}: it stands already: nothing was changed\n")
    assert (store / "memlog.toml").read_text() == "search_limit = 3\n"


def test_init_gives_a_store_that_an_append_made_its_settings_file(memlog: Run, store: Path) -> None:
    memlog("append", "session_break", "--chat", "x:1")
    assert memlog("init", "--json").json["made"] == ["memlog.toml"]
    assert memlog("status", "--json").json["events"] == 1


def test_the_file_changes_nothing_and_has_every_setting_with_its_default(memlog: Run, store: Path) -> None:
    memlog("init")
    text = (store / "memlog.toml").read_text()
    assert tomllib.loads(text) == {}
    uncommented = re.sub(r"(?m)^# (\w+ = )", r"\1", text)
    assert tomllib.loads(uncommented) == {
        setting.name: "" if setting.default is None else setting.default
        for setting in SETTINGS
        if setting.in_file
    }
    (store / "memlog.toml").write_text(uncommented)
    origins = {each["name"]: each["origin"] for each in memlog("config", "--json").json["settings"]}
    assert {name for name, origin in origins.items() if origin != "memlog.toml"} == {
        "store",
        "project",
        "model",
    }


def test_every_setting_in_the_file_is_explained(memlog: Run, store: Path) -> None:
    memlog("init")
    text = (store / "memlog.toml").read_text()
    for setting in SETTINGS:
        assert (f"# {setting.meaning}" in text) is setting.in_file


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
