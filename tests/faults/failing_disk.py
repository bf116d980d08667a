"""A disk of which one call fails, or every call from one on; the rest is real, and recorded."""

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest
from recorded_disk import RecordingDisk

from memlog.eventlog import disk

SHORT = "short"
"""A write that takes half of its bytes, as a full disk or a signal may make it; no error is told."""

FAILURES = ("EIO", "ENOSPC", "EINTR", "EMFILE", "EACCES", SHORT)


class FailingDisk(RecordingDisk):
    """The `first` call, from 1, fails with `failure`, and where `for_ever` every later one.

    calls: how many there have been. struck: whether one has failed.
    """

    def __init__(self, first: int, failure: str, *, for_ever: bool) -> None:
        super().__init__()
        self.calls = 0
        self.struck = False
        self._first, self._failure, self._for_ever = first, failure, for_ever

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the test is over."""
        super().install(monkeypatch)
        for name in disk.CALLS:
            monkeypatch.setattr(disk, name, self._maybe(name, getattr(disk, name)))

    def _maybe(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            is_due = self.calls >= self._first if self._for_ever else self.calls == self._first
            if not is_due or (self._failure == SHORT and name != "write"):
                return function(*args, **options)
            self.struck = True
            if self._failure == SHORT:
                fd, data = args
                return function(fd, data[: (len(data) + 1) // 2])
            if name == "close":
                # Linux frees the descriptor even then.
                function(*args)
            number = getattr(errno, self._failure)
            raise OSError(number, os.strerror(number))

        return call
