"""Protects what a fork cannot share: locks of threads that the child lacks, connections, processes.

Each object that holds some is notified before a fork, and after it in both processes.
"""

import os
import threading
import time
import weakref

WAIT = 1.0
"""Seconds that a fork waits for other threads to finish with all such objects."""

_known: dict[int, "weakref.ref[SplitByFork]"] = {}
_fork = threading.local()
"""The fork of this thread, with which the child continues; `told`: the notified objects."""


class SplitByFork:
    """An object that is notified of forks during its lifetime."""

    def __init__(self) -> None:
        number = id(self)
        _known[number] = weakref.ref(self, lambda _: _known.pop(number, None))

    def before_fork(self, until: float) -> None:
        """Release what a child must not inherit. until: when to stop waiting, by `time.monotonic()`."""

    def after_fork_in_parent(self) -> None:
        """Resume."""

    def after_fork_in_child(self) -> None:
        """Replace what threads of the parent held; leave alone what belongs to the parent."""


class ForkMutex:
    """A mutex for which a fork waits, so that the child finds consistent state."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._is_held = False

    def take(self, until: float) -> bool:
        """Acquire it for a fork; return whether no thread, this one included, uses what it guards."""
        is_mine = self.lock._is_owned()  # type: ignore[attr-defined] # as threading.Condition does
        if is_mine or not self.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        self._is_held = True
        return True

    def renew(self) -> None:
        """Reset it in a forked child, whose parent's threads may hold it."""
        self.lock, self._is_held = threading.RLock(), False

    def give_back(self) -> None:
        """Release it after the fork, in the parent."""
        if self._is_held:
            self._is_held = False
            self.lock.release()


def keep_alive(what: object) -> None:
    """Keep an object past the end of Python: releasing it would wait for the parent, or change its files."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


def _notify_before() -> None:
    until = time.monotonic() + WAIT
    _fork.told = [each for ref in list(_known.values()) if (each := ref()) is not None]
    for each in _fork.told:
        each.before_fork(until)


def _notify_parent() -> None:
    for each in _fork.told:
        each.after_fork_in_parent()
    _fork.told = []


def _notify_child() -> None:
    for each in _fork.told:
        each.after_fork_in_child()
    _fork.told = []


os.register_at_fork(before=_notify_before, after_in_parent=_notify_parent, after_in_child=_notify_child)
