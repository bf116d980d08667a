"""A store for programs of asyncio: the methods of `Store` as coroutines."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from memlog.eventlog.forks import SplitByFork
from memlog.projector.catchup import Progress
from memlog.query.core_memory import CoreMemory
from memlog.query.documents import Document, Source
from memlog.query.request import Request
from memlog.service.conversations import Conversations
from memlog.service.core.facade import Core, GetOperation
from memlog.service.daily_events import DailyEvents
from memlog.service.documents.facade import Documents, ListOperation
from memlog.service.documents.workspaces import Workspaces
from memlog.service.erasure.facade import Erasure
from memlog.service.facts.facade import Facts
from memlog.service.maintenance.facade import Maintenance
from memlog.service.memories.facade import Memories
from memlog.service.operations import Operation
from memlog.service.store import Store, open
from memlog.service.watching.worker import WatchStep

P = ParamSpec("P")
Q = TypeVar("Q", bound=Request)
R = TypeVar("R")

_Later = Coroutine[Any, Any, R]
_Sources = list[Source]
_Documents = list[Document]
"""Named, since `list` is a method below."""

_THREADS = 2
"""How many calls of one kind run at the same time. While one waits for SQLite or the disk, another computes;
more would only wait for the interpreter's lock, and delay the event loop and the calls of other kinds."""

_SEARCHES = 1
"""A search computes from beginning to end. Of 500 beside an appender (tests.crash.storms.async_searches), one
at a time answers 77 a second with short reads in 9 ms (p95), two at a time 64 with short reads in 24 ms."""


