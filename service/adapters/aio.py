"""A store for asyncio programs: the methods of `Store` as coroutines."""

import asyncio
import inspect
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self

from memlog.service.adapters import async_operations
from memlog.service.adapters.async_operations import AsyncOperations
from memlog.service.adapters.awaiting import Threads
from memlog.service.engine.operation import PLACES, import_group_named
from memlog.service.store import Store, open

P = ParamSpec("P")


class AsyncStore(AsyncOperations):
    """The methods of `Store` as coroutines, with the same arguments and errors.

    Use it with `async with`, or call `close`. Calls run in threads: searches and contexts one at a time, any
    other kind of call two at a time, so a short read never waits for a search. Callbacks (`notify`,
    `progress`) run in these threads.

    A call cancelled before it starts does nothing; one cancelled later completes, and its result is dropped.
    So a cancelled append is stored completely or not at all.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(lambda: store, Threads())
        self._store = store
        for name in filter(None, PLACES):
            kind = getattr(async_operations, f"Async{import_group_named(name).__name__}")
            setattr(self, name, kind(partial(getattr, store, name), self._threads))

    @property
    def path(self) -> Path:
        """The store's folder."""
        return self._store.path

    async def close(self) -> None:
        """Wait for pending calls, then close the store. It can be used again afterwards."""
        self.maintenance.end_watches()
        # This runs in its own thread, because those of the loop may all be busy.
        closing = ThreadPoolExecutor(1, "memlog-close")
        try:
            await asyncio.get_running_loop().run_in_executor(closing, self._close)
        finally:
            closing.shutdown(wait=False)

    def _close(self) -> None:
        self._threads.close()
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()


def _make_open_async(opener: Callable[P, Store]) -> Callable[P, AsyncStore]:
    def open_async(*args: P.args, **kwargs: P.kwargs) -> AsyncStore:
        """Return an `AsyncStore` for the folder `path`; takes the arguments of `open`. Nothing is read yet.

        `async with open_async(path) as store` closes it; `await open_async(path)` also returns it.
        """
        return AsyncStore(opener(*args, **kwargs))

    signature = inspect.signature(opener).replace(return_annotation=AsyncStore)
    open_async.__signature__ = signature  # type: ignore[attr-defined]
    return open_async


open_async = _make_open_async(open)
