"""The storm of live copies, for 40 runs."""

from tests.crash.storms import copies_and_seals


def test_verify_beside_writers_that_seal_and_in_live_copies_raises_no_false_alarm() -> None:
    # A store that has grown for a minute takes seconds to verify.
    counts = copies_and_seals.run(40, 7, of_a_store=10)
    assert counts["runs"] == 40
    assert [what for what in counts if what.startswith("alarm")] == []
    assert counts["beside writers"] > 0
    assert counts["arriving"] > 0
