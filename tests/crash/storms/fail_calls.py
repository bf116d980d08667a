"""Every call of the disk fails, of appends and projections: each failure, once and for ever."""

import time
from itertools import cycle, product

from tests.crash.faults.failing_calls import COMMANDS, fail_each_call
from tests.crash.faults.failing_disk import FAILURES


def run(seconds: float, seed: int) -> dict[str, int]:
    """Go through commands and failures for so long, beginning at one that `seed` chooses.

    Raises:
        AssertionError: an undocumented exit code, a traceback, a false acknowledgement, a failing next run.
    """
    end, runs, passes = time.monotonic() + seconds, 0, 0
    every = list(product(COMMANDS, FAILURES, (False, True)))
    start = seed % len(every)
    for name, failure, for_ever in cycle([*every[start:], *every[:start]]):
        if time.monotonic() > end:
            break
        done = fail_each_call(name, [(failure, for_ever)])
        assert done.violations == [], done.violations[:3]
        runs += done.runs
        passes += 1
    return {"runs": runs, "passes": passes, "of_passes": len(every), "violations": 0}
