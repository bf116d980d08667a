"""Wraps operations as coroutines that run in threads."""

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
"""How many calls of one kind run concurrently. While one waits for SQLite or the disk, another computes; more
would only wait for the GIL, and delay the event loop and calls of other kinds."""

_SEARCHES = 1
"""How many searches run concurrently: they are CPU-bound. With 500 searches beside an appender
(tests.crash.storms.async_searches), one at a time gives 77 a second and short reads in 9 ms (p95), two at a
time 64 a second and short reads in 24 ms."""

_SEARCHING = ("Store.search", "Store.context")


class Threads(SplitByFork):
    """Thread pools, one per kind of call, so that calls never wait for another kind. Created on first use."""

    def __init__(self) -> None:
        super().__init__()
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start afresh: a child process has none of its parent's threads."""
        self.lock = threading.Lock()
        self._by_kind: dict[str, ThreadPoolExecutor] = {}

    async def run_in_thread(self, kind: str, call: Callable[[], R]) -> R:
        """Run `call` in a thread of its kind; return its result or raise its error.

        If cancelled before it starts, `call` never runs; if cancelled later, it still completes.
        """
        count = _SEARCHES if kind == "search" else _THREADS
        threads = self._by_kind.setdefault(kind, ThreadPoolExecutor(count, f"memlog-{kind}"))
        return await asyncio.get_running_loop().run_in_executor(
            threads, copy_context().run, _run_without_stop_iteration, call
        )

    def close(self) -> None:
        """Wait for pending calls and end the threads. The next call starts new ones."""
        running, self._by_kind = self._by_kind, {}
        for threads in running.values():
            threads.shutdown()


def _run_without_stop_iteration(call: Callable[[], R]) -> R:
    """Run `call`, converting StopIteration, which a future cannot hold, to RuntimeError."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a callback raised StopIteration") from error


class Awaitable:
    """A proxy that calls an object's methods in threads.

    target: returns the object; called in a thread.
    """

    def __init__(self, target: Callable[[], Any], threads: Threads) -> None:
        self._target = target
        self._threads = threads


def awaited_method(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Awaitable, P], Coroutine[Any, Any, R]]:
    """Return a method of `Awaitable` that runs `method` of the target in a thread. Searches share threads."""
    name = method.__name__
    kind = "search" if method.__qualname__ in _SEARCHING else method.__qualname__

    @wraps(method)
    async def call(self: Awaitable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def run_method() -> R:
            with self._threads.lock:  # a property of the store creates its object once
                target = self._target()
            result: R = getattr(target, name)(*args, **kwargs)
            return result

        return await self._threads.run_in_thread(kind, run_method)

    return call


class Watching(Awaitable):
    """The maintenance operations, with a `watch` that can be cancelled."""

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
        """Run `Maintenance.watch` until it ends, is cancelled, or the store is closed."""
        stop = stop or threading.Event()
        self._stops.add(stop)
        watching = asyncio.ensure_future(self._watch(once=once, stop=stop, tell=tell, progress=progress))
        try:
            await asyncio.shield(watching)
        finally:
            stop.set()
            await asyncio.wait([watching])  # afterwards the store's lock is free
            self._stops.discard(stop)

    _watch = awaited_method(Maintenance.watch)

    def end_watches(self) -> None:
        """Signal all watches to stop."""
        for stop in self._stops:
            stop.set()
