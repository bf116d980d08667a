"""Protects resources that processes cannot share after a fork: thread locks, connections and child processes.

Each object that owns such resources is notified before a fork, and afterwards in both processes.
"""

import os
import threading
import time
import weakref

WAIT = 1.0
"""The most seconds a fork waits for other threads to finish using these objects."""

_known: dict[int, "weakref.ref[SplitByFork]"] = {}
_fork = threading.local()
"""This thread's fork in progress; the child runs only this thread. `told`: the notified objects."""


class SplitByFork:
    """The base class of objects that are notified of forks."""

    def __init__(self) -> None:
        number = id(self)
        _known[number] = weakref.ref(self, lambda _: _known.pop(number, None))

    def before_fork(self, until: float) -> None:
        """Release what a child must not inherit. until: the deadline, in seconds of `time.monotonic()`."""

    def after_fork_in_parent(self) -> None:
        """Resume normal operation in the parent."""

    def after_fork_in_child(self) -> None:
        """Replace locks that threads of the parent held; leave the parent's own resources alone."""


class ForkMutex:
    """A mutex that is acquired before a fork, so that the child finds a consistent state."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._is_held = False

    def acquire_for_fork(self, until: float) -> bool:
        """Acquire the mutex for a fork before `until`; return False if a thread, even this one, holds it."""
        is_mine = self.lock._is_owned()  # type: ignore[attr-defined] # as threading.Condition does
        if is_mine or not self.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        self._is_held = True
        return True

    def reset_in_child(self) -> None:
        """Reset the mutex in a forked child, since threads of the parent may have held it."""
        self.lock, self._is_held = threading.RLock(), False

    def release_in_parent(self) -> None:
        """Release the mutex in the parent after the fork, if `acquire_for_fork` acquired it."""
        if self._is_held:
            self._is_held = False
            self.lock.release()


def keep_object_alive(what: object) -> None:
    """Keep an object alive even at exit; releasing it may block on the parent or change its files."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


def _notify_before_fork() -> None:
    until = time.monotonic() + WAIT
    _fork.told = [each for ref in list(_known.values()) if (each := ref()) is not None]
    for each in _fork.told:
        each.before_fork(until)


def _notify_in_parent() -> None:
    for each in _fork.told:
        each.after_fork_in_parent()
    _fork.told = []


def _notify_in_child() -> None:
    for each in _fork.told:
        each.after_fork_in_child()
    _fork.told = []


os.register_at_fork(
    before=_notify_before_fork, after_in_parent=_notify_in_parent, after_in_child=_notify_in_child
)
