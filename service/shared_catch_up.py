"""Catching up with the log once for all reads that need it."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

State = TypeVar("State")


class SharedCatchUp(Generic[State]):
    """Lets threads share catch-ups. Each read sees what was appended before it.

    state: returns what a catch-up depends on: while it stays the same, there is nothing to read. None is
        never the same. Called for each read.
    """

    def __init__(self, state: Callable[[], State | None]) -> None:
        self._state = state
        self._last_state: State | None = None
        self._turn = threading.Lock()
        self._begun = 0
        self._done = 0

    def share(self, catch_up: Callable[[float, State | None, State | None], bool], timeout: float) -> None:
        """Make a catch-up, unless one is known that began after this call, or nothing has changed since one.

        catch_up: is given the seconds that are left of `timeout`, a state up to which everything was read
            (None if there is none), and the present state. Returns whether everything up to the latter is
            read now and nothing is left to report.
        timeout: seconds to wait for other threads, and for other processes.
        """
        deadline = time.monotonic() + timeout
        wanted = self._begun + 1
        state = self._state()
        if state is not None and state == self._last_state:
            return
        has_turn = self._turn.acquire(timeout=timeout)
        try:
            if self._done < wanted:
                self._make(catch_up, max(0.0, deadline - time.monotonic()), state)
        finally:
            if has_turn:
                self._turn.release()

    def _make(
        self,
        catch_up: Callable[[float, State | None, State | None], bool],
        timeout: float,
        state: State | None,
    ) -> None:
        """state: from before the catch-up begins."""
        self._begun += 1
        number = self._begun
        before, self._last_state = self._last_state, None
        self._last_state = state if catch_up(timeout, before, state) else None
        self._done = max(self._done, number)
