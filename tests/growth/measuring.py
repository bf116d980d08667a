"""Whether work on a text grows with more than its length, by the CPU time that it takes."""

import gc
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import NamedTuple

from tests.growth.attacks import Attack

MOST = 6.0
"""A text of four times the length may take so many times as long: 4 is linear, 16 is quadratic."""

SIZES = (16, 40, 256, 4096)
"""Characters, from few on: an exponential pattern would not come back from the greatest."""

SHORTEST = 1e-3
"""Seconds. What takes less is flat: at 4,096 characters they are 250 ns a character, and quadratic work of
one nanosecond a step takes 8 ms."""

SHORTEST_OF_MANY_STEPS = 20e-3
"""The same of at most 40 characters, for which exponential work of 10 ns a step would take hours, and of what
goes through a log and a read model, which takes some milliseconds for any text."""

_LONG = 50e-3
"""Seconds; what takes longer is not tried on a longer text."""

_FEW = 40
_TRIES = 3


class Growth(NamedTuple):
    """What grows too fast. factor: how much longer four times the text takes."""

    attack: Attack
    size: int
    factor: float
    seconds: float

    def __str__(self) -> str:
        prefix, atom, suffix = self.attack
        return (
            f"{prefix!r} + {atom!r} × {self.size // len(atom)} + {suffix!r}:"
            f" {self.seconds * 1000:.1f} ms, {self.factor:.1f} × as long as a fourth of it"
        )


def first_growth(
    work: Callable[[str], object],
    attacks: Iterable[Attack],
    sizes: Iterable[int] = SIZES,
    shortest: float = SHORTEST,
) -> Growth | None:
    """The first attack on which `work` grows faster than its text; None where it never does."""
    with _no_collection():
        for attack in attacks:
            for size in sizes:
                floor = shortest if size > _FEW else SHORTEST_OF_MANY_STEPS
                if _seconds(work, attack.text(size)) < floor:
                    continue
                growth = _growth(work, attack, size, floor)
                # Work that has a bound may grow up to it: it does not grow on.
                if growth and (growth.seconds > _LONG or _growth(work, attack, 4 * size, floor)):
                    return growth
    return None


def _growth(work: Callable[[str], object], attack: Attack, size: int, floor: float) -> Growth | None:
    """What a text of this size takes beside a fourth of it; None where one of some tries is not too much."""
    few, many = attack.text(size // 4), attack.text(size)
    factors, seconds = [], []
    for _ in range(_TRIES):
        # Four times the short one, so that both suffer alike from what else the machine does.
        short = sum(_seconds(work, few) for _ in range(4)) / 4
        seconds.append(_seconds(work, many))
        factors.append(seconds[-1] / short)
        if seconds[-1] < floor or factors[-1] <= MOST:
            return None
    return Growth(attack, size, min(factors), min(seconds))


def _seconds(work: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    work(text)
    return time.thread_time() - started


@contextmanager
def _no_collection() -> Iterable[None]:
    """A collection of garbage takes as long as everything that was imported is large."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
