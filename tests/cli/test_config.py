"""`memlog config` shows what holds, and where it comes from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.options.settings_schema import all_settings

Run = Callable[..., Any]


def test_every_setting_is_listed_with_its_value_and_origin(memlog: Run, store: Path) -> None:
    done = memlog("config", "--json", env={"MEMLOG_SEARCH_LIMIT": "7"})
    listed = done.json["settings"]
    assert [each["name"] for each in listed] == [setting.name for setting in all_settings()]
    assert all(list(each) == ["name", "value", "origin", "unit"] for each in listed)
    values = {each["name"]: (each["value"], each["origin"]) for each in listed}
    assert values["store"] == (str(store), "environment")
    assert values["search_limit"] == (7, "environment")
    assert values["durability"] == ("fsync", "default")
    assert values["model"] == (None, "default")


def test_people_see_a_line_a_setting(memlog: Run, store: Path) -> None:
    lines = memlog("config").out.decode().splitlines()
    assert lines[0].split() == ["setting", "value", "from"]
    assert lines[1].split() == ["store", str(store), "environment"]
    assert ["model", "none", "default"] in map(str.split, lines)
    assert lines[len([*all_settings()]) + 1 :] == ["nothing is sent to a provider"]


def test_one_value_is_printed_alone(memlog: Run, store: Path) -> None:
    assert memlog("config", "search_limit").out == b"10\n"
    assert memlog("config", "store").out.decode() == f"{store}\n"
    assert memlog("config", "model").out == b"\n"
    expected = {"name": "search_limit", "value": 10, "origin": "default", "unit": "hits"}
    assert memlog("config", "search_limit", "--json").json == expected


def test_without_a_named_store_it_is_the_projects(memlog: Run, tmp_path: Path) -> None:
    env = {"MEMLOG_STORE": "", "XDG_DATA_HOME": str(tmp_path / "data")}
    found = memlog("--project", "tea", "config", "store", "--json", env=env).json
    assert Path(found["value"]).name == "tea"
    assert found["origin"] == "default"
    assert memlog("--project", "tea", "config", "project", "--json", env=env).json["origin"] == "option"


@pytest.mark.parametrize(
    ("name", "meant"), [("search_limits", "search_limit"), ("Durability", "durability"), ("xyz", "")]
)
def test_an_unknown_name_is_wrong_usage_and_the_nearest_is_named(memlog: Run, name: str, meant: str) -> None:
    done = memlog("config", name, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert repr(name) in done.error["message"]
    assert f"did you mean {meant}" in done.error["message"]


def test_it_makes_no_store(memlog: Run, store: Path) -> None:
    memlog("config")
    assert not store.exists()


def test_control_characters_of_a_value_are_escaped(memlog: Run) -> None:
    done = memlog("--model", "\x1b[31m\u202e", "config", "model")
    assert done.out == b"\\x1b[31m\\u202e\n"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("search_limit", "3", "search_limit = 3"),
        ("embedding.type", "none", 'type = "none"'),
        ("redact", "yes", "redact = true"),
        ("context.messengers", "irc,telegram", 'messengers = ["irc", "telegram"]'),
        ("context.people", '{"anna": ["x:1"]}', 'anna = ["x:1"]'),
    ],
)
def test_set_writes_a_setting_and_keeps_comments(
    memlog: Run, store: Path, tmp_path: Path, name: str, value: str, line: str
) -> None:
    file, own = store / "memlog.toml", tmp_path / ".config/memlog/config.toml"
    store.mkdir()
    file.write_text("# mine\nsearch_limit = 7 # few\n\n[embedding]\nbatch = 4\n")
    assert memlog("config", "set", name, value).code == 0
    assert line in file.read_text().replace(" # few", "").splitlines()
    assert {"# mine", "batch = 4"} <= set(file.read_text().splitlines())
    assert memlog("config", name, "--json").json["origin"] == "memlog.toml"
    assert memlog("config", "set", "--user", name, value, env={"MEMLOG_STORE": ""}).code == 0
    assert line in own.read_text().splitlines()


@pytest.mark.parametrize(
    ("file", "name", "value", "code"),
    [
        ("", "search_limits", "3", 2),
        ("", "search_limit", "0", 2),
        ("", "store", "x", 65),
        ("", "embedding.api_key", "sk-1", 65),
        ("", "embedding.api_key", "${KEY}", 65),
        ("nonsense", "search_limit", "3", 65),
        ("search_limits = 3", "search_limit", "3", 65),
    ],
)
def test_what_set_refuses_leaves_the_file_alone(
    memlog_here: Run, store: Path, file: str, name: str, value: str, code: int
) -> None:
    store.mkdir()
    (store / "memlog.toml").write_text(file)
    done = memlog_here("config", "set", name, value)
    assert (done.code, (store / "memlog.toml").read_text()) == (code, file)
    assert done.err
