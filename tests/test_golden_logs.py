"""The logs of every version of memlog, of which no line ever changes, are read by this one.

fixtures/golden/README.md says what stands there; expected.json beside each log says what it must answer.
"""

import json
from collections.abc import Iterator
from shutil import copytree
from typing import Any

import pytest

import memlog
from memlog.eventlog.events import TYPES
from tests.support.places import FIXTURES

GOLDEN = FIXTURES / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def store(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[memlog.Store]:
    """The tests only read it."""
    folder = tmp_path_factory.mktemp(version)
    copytree(GOLDEN / version / "log", folder / "log")
    with memlog.open(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def expected(version: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((GOLDEN / version / "expected.json").read_text())
    return answers


def test_there_is_a_golden_log_of_the_first_version() -> None:
    assert "v1" in VERSIONS


def test_the_newest_golden_log_has_every_type() -> None:
    newest = max(VERSIONS, key=lambda version: int(version.removeprefix("v")))
    lines = [line for path in (GOLDEN / newest / "log").rglob("*.jsonl") for line in path.open("rb")]
    types = {json.loads(line).get("type") for line in lines if line.startswith(b"{")}
    assert set(TYPES) <= types


def test_a_query_finds_what_it_found(store: memlog.Store, expected: dict[str, Any]) -> None:
    """Still, whatever its rank: the ranking of a later version may be a better one, and it may find more."""
    for question, answer in expected["query"].items():
        hits = store.search(question, mode="text", k=50, ranking=memlog.Ranking(context=False)).hits
        found = [[hit.kind, hit.id, hit.event_id, hit.source, hit.content] for hit in hits]
        assert [hit for hit in answer if hit not in found] == [], question


def test_a_window_shows_what_it_showed(store: memlog.Store, expected: dict[str, Any]) -> None:
    for chat, answer in expected["window"].items():
        shown = store.conversations.window(chat.split(":"))
        said = [[each.id, each.role, each.name, each.type, each.ts, each.content] for each in shown.messages]
        assert {"session_start": shown.session_start, "messages": said} == answer, chat


def test_the_core_memory_is_what_it_was(store: memlog.Store, expected: dict[str, Any]) -> None:
    """Of several people each has a profile, so that no chat shows all of it."""
    shown = [store.core.get(), *(store.core.get(chat=chat) for chat in expected["window"])]
    user = {key: value for core in shown for key, value in core.user.items()}
    assert {"user": user, "agent": shown[0].agent} == expected["core get"]


def test_every_event_and_memory_is_shown_where_it_stands(
    store: memlog.Store, expected: dict[str, Any]
) -> None:
    for name, answer in expected["show"].items():
        shown = store.get(name)
        assert shown is not None, name
        assert [shown.id, shown.type, shown.ts, shown.position.stream, shown.position.line] == answer, name


def test_what_was_redacted_or_deleted_is_not_shown(store: memlog.Store, expected: dict[str, Any]) -> None:
    assert expected["gone"]
    for name in expected["gone"]:
        assert store.get(name) is None, name


def test_the_same_lines_are_quarantined(store: memlog.Store, expected: dict[str, Any]) -> None:
    lines = [[line.stream, line.segment, line.offset, line.reason] for line in store.maintenance.quarantine()]
    assert lines == expected["quarantine"]


def test_the_read_model_is_equal_to_its_replay(store: memlog.Store, expected: dict[str, Any]) -> None:
    verified = store.maintenance.verify()
    assert verified.problems == []
    assert verified.events == expected["events"]
