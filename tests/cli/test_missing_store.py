"""A path where no store is: what reads says so and makes nothing, what stores something new makes it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from tests.support.sample_calls import BY_OPERATION, CALLED, PROJECTS, arguments_of

Run = Callable[..., Any]

CREATES = {
    *("core.import_file", "core.set", "daily.record", "documents.add_all", "exchange.import_from"),
    *("facts.extract", "facts.set", "memories.save", "workspaces.add"),
}
"""Operations that store something new."""

NEEDS_NONE = {"extraction.prompt", "maintenance.examine", *PROJECTS}
"""Operations that do not need a store."""

CREATING = [
    path
    for path in CALLED
    if path[0] in ("append", "init") or (path in BY_OPERATION and BY_OPERATION[path].name in CREATES)
]
REFUSED = [
    *(path for path, each in BY_OPERATION.items() if each.name not in CREATES | NEEDS_NONE),
    *(path for path in CALLED if path[0] == "log"),
]

WITH_LANGUAGE_MODEL = {"MEMLOG_LANGUAGE_MODEL_BASE_URL": "http://127.0.0.1:9"}
"""Without one, what distils does not come to look for a store."""


def test_what_reads_or_changes_a_store_makes_none(memlog_here: Run, store: Path, tmp_path: Path) -> None:
    for path in REFUSED:
        done = memlog_here(*path, *arguments_of(path, tmp_path), "--json", env=WITH_LANGUAGE_MODEL)
        assert (done.code, done.out) == (1, b""), (path, done.err)
        assert done.error["code"] == "store_not_found", path
        assert str(store) in done.error["message"], path
        assert "memlog init" in done.error["hint"], path
        assert not store.exists(), path


@pytest.mark.usefixtures("filled")
def test_what_stores_something_new_makes_the_store(
    memlog_here: Run, tmp_path: Path, without_model: dict[str, str]
) -> None:
    new = tmp_path / "new"
    for path in CREATING:
        said = b'{"type":"memory_saved","content":"x"}' if path == ("append",) else b""
        env = without_model | {"MEMLOG_STORE": str(new)}
        done = memlog_here(*path, *arguments_of(path, tmp_path), input=said, env=env)
        assert done.code == 0, (path, done.err)
        assert (new / "log").is_dir(), path
        shutil.rmtree(new)


def test_doctor_looks_at_the_machine_and_names_the_missing_store(memlog: Run, store: Path) -> None:
    done = memlog("doctor", "--json")
    (finding,) = [each for each in done.json["findings"] if each["check"] == "store"]
    assert (done.code, finding["state"]) == (1, "problem")
    assert str(store) in finding["finding"]
    assert not store.exists()


@pytest.mark.parametrize("name", ["log", "memlog.toml"])
def test_a_log_or_a_settings_file_makes_a_folder_a_store(memlog: Run, store: Path, name: str) -> None:
    store.mkdir()
    assert memlog("window", "--chat", "c:1").code == 1
    if name == "log":
        (store / name).mkdir()
    else:
        (store / name).touch()
    assert memlog("window", "--chat", "c:1").code == 0


def test_a_read_of_the_default_store_says_that_nothing_was_stored_yet(
    memlog: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    del environment["MEMLOG_STORE"]
    done = memlog("query", "tea")
    assert (done.code, done.out) == (1, b"")
    assert b"memlog: there is no store at " in done.err
    assert b"or create one with memlog init" in done.err
    assert list(tmp_path.rglob("memlog*")) == []


def test_a_store_in_python_is_made_by_the_first_append_alone(tmp_path: Path) -> None:
    with library.open(tmp_path / "store") as store:
        with pytest.raises(library.NotFound) as error:
            store.search("tea", mode="text")
        assert error.value.code == "store_not_found"
        assert not (tmp_path / "store").exists()
        store.append([library.MemorySaved(content="green tea")])
        assert len(store.search("tea", mode="text").hits) == 1
        shutil.rmtree(tmp_path / "store")
