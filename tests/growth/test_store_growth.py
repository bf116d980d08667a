"""No operation's CPU time grows faster than what a store holds."""

import pytest

from tests.growth.store_growth import SHAPES, Fill, grown_too_fast, least, measured

ATTEMPTS = 3
"""On two cores with 14 processes that wanted to run, `scrub` beside redactions grew 7.3 and 9.3 times in two
measurements in a row; alone it grows 4.1 times."""


@pytest.mark.parametrize("fill", SHAPES, ids=lambda fill: fill.__name__)
def test_no_operation_grows_faster_than_the_store(fill: Fill) -> None:
    size, small, large = SHAPES[fill], {}, {}
    for _ in range(ATTEMPTS):
        small = least(small, dict(measured(fill, size)))
        large = least(large, dict(measured(fill, 4 * size)))
        too_fast = grown_too_fast(small, large)
        if not too_fast:
            break
    assert too_fast == {}


def test_the_least_of_several_measurements_counts() -> None:
    assert least({}, {"query": 2.0}) == {"query": 2.0}
    assert least({"query": 2.0, "scrub": 1.0}, {"query": 0.5, "scrub": 3.0}) == {"query": 0.5, "scrub": 1.0}


def test_work_that_is_quadratic_is_told() -> None:
    small, large = {"linear": 0.5, "quadratic": 0.5}, {"linear": 2.2, "quadratic": 7.9}
    assert grown_too_fast(small, large) == {"quadratic": 15.8}
