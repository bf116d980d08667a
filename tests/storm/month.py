"""fixtures/month in steps and under kills, for so long: first in 2,000 single steps, then in drawn ones."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from in_memory import memory
from month_log import MONTH, Line, lines, parts, victim, write

from memlog.projector.digest import digest
from memlog.projector.lifecycle import Projector

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
    shutil.copytree(MONTH / "log", folder / "once" / "log")
    expected = _digest(folder / "once")
    assert _after_single_steps(folder / "single") == expected, f"kept {folder}"
    while time.monotonic() < end:
        store = folder / f"round-{rounds}"
        _killed(store, rng)
        assert _digest(store) == expected, f"kept {folder}"
        shutil.rmtree(store)
        rounds += 1
    shutil.rmtree(folder)
    return {"single_steps": len(list(parts(1))), "rounds": rounds, "kills": rounds * _KILLS}


def _after_single_steps(store: Path) -> str:
    projector = Projector(store)
    for part in parts(1):
        write(store, part)
        projector.catch_up()
    projector.close()
    return _digest(store)


def _killed(store: Path, rng: random.Random) -> None:
    """Write the month in drawn parts; each is projected, and that killed."""
    with victim() as strike:
        for part in _drawn(rng):
            write(store, part)
            what = "rebuild" if rng.random() < 0.2 else "project"
            strike(store, what, rng.random() * _LONGEST_STEP * (10 if what == "rebuild" else 1))


def _drawn(rng: random.Random) -> Iterator[list[Line]]:
    """The month in as many parts as there are kills, of any lengths."""
    month = lines()
    cuts = sorted(rng.randrange(len(month)) for _ in range(_KILLS - 1))
    for start, stop in zip([0, *cuts], [*cuts, len(month)], strict=True):
        yield month[start:stop]


def _digest(store: Path) -> str:
    projector = Projector(store)
    projector.catch_up()
    found = digest(projector.live())
    projector.close()
    return found
