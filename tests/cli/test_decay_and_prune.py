"""What the commands of memories that fade add to the operations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as package

Run = Callable[..., Any]

OLD = ("--ts", "2020-02-24T10:00:00Z")


def test_decision_is_read_as_decisions(memlog: Run) -> None:
    memlog("memory", "save", "--content", "tea", "--memory-id", "m", "--category", "decision")
    (found,) = memlog("memory", "list", "--category", "decision", "--json").json["memories"]
    assert (found["memory_id"], found["category"]) == ("m", "decisions")


def test_the_threshold_is_a_setting_and_an_option(memlog: Run, store: Path) -> None:
    for category in ("temp", "context"):
        memlog("memory", "save", "--content", category, "--memory-id", category, "--category", category, *OLD)
    (store / "memlog.toml").write_text("archive_threshold = 0.03\n")
    pruned = ("prune", "--category", "context", "--dry-run", "--json")
    assert memlog(*pruned).json["archived"] == 0
    assert [each["memory_id"] for each in memlog(*pruned).json["memories"]] == ["context"]
    assert memlog(*pruned, env={"MEMLOG_ARCHIVE_THRESHOLD": "0.02"}).json["memories"] == []
    assert memlog(*pruned, "--threshold", "0.025").json["threshold"] == 0.025
    assert memlog("prune", "--threshold", "nan").code == 2


def in_python(store: Path) -> None:
    with package.open(store, decay=package.DecayRules(rates={"context": 0.5})) as opened:
        opened.memories.decay()


@pytest.mark.parametrize(
    "decay", [("decay",), ("jobs", "run", "daily"), in_python], ids=["command", "daily job", "Python"]
)
def test_decay_rates_of_the_settings_apply_by_default(memlog: Run, store: Path, decay: Any) -> None:
    for category in ("decisions", "summaries", "context"):
        memlog("memory", "save", "--content", category, "--memory-id", category, "--category", category, *OLD)
    (store / "memlog.toml").write_text("[decay.rates]\ncontext = 0.5\n")
    if decay is in_python:
        decay(store)
    else:
        assert memlog(*decay).code == 0
    found = memlog("memory", "list", "--json").json["memories"]
    saliences = {each["memory_id"]: each["salience"] for each in found}
    assert saliences == {"decisions": 1.0, "summaries": 0.99, "context": 0.5}


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
