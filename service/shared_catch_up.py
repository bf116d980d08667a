"""Catching up with the log once for all reads that need it."""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

from memlog.eventlog.errors import Busy
from memlog.eventlog.forks import SplitByFork

State = TypeVar("State")
Done = TypeVar("Done")


class SharedCatchUp(SplitByFork, Generic[State, Done]):
    """Lets threads share catch-ups. Each read sees what was appended before it.

    state: returns what a catch-up depends on: while it stays the same, there is nothing to read. None is
        never the same. Called for each read.
    """

    def __init__(self, state: Callable[[], State | None]) -> None:
        super().__init__()
        self._state = state
        self.after_fork_in_child()
        self._numbers = count(1)
        self._turns = 0
        self._done = 0
        self._busy_at = 0.0

    def after_fork_in_child(self) -> None:
        """No thread of the parent catches up here."""
        self._read_state: State | None = None
        self._turn = threading.RLock()

    def share(
        self, catch_up: Callable[[float, State | None, State | None], tuple[Done, bool]], timeout: float
    ) -> Done | None:
        """Make a catch-up, unless one is done whose state was taken after this call began, or nothing has
        changed since one. Other threads are waited for.

        catch_up: is given seconds to wait for other processes, a state up to which everything was read (None
            if there is none), and the present state. Returns what it did, and whether everything up to the
            latter is read now.
        timeout: the seconds; none are left where another thread has waited in vain since this call began.

        Returns:
            What `catch_up` did; None if it was not needed.

        Raises:
            Busy: this very thread makes a catch-up.
        """
        self.check_entry()
        began = time.monotonic()
        number, state = self._look()
        if self._is_read(state):
            return None
        turns = self._turns
        # By `with`: nothing comes between the lock and its release, even if a signal handler raises.
        with self._turn:
            if self._done > number:
                return None
            if self._turns != turns:
                # A fresh look serves those who wait, too: they may have appended after the first one.
                number, state = self._look()
            if self._is_read(state):
                return None
            before, self._read_state = self._read_state, None
            try:
                done, is_whole = catch_up(0.0 if self._busy_at > began else timeout, before, state)
            except Busy:
                self._busy_at = time.monotonic()
                raise
            finally:
                self._turns += 1
            self._read_state = state if is_whole else None
            self._done = number
            return done

    def check_entry(self) -> None:
        """Raises Busy if this thread makes a catch-up: a callback or a signal handler of it reads."""
        if self._turn._is_owned():  # type: ignore[attr-defined] # threading.Condition asks so, too
            raise Busy(
                "this thread is bringing the read model up to date",
                hint="read again when it has: not in a callback or a signal handler",
            )

    def _look(self) -> tuple[int, State | None]:
        """The state, and a number that is greater than that of each earlier call."""
        return next(self._numbers), self._state()

    def _is_read(self, state: State | None) -> bool:
        return state is not None and state == self._read_state
