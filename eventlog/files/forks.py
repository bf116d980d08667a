"""What a fork would split in two: locks of threads that the child does not have, connections, processes.

Each object that has some is told before a fork, and after it in both processes.
"""

import os
import threading
import time
import weakref

WAIT = 1.0
"""Seconds that a fork waits for other threads to end what they do with all such objects."""

_known: dict[int, "weakref.ref[SplitByFork]"] = {}
_fork = threading.local()
"""The fork that this thread makes; `told`: who was told of it. The child goes on with this thread."""


class SplitByFork:
    """An object that is told of forks, as long as it exists."""

    def __init__(self) -> None:
        number = id(self)
        _known[number] = weakref.ref(self, lambda _: _known.pop(number, None))

    def before_fork(self, until: float) -> None:
        """Release what a child must not have.

        until: when to stop waiting, by `time.monotonic()`.
        """

    def after_fork_in_parent(self) -> None:
        """Go on."""

    def after_fork_in_child(self) -> None:
        """Replace what threads of the parent held, and leave alone what is the parent's."""


class ForkMutex:
    """A lock of threads for which a fork waits, so that the child finds nothing half done."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._is_held = False

    def take(self, until: float) -> bool:
        """Take it for a fork; return whether nobody uses what it guards, this thread included."""
        is_mine = self.lock._is_owned()  # type: ignore[attr-defined] # threading.Condition asks so, too
        if is_mine or not self.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        self._is_held = True
        return True

    def renew(self) -> None:
        """Forget, in a forked child, which thread of the parent holds it."""
        self.lock, self._is_held = threading.RLock(), False

    def give_back(self) -> None:
        """Free it after the fork, in the parent."""
        if self._is_held:
            self._is_held = False
            self.lock.release()


def keep_alive(what: object) -> None:
    """Keep an object permanently, even when Python ends.

    Releasing it would wait for threads of the parent, or change a file of the parent's.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


def _before() -> None:
    until = time.monotonic() + WAIT
    _fork.told = [each for ref in list(_known.values()) if (each := ref()) is not None]
    for each in _fork.told:
        each.before_fork(until)


def _in_parent() -> None:
    for each in _fork.told:
        each.after_fork_in_parent()
    _fork.told = []


def _in_child() -> None:
    for each in _fork.told:
        each.after_fork_in_child()
    _fork.told = []


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
