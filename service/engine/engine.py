"""What the operations of a store work with: its log, its read model, and its settings."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec

from memlog.eventlog.events import Durability, Event, OnStored, Position
from memlog.eventlog.files import disk
from memlog.eventlog.log.layout import LOG
from memlog.service.engine.read_model import ReadModel, ReadPool

if TYPE_CHECKING:
    from memlog.eventlog.codec.encode import Draft, FindStream
    from memlog.eventlog.log.writer import Log
    from memlog.service.engine.ids import KnownIds
    from memlog.service.engine.sandbox import Readers
    from memlog.service.engine.settings import ExtractionRules, JobRules, LanguageModelProvider

EventLike = Event | dict[str, Any] | bytes

_LONGEST = 200
"""Characters of a client's name."""

_CLIENT: ContextVar[str | None] = ContextVar("client", default=None)


HEADER = "x-memlog-client"
"""The header of HTTP that names the client."""


def client_header() -> dict[str, str]:
    """Return the header that tells a server for whom this context acts; empty for nobody."""
    client = _CLIENT.get()
    return {} if client is None else {HEADER: quote(client, safe="/ ()")}


@contextmanager
def acting_for(client: str | None) -> Iterator[None]:
    """Name a client, such as `claude-code/2.1`, in the events that are appended in this context."""
    before = _CLIENT.set(client and client[:_LONGEST])
    try:
        yield
    finally:
        _CLIENT.reset(before)


def acting_for_header(value: str | None) -> AbstractContextManager[None]:
    """Act, as `acting_for` does, for the client that a header names."""
    return acting_for(None if value is None else unquote(value))


def marked(events: Iterable[EventLike]) -> Iterable[EventLike]:
    """Add the member `client` to events; those that have one, and lines, stay as they are."""
    client = _CLIENT.get()
    return events if client is None else (_marked(each, client) for each in events)


def _marked(event: EventLike, client: str) -> EventLike:
    if isinstance(event, bytes):
        return event
    members = event if isinstance(event, dict) else msgspec.to_builtins(event)
    return {"client": client} | members


_READS_WAIT = 0.25
"""Seconds that a read waits to record what it gave."""


class Engine:
    """The engine of a store, shared by its groups of operations.

    redact: whether what looks like a key is masked in what is appended.
    document_seconds: of the processor that reading one document may take.
    language_model: who distils conversations, by the `extraction_rules`; None for nobody.
    job_rules: when jobs run; None for the hours by default.
    read: queries the read model, caught up if that takes little time. decide: caught up, or raises Busy.
    """

    def __init__(
        self,
        path: Path,
        find_stream: "FindStream",
        read_model: ReadModel,
        *,
        durability: Durability,
        lock_timeout: float,
        redact: bool,
        document_seconds: int,
        language_model: "LanguageModelProvider | None",
        extraction_rules: "ExtractionRules | None",
        job_rules: "JobRules | None",
        on_stored: OnStored | None,
    ) -> None:
        self.path = path
        self.log_path = path / LOG
        self.lock_timeout = lock_timeout
        self._durability = durability
        self._find_stream = find_stream
        self.redact = redact
        self.on_stored = on_stored
        self.read_model = read_model
        self.reads = ReadPool(read_model)
        self.read, self.decide = self.reads.read, self.reads.decide
        self._document_seconds = document_seconds
        self.language_model, self.extraction_rules = language_model, extraction_rules
        self.job_rules = job_rules
        self._on_wait: Callable[[], None] = lambda: None

    def for_thread(self, read_model: ReadModel, on_wait: Callable[[], None]) -> "Engine":
        """Return a copy of this engine for one thread, with its own read model and reader process.

        on_wait: called while the reader process works; an exception of it ends the request.
        """
        engine = copy(self)
        vars(engine).pop("readers", None)
        engine.read, engine.decide, engine._on_wait = read_model.read, read_model.decide, on_wait
        return engine

    @cached_property
    def readers(self) -> "Readers":
        """The process that reads untrusted files; it starts when it is needed."""
        from memlog.service.engine.sandbox import Readers

        return Readers(self._document_seconds, on_wait=self._on_wait)

    @property
    def exists(self) -> bool:
        """Whether there is a store, which the first append makes."""
        return disk.is_folder(self.log_path)

    def append(self, events: Iterable[EventLike]) -> list[Position]:
        """Append events of a client; see `acting_for`."""
        return self.log.append(marked(events))

    def draft(self, event: Event) -> "Draft":
        """Check and encode an event of a client for `append_drafts` of the log."""
        (given,) = marked([event])
        return self.log.draft(given)

    @cached_property
    def log(self) -> "Log":
        """The log, to append to."""
        return self._log(self.lock_timeout, find_stream=self._find_stream, look_up=self.known_ids)

    @cached_property
    def nonblocking_log(self) -> "Log":
        """The log for reads, which do not wait for writers."""
        return self._log(min(self.lock_timeout, _READS_WAIT))

    def _log(self, lock_timeout: float, **lookups: Any) -> "Log":  # noqa: ANN401
        # Imported here: most reads append nothing.
        from memlog.eventlog.log.writer import Log
        from memlog.service.engine.readable import check_source

        return Log(
            self.path,
            durability=self._durability,
            lock_timeout=lock_timeout,
            redact=self.redact,
            on_stored=self.on_stored,
            check=check_source,
            **lookups,
        )

    @cached_property
    def known_ids(self) -> "KnownIds":
        """Which ids the log has, for appends."""
        # Imported here: most reads append nothing.
        from memlog.service.engine.ids import KnownIds

        return KnownIds(self.path)

    def record_sizes(self) -> None:
        """See `Log.record_sizes`."""
        for name in vars(self).keys() & {"log", "nonblocking_log"}:
            getattr(self, name).record_sizes()

    def close(self) -> None:
        """Close what is open. The engine can be used again after it."""
        # First: who closes a read model last, and may write, folds what SQLite keeps beside it into its file.
        self.record_sizes()
        if "known_ids" in vars(self):
            self.known_ids.close()
        self.reads.close()
        if "readers" in vars(self):
            self.readers.close()
