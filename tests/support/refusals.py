"""Refusals in a walk over a table: a failure names the case."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memlog.eventlog.errors import BadInput


@contextmanager
def refused(case: object, match: str | None = None) -> Iterator[pytest.ExceptionInfo[BadInput]]:
    """What is within raises BadInput."""
    with pytest.raises(BadInput, match=match) as caught:  # noqa: PT012 -- the case is named within
        yield caught
        pytest.fail(f"taken: {case!r}")
