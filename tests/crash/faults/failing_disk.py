"""A disk of which one call fails, or every call from one on; the rest is real, and recorded."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from memlog.eventlog.files import disk
from tests.support.recorded_disk import RecordingDisk

SHORT = "short"
"""A write that takes half of its bytes, as a full disk or a signal may make it; no error is told."""

FAILURES = ("EIO", "ENOSPC", "EINTR", "EMFILE", "EACCES", SHORT)

ALIKE = ("EIO", "ENOSPC", "EMFILE")
"""Python has no classes of their own for these: what compares no number of theirs goes one way after all."""


_LINES_OF_A_PLACE = 2
_PACKAGE = str(Path(disk.__file__).parents[1])


def can_meet(call: str, failure: str) -> bool:
    """Whether a call of that name can meet the failure: only a write is ever short."""
    return failure != SHORT or call == "write"


class Called(NamedTuple):
    """A call of the disk; `place` is the line of memlog that made it, and the one that called this one."""

    name: str
    place: tuple[tuple[str, int], ...]


def _place(frame: FrameType | None) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    while frame is not None and len(found) < _LINES_OF_A_PLACE:
        if _PACKAGE in frame.f_code.co_filename:
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


class _Watched(int):
    """The number of an error, which keeps what it is compared with."""

    compared: set[object]

    def __eq__(self, other: object) -> bool:
        self.compared.add(other)
        return int(self) == other

    def __hash__(self) -> int:
        # As the key of a dict it may be compared with anything.
        self.compared |= {getattr(errno, name) for name in ALIKE}
        return hash(int(self))


class FailingDisk(RecordingDisk):
    """The `first` call, from 1, fails with `failure`, and where `for_ever` every later one.

    called: each call, in their order. struck: whether one has failed.
    compared: the numbers that an error's was compared with, by whoever has caught it.
    """

    def __init__(self, first: int, failure: str, *, for_ever: bool) -> None:
        super().__init__()
        self.called: list[Called] = []
        self.struck = False
        self.compared: set[object] = set()
        self._first, self._failure, self._for_ever = first, failure, for_ever

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the test is over."""
        super().install(monkeypatch)
        for name in disk.CALLS:
            monkeypatch.setattr(disk, name, self._maybe(name, getattr(disk, name)))

    @property
    def tells_alike_apart(self) -> bool:
        """Whether an error's number was compared with one of `ALIKE`."""
        return any(getattr(errno, name) in self.compared for name in ALIKE)

    def _maybe(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.called.append(Called(name, _place(sys._getframe(1))))
            number = len(self.called)
            is_due = number >= self._first if self._for_ever else number == self._first
            if not is_due or not can_meet(name, self._failure):
                return function(*args, **options)
            self.struck = True
            if self._failure == SHORT:
                fd, data = args
                return function(fd, data[: (len(data) + 1) // 2])
            if name == "close":
                # Linux frees the descriptor even then.
                function(*args)
            code = getattr(errno, self._failure)
            error = OSError(code, os.strerror(code))
            error.errno = _Watched(code)
            error.errno.compared = self.compared
            raise error

        return call
