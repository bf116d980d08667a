"""Catching up with the log once for all reads that need it."""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

State = TypeVar("State")


class SharedCatchUp(Generic[State]):
    """Lets threads share catch-ups. Each read sees what was appended before it.

    state: returns what a catch-up depends on: while it stays the same, there is nothing to read. None is
        never the same. Called for each read.
    """

    def __init__(self, state: Callable[[], State | None]) -> None:
        self._state = state
        self._read_state: State | None = None
        self._turn = threading.Lock()
        self._numbers = count(1)
        self._done = 0

    def share(self, catch_up: Callable[[float, State | None, State | None], bool], timeout: float) -> None:
        """Make a catch-up, unless one is done whose state was taken after this call began, or nothing has
        changed since one.

        catch_up: is given the seconds that are left of `timeout`, a state up to which everything was read
            (None if there is none), and the present state. Returns whether everything up to the latter is
            read now and nothing is left to report.
        timeout: seconds to wait for other threads, and for other processes.
        """
        deadline = time.monotonic() + timeout
        number, state = self._look()
        if self._is_read(state):
            return
        has_turn = self._turn.acquire(blocking=False)
        try:
            if not has_turn:
                has_turn = self._turn.acquire(timeout=timeout)
                if self._done > number:
                    return
                # A fresh look serves those who wait, too: they may have appended after the first one.
                number, state = self._look()
            if not self._is_read(state):
                before, self._read_state = self._read_state, None
                is_whole = catch_up(max(0.0, deadline - time.monotonic()), before, state)
                self._read_state = state if is_whole else None
            self._done = max(self._done, number)
        finally:
            if has_turn:
                self._turn.release()

    def _look(self) -> tuple[int, State | None]:
        """The state, and a number that is greater than that of each earlier call."""
        return next(self._numbers), self._state()

    def _is_read(self, state: State | None) -> bool:
        return state is not None and state == self._read_state
