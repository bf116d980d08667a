"""The growth gate: what of a package takes more than its length of time for some text."""

from collections.abc import Iterable, Iterator

from tests.growth.arguments import NoRecipe, calls, exclusion_reason
from tests.growth.attacks import against, general
from tests.growth.functions import text_functions
from tests.growth.measuring import SHORTEST, SHORTEST_OF_MANY_STEPS, SIZES, first_growth
from tests.growth.patterns import Found
from tests.growth.world import World

_OF_STORED = 15


def growing_patterns(
    found: Iterable[Found], *, most: int, share: int = 1, sizes: Iterable[int] = SIZES
) -> Iterator[tuple[str, str]]:
    """Where a pattern stands that grows, and on what.

    most: how many attacks of each sort that are made of the pattern are tried.
    share: one in so many of the general attacks is tried, another one on each pattern.
    """
    for number, each in enumerate(found):
        attacks = [*against(each.pattern, most), *general()[number % share :: share]]
        for method, call in each.calls():
            if growth := first_growth(call, attacks, sizes):
                yield str(each.site), f"{method}, {growth}"
                break


def growing_functions(
    package: str, world: World, *, share: int = 1, sizes: Iterable[int] = SIZES
) -> Iterator[tuple[str, str]]:
    """Which function and parameter grows, and on what.

    share: one in so many attacks is tried, another one on each function; and one in 15 of these on a function
        that may append to a log.
    """
    attacks = general()
    covered = (function for function in text_functions(package) if exclusion_reason(function) is None)
    for number, call in enumerate(call for function in covered for call in calls(function, world)):
        step = share * (_OF_STORED if call.is_stored else 1)
        floor = SHORTEST_OF_MANY_STEPS if call.is_stored else SHORTEST
        if growth := first_growth(call, attacks[number % step :: step], sizes, floor):
            yield call.label, str(growth)


def uncovered(package: str, world: World) -> Iterator[str]:
    """Why functions that take text are neither called nor left out."""
    for function in text_functions(package):
        if exclusion_reason(function) is None:
            try:
                for call in calls(function, world):
                    call("green tea")
            except NoRecipe as why:
                yield str(why)
            except Exception as error:
                yield f"{function.name} raises {error!r}"
