"""A disk is full at any byte of a batch: nothing is acknowledged falsely; with room again all is stored."""

from tests.crash.faults.full_disk import filled

OFFSETS = 200


def test_nothing_is_claimed_that_a_full_disk_did_not_take() -> None:
    report = filled(seed=20260224, count=OFFSETS)
    assert report["violations"] == []
    assert report["offsets"] == OFFSETS
    assert report["stopped"] >= OFFSETS - 1
