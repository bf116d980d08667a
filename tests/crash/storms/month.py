"""A month in steps and under kills, for so long: first in 2,000 single steps, then in drawn ones."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memlog.projector.lifecycle import Projector
from memlog.projector.verify import digest
from tests.support.in_memory import memory
from tests.support.month import make as make_month
from tests.support.month_log import Line, MonthLog, victim, write

_KILLS = 20
_LONGEST_STEP = 0.05
"""In seconds, about: a kill comes within them."""


def run(seconds: float, seed: int) -> dict[str, int]:
    """2,000 single steps, which take half a minute; then rounds of twenty drawn parts of the month, each
    killed while it is projected, until the time is over.

    Raises:
        AssertionError: the digest was not that of one replay.
    """
    end, rng, rounds = time.monotonic() + seconds, random.Random(seed), 0
    folder = Path(tempfile.mkdtemp(prefix="memlog-month-", dir=memory()))
    make_month(folder / "once")
    month = MonthLog(folder / "once")
    expected = _digest(folder / "once")
    assert _after_single_steps(month, folder / "single") == expected, f"kept {folder}"
    while time.monotonic() < end:
        store = folder / f"round-{rounds}"
        _killed(month, store, rng)
        assert _digest(store) == expected, f"kept {folder}"
        shutil.rmtree(store)
        rounds += 1
    counts = {"single_steps": len(list(month.parts(1))), "rounds": rounds, "kills": rounds * _KILLS}
    shutil.rmtree(folder)
    return counts


def _after_single_steps(month: MonthLog, store: Path) -> str:
    projector = Projector(store)
    for part in month.parts(1):
        write(store, part)
        projector.catch_up()
    projector.close()
    return _digest(store)


def _killed(month: MonthLog, store: Path, rng: random.Random) -> None:
    """Write the month in drawn parts; each is projected, and that killed."""
    with victim() as strike:
        for part in _drawn(month, rng):
            write(store, part)
            what = "rebuild" if rng.random() < 0.2 else "project"
            strike(store, what, rng.random() * _LONGEST_STEP * (10 if what == "rebuild" else 1))


def _drawn(month: MonthLog, rng: random.Random) -> Iterator[list[Line]]:
    """The month in as many parts as there are kills, of any lengths."""
    all_lines = month.lines()
    cuts = sorted(rng.randrange(len(all_lines)) for _ in range(_KILLS - 1))
    for start, stop in zip([0, *cuts], [*cuts, len(all_lines)], strict=True):
        yield all_lines[start:stop]


def _digest(store: Path) -> str:
    projector = Projector(store)
    projector.catch_up()
    found = digest(projector.live())
    projector.close()
    return found
