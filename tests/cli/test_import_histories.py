"""memlog import without arguments: what coding agents keep on this machine."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.support.agent_samples import sample
from tests.support.forked_memlog import run_memlog
from tests.support.places import ROOT

SAMPLES = ROOT / "fixtures/importers"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("claude-code", "codex"):
        shutil.copytree(SAMPLES / name, tmp_path / f"home/.{name.partition('-')[0]}")
    return tmp_path / "home"


def run(home: Path, *args: str, **variables: str):
    env = {"HOME": str(home), "MEMLOG_STORE": str(home / "store"), "PATH": os.environ["PATH"]} | variables
    return run_memlog(*args, env=env)


def test_it_shows_each_program_and_imports_nothing_unasked(home: Path) -> None:
    done = run(home, "import")
    assert [line.split()[:4] for line in done.stdout.decode().splitlines()[1:]] == [
        ["claude-code", "~/.claude", "2", "19"],
        ["codex", "~/.codex", "6", "32"],
    ]
    assert not (home / "store/log").exists()
    (found, _) = json.loads(run(home, "import", "--json").stdout)["histories"]
    assert (found["first"], found["kept_days"]) == ("2026-09-01T08:00:01.000Z", 30)


@pytest.mark.parametrize(
    ("days", "age", "expiring"), [(None, 24, 1), (None, 20, 0), (90, 24, 0), (10, 24, 1)]
)
def test_it_counts_the_sessions_that_are_deleted_within_a_week(
    home: Path, days: int | None, age: int, expiring: int
) -> None:
    if days is not None:
        (home / ".claude/settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    session = next(home.glob(".claude/projects/*/*1.jsonl"))
    os.utime(session, (0, time.time() - age * 86400))
    found = json.loads(run(home, "import", "--json").stdout)["histories"]
    assert [each["expiring"] for each in found] == [expiring, 0]


def test_a_program_is_imported_from_its_own_folder_wherever_that_is(home: Path) -> None:
    (home / ".codex").rename(home / "elsewhere")
    done = run(home, "import", "codex", "--json", CODEX_HOME=str(home / "elsewhere"))
    assert json.loads(done.stdout)["appended"] == 33
    assert run(home, "import", "klaw").returncode == 2


def test_a_home_without_agents_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "import")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"name a format and a path" in done.stderr


def test_only_a_host_and_only_what_changed_since_are_shown_and_imported(home: Path) -> None:
    _, new = sorted(home.glob(".claude/projects/*/5e5*.jsonl"))
    for path in home.rglob("*.jsonl"):
        os.utime(path, (0, 0))
    os.utime(new)
    done = run(home, "import", "--host", "claude-code", "--since", "2026-01-01", "--json")
    (found,) = json.loads(done.stdout)["histories"]
    assert (found["format"], found["sessions"]) == ("claude-code", 1)
    assert run(home, "import", "--host", "klaw").returncode == 2
    imported = run(home, "import", "claude-code", "--since", "2026-01-01", "--json")
    assert json.loads(imported.stdout)["appended"]
    chats = json.loads(run(home, "sessions", "--json").stdout)["sessions"]
    assert {each["chat"] for each in chats} == {f"claude-code:{new.stem}"}


def test_pi_gemini_cli_and_opencode_are_found_in_their_folders_or_where_a_variable_says(
    tmp_path: Path,
) -> None:
    places = {"gemini-cli": ".gemini", "opencode": ".local/share/opencode", "pi": ".pi/agent"}
    for name, place in places.items():
        (tmp_path / "home" / place).parent.mkdir(parents=True, exist_ok=True)
        sample(name, tmp_path / "home" / place)
    counts = [["gemini-cli", "2", "10"], ["opencode", "4", "25"], ["pi", "1", "6"]]
    elsewhere = {
        "GEMINI_CLI_HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "home/.local/share"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "home/.pi/agent"),
    }
    (tmp_path / "empty").mkdir()
    for home, variables in ((tmp_path / "home", {}), (tmp_path / "empty", elsewhere)):
        found = json.loads(run(home, "import", "--json", **variables).stdout)["histories"]
        assert [[each["format"], str(each["sessions"]), str(each["messages"])] for each in found] == counts
    assert json.loads(run(tmp_path / "home", "import", "opencode", "--json").stdout)["appended"] == 27


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        ({}, 30),
        ({"general": {"sessionRetention": {"maxAge": "2w"}}}, 14),
        ({"general": {"sessionRetention": {"enabled": False, "maxAge": "2w"}}}, None),
    ],
)
def test_the_settings_of_gemini_cli_say_when_it_deletes_a_session(
    tmp_path: Path, settings: dict[str, object], days: int | None
) -> None:
    sample("gemini-cli", tmp_path / ".gemini")
    (tmp_path / ".gemini/settings.json").write_text(json.dumps(settings))
    (found,) = json.loads(run(tmp_path, "import", "--json").stdout)["histories"]
    assert found["kept_days"] == days
