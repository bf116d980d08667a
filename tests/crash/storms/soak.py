"""`memlog watch` under appends for a long time: it holds no more memory at the end than when it was warm."""

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.support.watched import Watch, appended, percentile

_A_SECOND = 20
_ROUND = 200
_WARM_SHARE, _WARM_SECONDS = 0.2, 120.0
_GROWTH = 1.05


def run(seconds: float, seed: int) -> dict[str, int]:
    """Appends for so long, 20 events a second by two processes.

    Raises:
        AssertionError: an event has not come, or the memory has grown by more than 5 % since it was warm.
    """
    rng = random.Random(seed)
    started = time.monotonic()
    warm_at = started + min(_WARM_SECONDS, _WARM_SHARE * seconds)
    slowest: list[float] = []
    held: list[int] = []
    with tempfile.TemporaryDirectory(prefix="memlog-soak-") as folder:
        store = Path(folder, "store")
        watch = Watch(store)
        try:
            used = watch.cpu_seconds()
            while not held or time.monotonic() < started + seconds:
                slowest += appended(store, _ROUND, writers=2, rng=rng, a_second=_A_SECOND)
                watch.hear()
                if time.monotonic() >= warm_at:
                    held.append(watch.resident_bytes())
                    _tell(time.monotonic() - started, held)
            used = watch.cpu_seconds() - used
            assert watch.end() == 0
        finally:
            watch.close()
    warm, last = max(held[:3]), held[-1]
    assert last <= warm * _GROWTH, f"{warm:,} bytes were held when it was warm, {last:,} at the end"
    return {
        "events": len(slowest),
        "ms p99": round(percentile(slowest, 0.99) * 1000),
        "KiB warm": warm // 1024,
        "KiB at the end": last // 1024,
        "processor seconds": round(used),
    }


def _tell(seconds: float, held: list[int]) -> None:
    if len(held) % 6 == 1:
        print(f"  {seconds:.0f} s: {held[-1] // 1024:,} KiB", file=sys.stderr, flush=True)
