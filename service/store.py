"""The store of a program: append, search, context, get, and groups of other operations."""

import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

from memlog.eventlog.acknowledgements import OnStored
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event
from memlog.eventlog.writer import Durability, Log, Position
from memlog.projector.passages.chunking import ChunkSizes
from memlog.query.context.request import BuildContext
from memlog.query.search.request import Search
from memlog.service.known_ids import KnownIds
from memlog.service.local_model import LocalModel
from memlog.service.operations import operation
from memlog.service.read_model import Deciding, Reading, ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.requests.conversations import GetEvent

if TYPE_CHECKING:
    from memlog.query.context.compose import Context
    from memlog.query.provenance import StoredEvent
    from memlog.query.search.hybrid import SearchResult
    from memlog.service.contexts import Contexts
    from memlog.service.conversations import Conversations
    from memlog.service.core.facade import Core
    from memlog.service.daily_events import DailyEvents
    from memlog.service.documents.facade import Documents
    from memlog.service.documents.workspaces import Workspaces
    from memlog.service.erasure.facade import Erasure
    from memlog.service.facts.facade import Facts
    from memlog.service.maintenance.facade import Maintenance
    from memlog.service.memories.facade import Memories

# What only some calls need is imported by them: a process that asks one thing pays for that alone.

_READS_WAIT = 0.25
"""Seconds that a read waits to record what it gave."""

EventLike = Event | dict[str, Any] | bytes
"""An event as callers give it: a struct, its members, or a line of JSON."""


class _Readings(TypedDict):
    """Two ways to ask the read model."""

    read: Reading
    decide: Deciding


def _readings(reads: ReadModel | ReadPool) -> _Readings:
    return {"read": reads.read, "decide": reads.decide}


