"""Projects and chats of tests/isolation, for so long."""

import time

import hypothesis

from tests.isolation.reads import READS, of_the_log
from tests.isolation.test_isolation import check_isolation
from tests.isolation.worlds import World, worlds

_WORLDS = 20


def run(seconds: float, seed: int) -> dict[str, int]:
    """Draw projects anew from `seed` on, some at a time, until the time is over.

    Raises:
        AssertionError: a read gave something of another project, or of another chat than was asked for.
    """
    count, end = 0, time.monotonic() + seconds
    settings = hypothesis.settings(
        max_examples=_WORLDS, deadline=None, database=None, suppress_health_check=[*hypothesis.HealthCheck]
    )
    while time.monotonic() < end:
        hypothesis.seed(seed + count)(settings(hypothesis.given(worlds())(_check)))()
        count += _WORLDS
    return {"worlds": count}


def _check(drawn: list[World]) -> None:
    check_isolation(drawn, [*READS.values(), of_the_log], "text")
