"""Methods that are called in threads, as coroutines."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from memlog.query.request import Request
from memlog.service.operations import Operation

P = ParamSpec("P")
Q = TypeVar("Q", bound=Request)
R = TypeVar("R")

_THREADS = 2
"""How many calls of one kind run at the same time. While one waits for SQLite or the disk, another computes;
more would only wait for the interpreter's lock, and delay the event loop and the calls of other kinds."""


class Threads:
    """Two threads for each kind of call, so that none waits for calls of another kind.

    The number of threads is bounded by the number of kinds. A kind has threads from its first call on.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._by_kind: dict[str, ThreadPoolExecutor] = {}

    async def run(self, kind: str, call: Callable[[], R]) -> R:
        """What `call` returns, or raises, in a thread.

        Cancelled before a thread takes it up, it is never made; later, it runs to its end in its thread.
        """
        threads = self._by_kind.setdefault(kind, ThreadPoolExecutor(_THREADS, f"memlog-{kind}"))
        return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, call)

    def close(self) -> None:
        """Wait for all calls that were made, and end the threads. The next call starts new ones."""
        running, self._by_kind = self._by_kind, {}
        for threads in running.values():
            threads.shutdown()


class Awaitable:
    """An object whose methods are called in threads.

    target: gives the object; called in a thread.
    """

    def __init__(self, target: Callable[[], Any], threads: Threads) -> None:
        self._target = target
        self._threads = threads


def awaited_method(
    method: Callable[Concatenate[Any, P], R], *, kind: str | None = None
) -> Callable[Concatenate[Awaitable, P], Coroutine[Any, Any, R]]:
    """The method of an `Awaitable` that calls `method` of its target.

    kind: of calls that share threads; the method's own where not given.
    """
    name = method.__name__

    @wraps(method)
    async def call(self: Awaitable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def called() -> R:
            with self._threads.lock:  # a property of the store makes its object once
                target = self._target()
            result: R = getattr(target, name)(*args, **kwargs)
            return result

        return await self._threads.run(kind or method.__qualname__, called)

    return call


def awaited(
    operation: Operation[Any, P, Q, R], *, kind: str | None = None
) -> Operation[Any, P, Q, Coroutine[Any, Any, R]]:
    """As `awaited_method`, of an operation: type checkers see that it takes a request, too."""
    made: Any = awaited_method(operation, kind=kind)
    return cast("Operation[Any, P, Q, Coroutine[Any, Any, R]]", made)
