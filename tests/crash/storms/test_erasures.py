"""The storm of erasures, for one store."""

from tests.crash.storms import erasures


def test_nothing_is_left_of_an_erased_text_beside_whatever_is_in_flight() -> None:
    counts = erasures.run(4, 7)
    assert counts["scrubs ended"] > 0
    assert counts["bytes searched"] > 0
