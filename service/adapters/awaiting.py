"""Operations as coroutines, which run in threads."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memlog.eventlog.files.forks import SplitByFork
from memlog.projector.catchup import Progress
from memlog.service.upkeep.maintenance import Maintenance
from memlog.service.upkeep.worker import WatchStep

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = 2
"""How many calls of one kind run at the same time. While one waits for SQLite or the disk, another computes;
more would only wait for the interpreter's lock, and delay the event loop and the calls of other kinds."""

_SEARCHES = 1
"""A search computes from beginning to end. Of 500 beside an appender (tests.crash.storms.async_searches), one
at a time answers 77 a second with short reads in 9 ms (p95), two at a time 64 with short reads in 24 ms."""


_SEARCHING = ("Store.search", "Store.context")


class Threads(SplitByFork):
    """Threads for each kind of call, so that none waits for calls of another kind.

    The number of threads is bounded by the number of kinds. A kind has threads from its first call on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start new threads: a child has none of its parent's."""
        self.lock = threading.Lock()
        self._by_kind: dict[str, ThreadPoolExecutor] = {}

    async def run(self, kind: str, call: Callable[[], R]) -> R:
        """Run `call` in a thread, and return or raise its outcome.

        Cancelled before a thread takes it up, it is never made; later, it runs to its end in its thread.
        """
        count = _SEARCHES if kind == "search" else _THREADS
        threads = self._by_kind.setdefault(kind, ThreadPoolExecutor(count, f"memlog-{kind}"))
        return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, _made, call)

    def close(self) -> None:
        """Wait for all calls that were made, and end the threads. The next call starts new ones."""
        running, self._by_kind = self._by_kind, {}
        for threads in running.values():
            threads.shutdown()


def _made(call: Callable[[], R]) -> R:
    """Run `call`, and return its result.

    A future takes no StopIteration: one of a callback is raised as a RuntimeError.
    """
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a callback raised StopIteration") from error


class Awaitable:
    """An object whose methods are called in threads.

    target: gives the object; called in a thread.
    """

    def __init__(self, target: Callable[[], Any], threads: Threads) -> None:
        self._target = target
        self._threads = threads


def awaited_method(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Awaitable, P], Coroutine[Any, Any, R]]:
    """Return the method of an `Awaitable` that calls `method` of its target. Searches share their threads."""
    name = method.__name__
    kind = "search" if method.__qualname__ in _SEARCHING else method.__qualname__

    @wraps(method)
    async def call(self: Awaitable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def called() -> R:
            with self._threads.lock:  # a property of the store makes its object once
                target = self._target()
            result: R = getattr(target, name)(*args, **kwargs)
            return result

        return await self._threads.run(kind, called)

    return call


class Watching(Awaitable):
    """Maintenance that a program can end: see `Maintenance.watch`."""

    def __init__(self, target: Callable[[], Any], threads: Threads) -> None:
        super().__init__(target, threads)
        self._stops: set[threading.Event] = set()

    async def watch(
        self,
        *,
        once: bool = False,
        stop: threading.Event | None = None,
        tell: Callable[[WatchStep], None] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Watch as `Maintenance.watch` does, until cancelled or until the store is closed."""
        stop = stop or threading.Event()
        self._stops.add(stop)
        watching = asyncio.ensure_future(self._watch(once=once, stop=stop, tell=tell, progress=progress))
        try:
            await asyncio.shield(watching)
        finally:
            stop.set()
            await asyncio.wait([watching])  # the store's lock is free once this returns
            self._stops.discard(stop)

    _watch = awaited_method(Maintenance.watch)

    def end_watches(self) -> None:
        """Have every watch end."""
        for stop in self._stops:
            stop.set()
