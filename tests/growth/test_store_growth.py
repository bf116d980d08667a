"""No operation's steps grow faster than what a store holds."""

import pytest

from tests.growth.store_growth import SHAPES, Fill, grown_too_fast, measured


@pytest.mark.parametrize("fill", SHAPES, ids=lambda fill: fill.__name__)
def test_no_operation_grows_faster_than_the_store(fill: Fill) -> None:
    size = SHAPES[fill]
    assert grown_too_fast(dict(measured(fill, size)), dict(measured(fill, 4 * size))) == {}


def test_work_that_is_quadratic_is_told() -> None:
    small, large = {"linear": 50_000, "quadratic": 50_000}, {"linear": 220_000, "quadratic": 790_000}
    assert grown_too_fast(small, large) == {"quadratic": 15.8}
