"""Power cuts at every operation on the log, other states each time: simulated."""

import time
from itertools import count

from tests.crash.faults.log_scenarios import SCENARIOS
from tests.crash.faults.simulation import cut_the_log


def run(seconds: float, seed: int) -> dict[str, int]:
    """Cut and recover for so long; every 20th state is cut again while it is recovered from.

    Raises:
        AssertionError: an acknowledged event was lost or doubled, or the next append failed.
    """
    end, states = time.monotonic() + seconds, 0
    for number in count():
        for scenario in SCENARIOS:
            if time.monotonic() > end:
                return {"states": states, "violations": 0}
            done = cut_the_log(scenario, seed=seed + number, at_each=1000, again_every=20)
            what = f"{scenario}, seed {seed + number}, kept in {done.kept}"
            assert done.violations == [], f"{what}: {done.violations[:3]}"
            states += done.states
    raise AssertionError("count has no end")
