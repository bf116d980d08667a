"""Histories of tests/copies/test_any_copies.py, for so long, and twice as long ones."""

import time

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.copies.test_any_copies import SETTINGS, STEPS, Copies, drawn_surroundings

_HISTORIES = 25


def run(seconds: float, seed: int) -> dict[str, int]:
    """Draw histories anew from `seed` on, some at a time, until the time is over.

    Raises:
        AssertionError: copies with the same files were unlike, or an acknowledged event was not there.
    """
    counts, end = {"histories": 0, "steps": 0}, time.monotonic() + seconds
    settings = hypothesis.settings(
        SETTINGS, max_examples=_HISTORIES, stateful_step_count=2 * STEPS, database=None
    )
    with drawn_surroundings():
        while time.monotonic() < end:
            rounds = hypothesis.seed(seed + counts["histories"])(Copies)
            run_state_machine_as_test(rounds, settings=settings)
            counts["histories"] += _HISTORIES
    counts["steps"] = Copies.steps
    return counts
