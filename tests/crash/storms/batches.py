"""Logs and batches of tests/projector/test_any_batches.py, for so long."""

import time

import hypothesis
from hypothesis import strategies as st

from tests.projector.test_any_batches import check_any_batches

_LOGS = 50


def run(seconds: float, seed: int) -> dict[str, int]:
    """Draw logs anew from `seed` on, some at a time, until the time is over.

    Raises:
        AssertionError: batches gave another read model, or other answers, than one replay.
    """
    logs, end = 0, time.monotonic() + seconds
    settings = hypothesis.settings(
        max_examples=_LOGS,
        deadline=None,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    while time.monotonic() < end:
        hypothesis.seed(seed + logs)(settings(hypothesis.given(st.data())(check_any_batches)))()
        logs += _LOGS
    return {"logs": logs}
