"""A store for programs of asyncio: the methods of `Store` as coroutines."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, overload

from memlog.projector.catchup import Progress
from memlog.query.core_memory import CoreMemory
from memlog.query.documents import Document, Source
from memlog.service.async_methods import Awaitable, Threads, awaited, awaited_method
from memlog.service.conversations import Conversations
from memlog.service.core.facade import Core
from memlog.service.daily_events import DailyEvents
from memlog.service.documents.facade import Documents
from memlog.service.documents.workspaces import Workspaces
from memlog.service.erasure.facade import Erasure
from memlog.service.facts.facade import Facts
from memlog.service.maintenance.facade import Maintenance
from memlog.service.memories.facade import Memories
from memlog.service.requests.core import GetCoreMemory, Section
from memlog.service.requests.documents import ListDocuments
from memlog.service.store import Store, open
from memlog.service.watching.worker import WatchStep

P = ParamSpec("P")

_Sources = list[Source]
_Documents = list[Document]
"""Named, since `list` is a method below."""


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

    if TYPE_CHECKING:  # a ParamSpec holds one signature

        @overload
        async def get(self) -> CoreMemory: ...
        @overload
        async def get(self, section: Section, key: str) -> str | None: ...
        @overload
        async def get(self, asked: GetCoreMemory, /) -> CoreMemory | str | None: ...
        async def get(self, *_: Any, **__: Any) -> Any:
            """See `Core.get`."""
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

        @overload
        async def list(self, source: None = None) -> _Sources: ...
        @overload
        async def list(self, source: str) -> _Documents: ...
        @overload
        async def list(self, source: ListDocuments) -> _Sources | _Documents: ...
        async def list(self, source: ListDocuments | str | None = None) -> Any:
            """See `Documents.list`."""
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

    Use it with `async with`, or call `close`. Each call runs in a thread, two of one kind at the same time:
    a short read waits for no search. What is called back (`notify`, `progress`, `confirm`) is called there.

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

    append = awaited_method(Store.append)
    stream_with = awaited_method(Store.stream_with)
    warm = awaited_method(Store.warm)
    search = awaited(Store.search, kind="search")
    context = awaited(Store.context, kind="search")
    get = awaited(Store.get)

    async def close(self) -> None:
        """Wait for all calls that were made, and close what is open. The store can be used again after it."""
        self.maintenance.end_watches()
        await asyncio.to_thread(self._close)

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
