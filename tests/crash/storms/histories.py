"""Histories of tests/projector/test_any_history.py, for so long."""

import time

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.projector.test_any_history import SETTINGS, History, victim_process

_HISTORIES = 25


def run(seconds: float, seed: int) -> dict[str, int]:
    """Draw histories anew from `seed` on, some at a time, until the time is over.

    Raises:
        AssertionError: a read model was not what its log says, or an acknowledged event was not there.
    """
    counts, end = {"histories": 0, "steps": 0}, time.monotonic() + seconds
    with victim_process():
        while time.monotonic() < end:
            rounds = hypothesis.seed(seed + counts["histories"])(History)
            settings = hypothesis.settings(SETTINGS, max_examples=_HISTORIES, database=None)
            run_state_machine_as_test(rounds, settings=settings)
            counts["histories"] += _HISTORIES
    counts["steps"] = History.steps
    return counts