class Threads(SplitByFork):
    """Threads for each kind of call, so that none waits for calls of another kind.

    The number of threads is bounded by the number of kinds. A kind has threads from its first call on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start threads anew: a child has none of its parent's."""
        self.lock = threading.Lock()
        self._by_kind: dict[str, ThreadPoolExecutor] = {}

    async def run(self, kind: str, call: Callable[[], R]) -> R:
        """What `call` returns, or raises, in a thread.

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
    """What `call` returns. A future takes no StopIteration: one of a callback is raised as a RuntimeError."""
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


class AsyncMemories(Awaitable):
    """The methods of `Memories` as coroutines."""

    save = awaited(Memories.save)
    get = awaited(Memories.get)
    history = awaited(Memories.history)
    update = awaited(Memories.update)
    archive = awaited(Memories.archive)
    delete = awaited(Memories.delete)
    touch = awaited(Memories.touch)
    list = awaited(Memories.list)
    decay = awaited(Memories.decay)
    prune = awaited(Memories.prune)


class AsyncCore(Awaitable):
    """The methods of `Core` as coroutines."""

    if TYPE_CHECKING:
        get: GetOperation[_Later[CoreMemory], _Later[dict[str, str]], _Later[str | None]]
    else:
        get = awaited(Core.get)
    set = awaited(Core.set)
    delete = awaited(Core.delete)
    import_file = awaited(Core.import_file)
    take_over = awaited_method(Core.take_over)


class AsyncDailyEvents(Awaitable):
    """The methods of `DailyEvents` as coroutines."""

    record = awaited(DailyEvents.record)
    list = awaited(DailyEvents.list)
    compress = awaited(DailyEvents.compress)


class AsyncFacts(Awaitable):
    """The methods of `Facts` as coroutines."""

    set = awaited(Facts.set)
    get = awaited(Facts.get)
    ask = awaited(Facts.ask)
    extract = awaited(Facts.extract)
    remove = awaited(Facts.remove)
    list = awaited(Facts.list)


class AsyncDocuments(Awaitable):
    """The methods of `Documents` as coroutines."""

    add = awaited(Documents.add)
    add_all = awaited(Documents.add_all)
    refresh = awaited(Documents.refresh)
    if TYPE_CHECKING:
        list: ListOperation[_Later[_Sources], _Later[_Documents]]
    else:
        list = awaited(Documents.list)
    get = awaited(Documents.get)
    tree = awaited(Documents.tree)
    status = awaited(Documents.status)
    jobs = awaited(Documents.jobs)
    remove = awaited(Documents.remove)


class AsyncWorkspaces(Awaitable):
    """The methods of `Workspaces` as coroutines."""

    add = awaited(Workspaces.add)
    list = awaited(Workspaces.list)
    remove = awaited(Workspaces.remove)


class AsyncConversations(Awaitable):
    """The methods of `Conversations` as coroutines."""

    window = awaited(Conversations.window)
    session_content = awaited(Conversations.session_content)
    sessions = awaited(Conversations.sessions)
    summaries = awaited(Conversations.summaries)


class AsyncErasure(Awaitable):
    """The methods of `Erasure` as coroutines."""

    forget = awaited(Erasure.forget)
    scrub = awaited(Erasure.scrub)
    prove = awaited(Erasure.prove)
    secrets = awaited(Erasure.secrets)


class AsyncMaintenance(Awaitable):
    """The methods of `Maintenance` as coroutines."""

    project = awaited(Maintenance.project)
    embed = awaited(Maintenance.embed)
    verify = awaited(Maintenance.verify)
    examine = awaited(Maintenance.examine)
    seal = awaited(Maintenance.seal)
    digest = awaited(Maintenance.digest)
    status = awaited(Maintenance.status)
    stats = awaited(Maintenance.stats)
    quarantine = awaited(Maintenance.quarantine)
    explain = awaited_method(Maintenance.explain)

    def __init__(self, target: Callable[[], Maintenance], threads: Threads) -> None:
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
        """As `Maintenance.watch`; it also ends when it is cancelled, or the store is closed."""
        stop = stop or threading.Event()
        self._stops.add(stop)
        watching = asyncio.ensure_future(self._watch(once=once, stop=stop, tell=tell, progress=progress))
        try:
            await asyncio.shield(watching)
        finally:
            stop.set()
            await asyncio.wait([watching])  # the store's lock is free once this returns
            self._stops.discard(stop)

    _watch = awaited(Maintenance.watch)

    def end_watches(self) -> None:
        """Have every watch end."""
        for stop in self._stops:
            stop.set()


class AsyncStore(Awaitable):
    """The methods of `Store` as coroutines, which take the same arguments and raise the same errors.

    Use it with `async with`, or call `close`. Each call runs in a thread: searches and contexts one at a
    time, calls of another kind two at a time. A short read waits for no search. What is called back
    (`notify`, `progress`) is called there.

    A call that is cancelled before its thread begins does nothing; a later one is done whole in its thread,
    and its answer is dropped. So an append that is cancelled is stored whole, or not at all.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(lambda: store, Threads())
        self._store = store
        self.conversations = AsyncConversations(lambda: store.conversations, self._threads)
        self.erasure = AsyncErasure(lambda: store.erasure, self._threads)
        self.maintenance = AsyncMaintenance(lambda: store.maintenance, self._threads)
        self.memories = AsyncMemories(lambda: store.memories, self._threads)
        self.core = AsyncCore(lambda: store.core, self._threads)
        self.daily = AsyncDailyEvents(lambda: store.daily, self._threads)
        self.facts = AsyncFacts(lambda: store.facts, self._threads)
        self.documents = AsyncDocuments(lambda: store.documents, self._threads)
        self.workspaces = AsyncWorkspaces(lambda: store.workspaces, self._threads)

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self._store.path

    append = awaited(Store.append)
    stream_with = awaited_method(Store.stream_with)
    warm = awaited_method(Store.warm)
    search = awaited(Store.search, kind="search")
    context = awaited(Store.context, kind="search")
    get = awaited(Store.get)

    async def close(self) -> None:
        """Wait for all calls that were made, and close what is open. The store can be used again after it."""
        self.maintenance.end_watches()
        # In a thread of its own: those of the loop may all be busy.
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()


def _asynchronous(opener: Callable[P, Store]) -> Callable[P, AsyncStore]:
    def open_async(*args: P.args, **kwargs: P.kwargs) -> AsyncStore:
        """The store in the folder `path`, for asyncio; takes what `open` takes. Reads nothing yet.

        `async with open_async(path) as store` closes it; `await open_async(path)` gives it, too.
        """
        return AsyncStore(opener(*args, **kwargs))

    signature = inspect.signature(opener).replace(return_annotation=AsyncStore)
    open_async.__signature__ = signature  # type: ignore[attr-defined]
    return open_async


open_async = _asynchronous(open)
