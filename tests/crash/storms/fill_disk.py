"""A disk that is full at some byte of a batch."""

import time

from tests.crash.faults.full_disk import filled


def run(seconds: float, seed: int) -> dict[str, int]:
    """Fill it at other bytes for so long.

    Raises:
        AssertionError: something was acknowledged falsely, or appends failed when there was room again.
    """
    end, number, counts = time.monotonic() + seconds, seed, {"offsets": 0, "stopped": 0, "violations": 0}
    while time.monotonic() < end:
        report = filled(number, 1000)
        assert report["violations"] == [], f"seed {number}: {report['violations'][:3]}"
        counts["offsets"] += report["offsets"]
        counts["stopped"] += report["stopped"]
        number += 1
    return counts
