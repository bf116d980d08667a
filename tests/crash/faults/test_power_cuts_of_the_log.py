"""The power is cut at every operation on the log: what was acknowledged stands, once; appending goes on."""

import re

import pytest

from tests.crash.faults import planted_faults
from tests.crash.faults.log_scenarios import SCENARIOS, Plant
from tests.crash.faults.simulation import cut_the_log

SEED = 20260224
STATES = {
    "append": 600,
    "another's store": 400,
    "batch": 400,
    "new day": 400,
    "roll": 400,
    "scrub": 700,
    "seal": 400,
    "torn tail": 450,
    "two writers": 600,
    "short write": 350,
    "failed sync": 500,
}
"""How many states at least are looked at, by scenario."""


def test_every_scenario_is_cut() -> None:
    assert STATES.keys() == SCENARIOS.keys()
    assert sum(STATES.values()) >= 5000


@pytest.mark.parametrize("scenario", STATES)
def test_no_power_cut_loses_or_doubles_an_acknowledged_event(scenario: str) -> None:
    # Recovering from what is sealed takes three times as long.
    at_each = 15 if scenario in ("seal", "scrub", "roll", "new day") else 40
    done = cut_the_log(scenario, seed=SEED, at_each=at_each, again_every=75, again_at_each=3)
    assert done.violations == [], f"the state is kept in {done.kept}"
    assert done.states >= STATES[scenario]


@pytest.mark.parametrize(
    ("plant", "scenario", "found"),
    [
        (planted_faults.no_sync, "append", "a was acknowledged, and is lost"),
        (planted_faults.no_folder_sync, "append", "a was acknowledged, and is lost"),
        (planted_faults.no_folder_sync, "new day", "b was acknowledged, and is lost"),
        (planted_faults.no_folder_sync, "roll", "b was acknowledged, and is lost"),
        (planted_faults.acknowledged_early, "batch", "batch-0 was acknowledged, and is lost"),
        (
            planted_faults.truncating_repair,
            "batch",
            r"what stood in 2026-02-24\.[a-z2-7]{6}\.jsonl stands there no more",
        ),
    ],
)
def test_a_fault_of_the_protocol_is_found(plant: Plant, scenario: str, found: str) -> None:
    done = cut_the_log(scenario, seed=SEED, at_each=60, plant=plant)
    assert any(re.search(f"{found}$", violation) for violation in done.violations)
