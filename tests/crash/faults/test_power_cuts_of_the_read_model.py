"""The power is cut at every operation of a projection, SQLite's too; queries then say what a replay says."""

import sys

import pytest

from tests.crash.faults import faulty_memlog
from tests.crash.faults.projecting_scenarios import SCENARIOS
from tests.crash.faults.simulation import cut_the_read_model
from tests.support.system_calls import why_no_strace

SEED = 20260224
STATES = {"first project": 160, "catch up": 150, "generation switch": 175, "vectors": 15}
"""How many states at least are looked at, by scenario."""
DRAWN = {
    "first project": (4, 0.9),
    "catch up": (6, 0.9),
    "generation switch": (6, 0.9),
    "vectors": (1, 0.001),
}
"""At most so many states at each operation, and the share of the writes that are cut at, by scenario."""

with_strace = pytest.mark.skipif(why_no_strace() is not None, reason=f"{why_no_strace()}")


def test_every_scenario_is_cut() -> None:
    assert STATES.keys() == SCENARIOS.keys()
    assert sum(STATES.values()) >= 500


@with_strace
@pytest.mark.parametrize("scenario", STATES)
def test_a_query_after_a_power_cut_answers_as_a_replay_does(scenario: str) -> None:
    """What was live stays live; the log is not touched; what is appended next is found."""
    at_each, share = DRAWN[scenario]
    done = cut_the_read_model(scenario, seed=SEED, at_each=at_each, share=share)
    assert done.violations == [], f"the state is kept in {done.kept}"
    assert done.states >= STATES[scenario]


@pytest.mark.parametrize("scenario", ["first project", "generation switch"])
def test_the_same_holds_of_what_memlog_itself_asks_of_the_disk(scenario: str) -> None:
    """Without strace: SQLite's files are taken as they are found whenever memlog calls."""
    done = cut_the_read_model(scenario, seed=SEED, at_each=12, share=1, by_strace=False)
    assert done.violations == [], f"the state is kept in {done.kept}"
    assert done.states >= 20


@with_strace
@pytest.mark.parametrize(
    ("fault", "scenario", "share", "found"),
    [
        (faulty_memlog.checkpoint_outside_the_transaction, "catch up", 1, "UNIQUE constraint failed"),
        (faulty_memlog.rename_before_sync, "generation switch", 0.05, "the live generation is lost"),
        (faulty_memlog.unsynced_generation, "generation switch", 0.05, "the live generation is lost"),
    ],
)
def test_a_fault_of_the_protocol_is_found(
    fault: faulty_memlog.Fault, scenario: str, share: float, found: str
) -> None:
    command = (sys.executable, faulty_memlog.__file__, fault.__name__)
    done = cut_the_read_model(
        scenario, seed=SEED, at_each=4, share=share, command=command, stop_at_first=True
    )
    assert any(found in violation for violation in done.violations)
