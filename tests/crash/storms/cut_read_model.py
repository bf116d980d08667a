"""Power cuts at every operation of a projection and of the generation switch, SQLite's too: simulated."""

import time
from itertools import count

from tests.crash.faults.projecting_scenarios import SCENARIOS
from tests.crash.faults.simulation import cut_the_read_model
from tests.support.system_calls import why_no_strace


def run(seconds: float, seed: int) -> dict[str, int]:
    """Cut and ask for so long. Without strace SQLite's files are taken as memlog's own calls find them.

    Raises:
        AssertionError: an answer was unlike a replay's, the log was touched, or what was live was lost.
    """
    end, states, by_strace = time.monotonic() + seconds, 0, why_no_strace() is None
    for number in count():
        for scenario in SCENARIOS:
            if time.monotonic() > end:
                return {"states": states, "violations": 0, "by_strace": int(by_strace)}
            share = 0.02 if SCENARIOS[scenario].has_vectors else 1
            done = cut_the_read_model(
                scenario, seed=seed + number, at_each=8, share=share, by_strace=by_strace
            )
            what = f"{scenario}, seed {seed + number}, kept in {done.kept}"
            assert done.violations == [], f"{what}: {done.violations[:3]}"
            states += done.states
    raise AssertionError("count has no end")
