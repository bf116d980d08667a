"""The n-th call of the disk fails, for every n: a documented exit code, no traceback, no false claim."""

import pytest
from failing_calls import COMMANDS, by_turns, every, fail_each_call

APPENDING = [name for name, command in COMMANDS.items() if command.events]
PROJECTING = [name for name, command in COMMANDS.items() if not command.events]


@pytest.mark.parametrize("name", APPENDING)
def test_an_append_whose_disk_fails_claims_nothing_that_a_power_cut_could_take(name: str) -> None:
    """Every call, each failure, once and for ever; the next run stores the same events, each once."""
    found = fail_each_call(name, every if name == "append a batch" else by_turns)
    assert found.violations == []
    assert found.runs >= 30
    assert set(found.codes) <= {0, 73, 74, 75}


@pytest.mark.parametrize("name", PROJECTING)
def test_a_projection_whose_disk_fails_leaves_the_log_and_a_next_run_that_works(name: str) -> None:
    """Every call; once or for ever, the failures by turns."""
    found = fail_each_call(name, by_turns)
    assert found.violations == []
    assert found.runs >= 60
    assert set(found.codes) <= {0, 73, 74, 75}