class Store:
    """One store. May be used from several threads; use it with `with`, or call `close`.

    path: its folder; made at the first append.
    model: a folder with `model.onnx` and `tokenizer.json`; None for the model that memlog ships with.
    durability: `fsync`, or `os`: an acknowledged event then survives the process but not a power cut.
    lock_timeout: seconds to wait for other writers and projectors.
    chunk_sizes: of passages. Another one makes another read model; all that use a store should agree on it.
    redact: mask texts that look like keys in every event before it is written.
    document_seconds: of the processor that reading one HTML or PDF file may take; a longer one is skipped.
    notify: called with notes for people, such as that the read model was rebuilt.
    on_stored: called with the positions of events once they are durable, before any method returns.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        model: str | Path | None = None,
        durability: Durability = "fsync",
        lock_timeout: float = 10.0,
        chunk_sizes: ChunkSizes | None = None,
        redact: bool = False,
        document_seconds: int = 60,
        notify: Callable[[str], None] = lambda _: None,
        on_stored: OnStored | None = None,
    ) -> None:
        self.path = Path(path)
        self._lock_timeout = lock_timeout
        self._redact = redact
        self._document_seconds = document_seconds
        self._on_stored = on_stored
        self._known_ids = KnownIds(self.path)
        self._log = Log(
            self.path,
            durability=durability,
            lock_timeout=lock_timeout,
            find_stream=self.stream_with,
            redact=redact,
            look_up=self._known_ids,
            on_stored=on_stored,
        )
        self._read_model = ReadModel(
            self.path,
            chunk_sizes,
            lock_timeout=lock_timeout,
            model=LocalModel(None if model is None else Path(model)),
            notify=notify,
        )
        self._reads = ReadPool(self._read_model)
        self._read = self._reads.read

    @cached_property
    def conversations(self) -> "Conversations":
        """Windows, sessions and summaries; see `Conversations`."""
        from memlog.service.conversations import Conversations

        return Conversations(self._reads.read)

    @cached_property
    def memories(self) -> "Memories":
        """Memories; see `Memories`."""
        from memlog.service.memories.facade import Memories

        return Memories(self._log.path, append=self.append, **_readings(self._reads))

    @cached_property
    def core(self) -> "Core":
        """The core memory; see `Core`."""
        return self._core_by(self._reads)

    @cached_property
    def facts(self) -> "Facts":
        """Facts; see `Facts`."""
        from memlog.service.facts.facade import Facts

        return Facts(append=self.append, redact=self._redact, **_readings(self._reads))

    @cached_property
    def daily(self) -> "DailyEvents":
        """Daily events; see `DailyEvents`."""
        from memlog.service.daily_events import DailyEvents

        return DailyEvents(self.append, **_readings(self._reads))

    @cached_property
    def documents(self) -> "Documents":
        """Folders and files of text; see `Documents`."""
        return self._documents_by(self._reads)

    @cached_property
    def workspaces(self) -> "Workspaces":
        """The folders of agents, whose notes are memories; see `Workspaces`."""
        from memlog.service.documents.workspaces import Workspaces

        return Workspaces(self.documents)

    @cached_property
    def erasure(self) -> "Erasure":
        """Forgetting, scrubbing, and the search for what is left; see `Erasure`."""
        from memlog.service.erasure.facade import Erasure

        # It syncs redactions: forgotten events must not come back after a power cut.
        log = Log(self.path, lock_timeout=self._lock_timeout, redact=self._redact, on_stored=self._on_stored)
        return Erasure(
            self.path, self._read_model, self._reads, log, self._lock_timeout, self._known_ids.close
        )

    @cached_property
    def maintenance(self) -> "Maintenance":
        """Replaying, verifying, sealing, counting; see `Maintenance`."""
        from memlog.service.maintenance.facade import Maintenance

        return Maintenance(self._log, self._read_model, self._reads, self._documents_by)

    @cached_property
    def _contexts(self) -> "Contexts":
        from memlog.service.contexts import Contexts

        # A read does not wait for writers.
        wait = min(self._lock_timeout, _READS_WAIT)
        log = Log(self.path, durability=self._log.durability, lock_timeout=wait, redact=self._redact)
        return Contexts(self._reads, log)

    def _core_by(self, reads: ReadModel | ReadPool) -> "Core":
        from memlog.service.core.facade import Core

        return Core(self.append, view=self._read_model.projector.core_view, **_readings(reads))

    def _documents_by(
        self, reads: ReadModel | ReadPool, on_wait: Callable[[], None] = lambda: None
    ) -> "Documents":
        from memlog.service.documents.facade import Documents
        from memlog.service.documents.indexing import IndexingTools
        from memlog.service.documents.readers import Readers

        readers = Readers(self._document_seconds, on_wait=on_wait)
        take_over = self._core_by(reads).take_over
        return Documents(
            IndexingTools(self.path, self.append, take_over, readers, self._redact),
            **_readings(reads),
            lock_timeout=self._lock_timeout,
            own_writers=self._log.own_writers,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open. The store can be used again after it."""
        # First: who closes a read model last, and may write, folds what SQLite keeps beside it into its file.
        self._known_ids.close()
        self._reads.close()
        if "documents" in vars(self):
            self.documents.close()

    def append(self, events: EventLike | Iterable[EventLike]) -> list[Position]:
        """Append events (structs, dicts, or lines of JSON), or one, and return their positions, once durable.

        `warnings` of a position tell what is odd about its event; if another event has its id,
        as far as the read model knows, `conflict` names it.

        Raises:
            BadInput: an event cannot be stored; none was written.
            NotFound: a redaction does not say where it goes, and no stream has its target; none was written.
            Busy: another writer held the stream for too long.
            LogError: the log could not be written. Safe to try again with the same ids.
        """
        if isinstance(events, Event | dict | bytes):
            events = [events]
        if isinstance(events, str) or not isinstance(events, Iterable):
            raise BadInput(
                f"{events!r} is no event", hint="give a struct such as memlog.Message, or a list of them"
            )
        return self._log.append(events)

    @operation(Search)
    def search(self, asked: Search) -> "SearchResult":
        from memlog.service.searches import search_read_model

        started = time.perf_counter()
        result = self._reads.healed(lambda read_model: search_read_model(read_model, asked))
        result.took_ms = round((time.perf_counter() - started) * 1000, 3)
        return result

    @operation(BuildContext)
    def context(self, asked: BuildContext) -> "Context":
        return self._contexts.give(asked)

    @operation(GetEvent)
    def get(self, asked: GetEvent) -> "StoredEvent | None":
        """Returns None if nothing has this id."""
        from memlog.query import provenance

        return self._read(
            lambda db: provenance.stored(db, self._log.path, asked.id, asked.stream, neighbours=asked.around)
        )

    def stream_with(self, event_id: str) -> str:
        """The one stream that has an event of this id.

        Raises:
            NotFound: no stream has it. BadInput: several have it.
        """
        from memlog.query import provenance

        return self._read(lambda db: provenance.stream_with(db, event_id))

    def warm(self) -> None:
        """Load the embedding model, and open the connections of all reads that run at the same time.

        The first search then takes no longer than the next ones.

        Raises:
            NotFound: there is no store.
            DatabaseError: as `search`.
        """
        self.search("what loads all that a search needs", k=1)
        self._reads.open()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - an attribute can be anything
            """A method by its name of the release before."""
            from memlog.service.moved_methods import moved_method

            return moved_method(self, name)


open = Store
"""Opens the store in the folder `path`; takes what `Store` takes."""
