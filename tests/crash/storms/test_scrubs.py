"""The storm of scrubs, for a few seconds."""

from tests.crash.storms import scrubs


def test_scrubs_that_are_killed_lose_nothing_else_and_are_finished() -> None:
    counts = scrubs.run(2, 7)
    assert counts["kills"] > 0
