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
    assert lines[0] == f"store          {store}  (environment)"
    assert "model          none  (default)" in lines
    assert lines[len([*all_settings()]) :] == ["nothing is sent to a provider"]


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
