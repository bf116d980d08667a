"""A real file system loses its power while writers append: what was acknowledged before is there after."""

import pytest

from tests.crash.faults.real_power_cut import cycle, why_not

CYCLES = 5


@pytest.fixture(autouse=True)
def _power() -> None:
    why = why_not()
    if why is not None:
        pytest.skip(why)


def test_no_power_cut_loses_an_acknowledged_event() -> None:
    cycles = [cycle(0.4) for _ in range(CYCLES)]
    assert [each.problems for each in cycles] == [[]] * CYCLES
    assert [each.lost for each in cycles] == [0] * CYCLES
    assert min(each.acknowledged for each in cycles) > 10


def test_without_a_sync_most_of_what_was_acknowledged_is_lost() -> None:
    """So that it is known that these cuts take what was not synced."""
    control = cycle(0.4, durability="os")
    assert control.lost > control.acknowledged / 2 > 10
