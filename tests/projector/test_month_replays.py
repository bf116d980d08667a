"""A month of an assistant's life, of 2,000 events, gives one digest however it is replayed.

2,000 single steps take half a minute: `make storm` takes them, this takes longer ones.
"""

import json
import random
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from memlog.eventlog.events import TYPES
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import hash_dump
from tests.support.examples import examples
from tests.support.generated import sha256_of
from tests.support.in_memory import memory
from tests.support.month_log import EVENTS, is_behind, victim, write

SHA256 = "ba2f729874cde93fb4b31f0871ae59904c28d1df59260dbec33ab91d53c1eeee"
"""Of the paths and bytes of the month's log, as a memlog of the first format wrote it."""
KILLS = examples(3)
"""Of a projection that reads on, beside those of a rebuild."""
REBUILDS = 2
STEP = 100
"""Events between two catch-ups."""


class Replay(NamedTuple):
    """seconds: that it took."""

    projector: Projector
    digest: str
    seconds: float


@pytest.fixture(scope="module")
def folder():
    """In memory, where that can be."""
    with tempfile.TemporaryDirectory(prefix="memlog-month-", dir=memory()) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def at_once(folder, month):
    """The month's read model from one replay."""
    store = folder / "once"
    shutil.copytree(month.log, store / "log")
    projector = Projector(store)
    started = time.perf_counter()
    projector.catch_up()
    seconds = time.perf_counter() - started
    return Replay(projector, hash_dump(projector.connect_to_live()), seconds)


def test_the_log_is_generated_the_same_to_the_byte(month):
    assert sha256_of(month.log) == SHA256


def test_the_month_has_2000_events_of_all_types(at_once, month):
    written = [json.loads(line.data) for line in month.lines() if line.is_event]
    # In that month no message changed, no model or job ran, nothing was imported, and contexts were not
    # recorded.
    missing = {
        "message_updated",
        "message_deleted",
        "chat_described",
        "change_undone",
        "model_failed",
        "memories_extracted",
        "memories_merged",
        "profile_refreshed",
        "job_completed",
        "context_given",
        "events_imported",
        "import_undone",
    }
    assert {line["type"] or "message" for line in written} == set(TYPES) - missing
    assert len({(line["type"], line["id"]) for line in written}) == EVENTS
    gone = len({line["target_id"] for line in written if line["type"] == "redacted"})
    assert at_once.projector.connect_to_live().execute("SELECT count(*) FROM events").fetchone() == (
        EVENTS - gone,
    )


def test_two_lines_are_repeated_and_one_contradicts_what_was_said_before(at_once):
    read_model = at_once.projector.connect_to_live()
    repeated = read_model.execute("SELECT id FROM duplicates ORDER BY id").fetchall()
    assert repeated == [("brief-20",), ("save-flat-alarm",)]
    assert read_model.execute("SELECT id FROM conflicts").fetchall() == [("brief-25",)]


def test_the_memories_that_stand_are_those_of_a_telling_without_the_projector(at_once, month):
    rows = at_once.projector.connect_to_live().execute(
        "SELECT memory_id, content FROM memories WHERE archived_at IS NULL"
    )
    assert dict(rows.fetchall()) == month.standing()


def test_days_follow_each_other_without_a_gap(month):
    days = sorted({line.path[-16:-6] for line in month.lines() if line.is_event})
    assert (days[0], days[29]) == ("2026-01-15", "2026-02-13")


def test_lines_come_late_and_out_of_order(month):
    of_memories = [
        json.loads(line.data)["ts"] for line in month.lines() if line.path.startswith("log/memory/")
    ]
    assert sum(later < earlier for earlier, later in pairwise(of_memories)) > 10
    of_others = [line.path for line in month.lines() if "scheduler" in line.path]
    assert of_others != sorted(of_others)


def test_a_replay_at_once_gives_the_digest_of_the_snapshot(at_once, snapshot):
    assert at_once.digest == snapshot


def test_steps_give_the_digest_of_one_replay(at_once, folder, month):
    steps = Projector(folder / "steps")
    for part in month.parts(STEP):
        write(steps.store, part)
        steps.catch_up()
    assert hash_dump(steps.connect_to_live()) == at_once.digest


def test_after_kills_the_digest_is_that_of_one_replay(at_once, folder, month):
    store = folder / "killed"
    rng = random.Random("kills")
    grown = list(month.parts(EVENTS // KILLS + 1))
    with victim() as strike:
        for number, part in enumerate(grown):
            write(store, part)
            # The first one comes at once, so that something is left to do.
            strike(store, "project", number and rng.random() * at_once.seconds / len(grown))
            assert number or is_behind(store)
        for _ in range(REBUILDS):
            strike(store, "rebuild", rng.random() * at_once.seconds)
    after = Projector(store)
    after.catch_up()
    assert hash_dump(after.connect_to_live()) == at_once.digest
