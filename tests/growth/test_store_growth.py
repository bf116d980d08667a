"""No operation's CPU time grows faster than what a store holds."""

import pytest
from store_growth import SHAPES, Fill, grown_too_fast, measured


@pytest.mark.parametrize("fill", SHAPES, ids=lambda fill: fill.__name__)
def test_no_operation_grows_faster_than_the_store(fill: Fill) -> None:
    first = _too_fast(fill)
    # A busy machine slows single measurements: what grows too fast does so again.
    again = _too_fast(fill) if first else {}
    assert {name: (first[name], again[name]) for name in first.keys() & again.keys()} == {}


def test_work_that_is_quadratic_is_told() -> None:
    small, large = {"linear": 0.5, "quadratic": 0.5}, {"linear": 2.2, "quadratic": 7.9}
    assert grown_too_fast(small, large) == {"quadratic": 15.8}


def _too_fast(fill: Fill) -> dict[str, float]:
    size = SHAPES[fill]
    return grown_too_fast(dict(measured(fill, size)), dict(measured(fill, 4 * size)))
