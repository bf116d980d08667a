from collections.abc import Iterator

import pytest

from memlog.eventlog import timestamps
from tests.support.provider import Provider, serving


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as server:
        yield server


class Clock:
    """The time that memlog reads, which a test sets."""

    def __init__(self) -> None:
        self.now = "2026-01-14T12:00:00.000Z"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(timestamps, "now", lambda: own.now)
    return own
