"""Real power cuts: ext4 on a loop device, shut down while writers append."""

import random
import time

from tests.crash.faults.real_power_cut import cycle, why_not


def run(seconds: float, seed: int) -> dict[str, int]:
    """Cut for so long; the last cut is of writers that do not sync. No cycle where that is not allowed.

    Raises:
        AssertionError: an event that was acknowledged before a cut is lost.
    """
    counts = {"cycles": 0, "acknowledged": 0, "lost": 0, "control_acknowledged": 0, "control_lost": 0}
    if why_not() is not None:
        return counts
    chance, end = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end:
        done = cycle(chance.uniform(0.05, 1.5))
        assert done.lost == 0, f"{done.lost} lost of {done.acknowledged}"
        assert done.problems == []
        counts["cycles"] += 1
        counts["acknowledged"] += done.acknowledged
    control = cycle(0.5, durability="os")
    counts |= {"control_acknowledged": control.acknowledged, "control_lost": control.lost}
    assert control.lost > control.acknowledged / 2, "cuts take nothing here"
    return counts
