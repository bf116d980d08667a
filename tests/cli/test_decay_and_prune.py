"""Categories, memlog decay and memlog prune as processes, and what they print."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.limits import CATEGORIES

Run = Callable[..., Any]

OLD = ("--ts", "2020-02-24T10:00:00Z")


@pytest.fixture
def faded(memlog: Run) -> None:
    """A memory of a day long ago."""
    saved = ("--content", "green tea", "--title", "Tea", "--memory-id", "tea", "--category", "temp")
    memlog("memory", "save", *saved, *OLD)


@pytest.mark.parametrize(
    "args",
    [
        ("memory", "save", "--content", "tea", "--category", "preferences"),
        ("memory", "update", "m", "--category", "preferences"),
        ("memory", "list", "--category", "preferences"),
        ("query", "tea", "--category", "preferences"),
        ("prune", "--category", "preferences"),
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_an_unknown_category_is_refused_and_the_error_lists_the_known(
    memlog: Run, store: Path, args: tuple[str, ...]
) -> None:
    done = memlog(*args, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "'preferences' is not one of " + ", ".join(map(repr, CATEGORIES)) in done.error["message"]
    assert not store.exists()


def test_an_unknown_kind_is_refused_and_the_error_lists_the_known(memlog: Run) -> None:
    done = memlog("memory", "list", "--kind", "opinion", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "'opinion' is not one of 'fact', 'preference', 'insight'" in done.error["message"]


def test_decision_is_read_as_decisions(memlog: Run) -> None:
    memlog("memory", "save", "--content", "tea", "--memory-id", "m", "--category", "decision")
    (found,) = memlog("memory", "list", "--category", "decision", "--json").json["memories"]
    assert (found["memory_id"], found["category"]) == ("m", "decisions")


@pytest.mark.usefixtures("faded")
def test_a_memory_shows_what_events_did_and_what_age_does_apart(memlog: Run) -> None:
    memlog("append", "salience_decayed", "--rates", '{"temp":0.5}')
    (found,) = memlog("memory", "list", "--json").json["memories"]
    assert (found["salience"], found["importance"]) == (0.5, 0.5)
    assert found["age_days"] > 2000
    assert found["relevance"] == 0.25 * found["freshness"] < 1e-9
    shown = memlog("memory", "show", "tea").out.decode()
    for line in ("salience       0.5", "freshness      0.0", "relevance      0.0"):
        assert f"\n{line}\n" in shown
    row = memlog("memory", "list").out.decode().splitlines()[1].split()
    assert row[:5] == ["0.500", "0.000", "0.50", "0.000", "temp"]


@pytest.mark.usefixtures("faded")
def test_a_decay_is_done_once_a_day_and_says_so(memlog: Run, store: Path) -> None:
    first = memlog("decay")
    again = memlog("decay", "--rates", '{"temp":0.1}', "--json")
    assert [first.code, again.code] == [0, 0]
    assert list(first.json) == ["decision", "changed", "event_id", "ts", "rates", "position"]
    assert [first.json["decision"], again.json["decision"]] == ["decayed", "already done today"]
    assert first.json["rates"] == {name: each.rate for name, each in CATEGORIES.items()}
    assert first.json["changed"] == 1
    assert again.json == first.json | {"decision": "already done today", "changed": 0, "position": None}
    (segment,) = (store / "log/memory").iterdir()
    assert segment.read_bytes().count(b"salience_decayed") == 1


def test_rates_that_cannot_be_are_refused(memlog_here: Run, store: Path) -> None:
    for rates, code, named in (
        ('{"context":1.5}', 65, "the rate of context is 1.5"),
        ('{"context":-1}', 65, "the rate of context is -1"),
        ('{"contex":0.9}', 65, "'contex', not one of decisions, "),
        ("{}", 65, "no category has a rate"),
        ('{"context":NaN}', 2, "'--rates'"),
        ("0.9", 2, "'--rates'"),
    ):
        done = memlog_here("decay", "--rates", rates, "--json")
        assert done.code == code, rates
        assert named in done.error["message"], rates
        assert done.error["hint"], rates
        assert not (store / "log").exists(), rates


@pytest.mark.usefixtures("faded")
def test_a_dry_run_lists_what_would_be_archived_and_archives_nothing(memlog: Run) -> None:
    shown = memlog("prune", "--dry-run")
    assert shown.out.split()[-4:] == [b"days", b"temp", b"tea", b"Tea"]
    assert b"memlog: 1 memory would be archived" in shown.err
    document = memlog("prune", "--dry-run", "--json").json
    assert list(document) == ["memories", "archived", "threshold", "categories", "dry_run"]
    assert [each["memory_id"] for each in document["memories"]] == ["tea"]
    del document["memories"]
    assert document == {
        "archived": 0,
        "threshold": 0.001,
        "categories": ["temp", "debug"],
        "dry_run": True,
    }


@pytest.mark.usefixtures("faded")
def test_a_pruning_archives_what_it_lists_and_asks_nobody(memlog: Run) -> None:
    done = memlog("prune")
    assert (done.code, b"memlog: 1 memory archived" in done.err) == (0, True)
    (archived,) = memlog("memory", "list", "--archived", "--json").json["memories"]
    assert archived["memory_id"] == "tea"
    again = memlog("prune", "--jsonl")
    assert (again.code, again.lines) == (0, [])


@pytest.mark.usefixtures("faded")
def test_the_threshold_is_a_setting_and_an_option(memlog: Run, store: Path) -> None:
    memlog("memory", "save", "--content", "coffee", "--memory-id", "m", "--category", "context", *OLD)
    (store / "memlog.toml").write_text("archive_threshold = 0.03\n")
    pruned = ("prune", "--category", "context", "--dry-run", "--json")
    assert memlog(*pruned).json["archived"] == 0
    assert [each["memory_id"] for each in memlog(*pruned).json["memories"]] == ["m"]
    assert memlog(*pruned, env={"MEMLOG_ARCHIVE_THRESHOLD": "0.02"}).json["memories"] == []
    assert memlog(*pruned, "--threshold", "0.025").json["threshold"] == 0.025
    assert memlog("prune", "--threshold", "nan").code == 2


def test_ten_megabytes_are_a_memory(memlog: Run) -> None:
    """One that is archived from the first: to cut what is searched takes 16 seconds."""
    content = b"green tea, and then some more of it\n" * 300_000
    assert len(content) > 10_000_000
    memlog("append", "memory_archived", "--memory-id", "m")
    earlier = ("--ts", "2020-01-01T00:00:00Z")
    done = memlog("memory", "save", "--content", "-", "--memory-id", "m", *earlier, input=content)
    assert done.code == 0
    (found,) = memlog("memory", "list", "--archived", "--json").json["memories"]
    assert found["content"].encode() == content.rstrip(b"\n")
    assert len(found["title"]) == 80
    refused = memlog("memory", "save", "--content", "-", "--json", input=2 * content)
    assert (refused.code, refused.error["code"]) == (65, "too_long")
