"""The n-th call of the disk fails, for every n and each failure: a documented exit code, no false claim."""

import errno

import pytest

from memlog.eventlog.files import disk
from tests.crash.faults.failing_calls import COMMANDS, fail_each_call
from tests.crash.faults.failing_disk import FAILURES, SHORT, FailingDisk

# A file that is closed only when its reader is collected fails where nobody is told but stderr.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")

APPENDING = [name for name, command in COMMANDS.items() if command.events]
PROJECTING = [name for name, command in COMMANDS.items() if not command.events]
AT_EACH_CALL = ("EIO", SHORT)
"""The others fail the first call of each place alone; in the storm they fail each one, too."""

once_and_for_ever = pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])


@once_and_for_ever
@pytest.mark.parametrize("name", APPENDING)
def test_an_append_whose_disk_fails_claims_nothing_that_a_power_cut_could_take(
    name: str, for_ever: bool
) -> None:
    """Every call, and at each place each failure; the next run stores the same events, each once."""
    found = fail_each_call(name, [(failure, for_ever) for failure in FAILURES], everywhere=AT_EACH_CALL)
    assert found.violations == []
    assert found.runs >= 200
    assert set(found.codes) <= {0, 71, 73, 74, 75}


@once_and_for_ever
@pytest.mark.parametrize("name", PROJECTING)
def test_a_projection_whose_disk_fails_leaves_the_log_and_a_next_run_that_works(
    name: str, for_ever: bool
) -> None:
    """Every call, and at each place each failure."""
    found = fail_each_call(name, [(failure, for_ever) for failure in FAILURES], everywhere=AT_EACH_CALL)
    assert found.violations == []
    assert found.runs >= 350
    assert set(found.codes) <= {0, 71, 73, 74, 75}


def test_what_looks_at_the_number_of_an_error_is_run_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = FailingDisk(1, "EIO", for_ever=False)
    failing.install(monkeypatch)
    with pytest.raises(OSError) as caught:
        disk.status_of_descriptor(0)
    assert caught.value.errno not in (errno.EACCES, errno.EPERM)
    assert not failing.tells_alike_apart
    assert caught.value.errno not in (errno.ENOSPC,)
    assert failing.tells_alike_apart
