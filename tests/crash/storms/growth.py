"""The growth gate of tests/growth with all its attacks, and on longer texts, for so long."""

import os
import random
import time
from pathlib import Path

from tests.growth.arguments import calls, exclusion_reason
from tests.growth.attacks import against, general
from tests.growth.functions import text_functions
from tests.growth.measuring import SHORTEST, SHORTEST_OF_MANY_STEPS, SIZES, first_growth
from tests.growth.patterns import patterns
from tests.growth.world import World

_SIZES = (*SIZES, 65_536)
_MOST = 40


def run(seconds: float, seed: int) -> dict[str, int]:
    """Attack patterns and functions in an order drawn from `seed`, until the time is over.

    Raises:
        AssertionError: the time of one grew faster than its text.
    """
    counts, end, drawn = {"patterns": 0, "functions": 0}, time.monotonic() + seconds, random.Random(seed)
    before, world = Path.cwd(), World()
    os.chdir(world.folder)
    try:
        work = [("patterns", site, call, attacks, SHORTEST) for site, call, attacks in _patterns()]
        work += [
            ("functions", call.label, call, general(), SHORTEST_OF_MANY_STEPS if call.is_stored else SHORTEST)
            for function in text_functions("memlog")
            if exclusion_reason(function) is None
            for call in calls(function, world)
        ]
        drawn.shuffle(work)
        for kind, name, call, attacks, floor in work:
            if time.monotonic() > end:
                break
            growth = first_growth(call, attacks, _SIZES, floor)
            assert growth is None, f"{name}: {growth}"
            counts[kind] += 1
    finally:
        os.chdir(before)
        world.close()
    return counts


def _patterns():
    for found in patterns("memlog", exercise="exercise")[0]:
        attacks = [*against(found.pattern, _MOST), *general()]
        for method, call in found.calls():
            yield f"{found.site} {method}", call, attacks
