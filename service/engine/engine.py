"""The engine shared by all operations of a store: the log, the read model and the settings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from memlog.eventlog.events import Event
from memlog.eventlog.files import disk
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.positions import OnStored, Position
from memlog.service.engine.read_model import ReadModel, ReadPool

if TYPE_CHECKING:
    from memlog.eventlog.codec.encode import Draft, FindStream
    from memlog.eventlog.log.writer import Log
    from memlog.eventlog.sections import DecayRules, ExtractionRules, JobRules, LanguageModelProvider
    from memlog.eventlog.settings import StoreSettings
    from memlog.service.engine.ids import KnownIds
    from memlog.service.engine.sandbox import Readers

EventLike = Event | dict[str, Any] | bytes
"""An event as callers give it: a struct, its members, or a JSON line."""

_MAX_CLIENT = 200
"""How many characters of a client's name are kept."""

_CLIENT: ContextVar[str | None] = ContextVar("client", default=None)


HEADER = "x-memlog-client"
"""The HTTP header that names the client."""


def client_header() -> dict[str, str]:
    """Return the header that tells a server the current client; {} if there is no client."""
    client = _CLIENT.get()
    return {} if client is None else {HEADER: quote(client, safe="/ ()")}


@contextmanager
def recording_client(client: str | None) -> Iterator[None]:
    """Record a client, such as `claude-code/2.1`, in the events appended in this context."""
    before = _CLIENT.set(client and client[:_MAX_CLIENT])
    try:
        yield
    finally:
        _CLIENT.reset(before)


def add_client_to_events(events: Iterable[EventLike]) -> Iterable[EventLike]:
    """Add the member `client` to events, except to encoded lines and to events that already have it."""
    client = _CLIENT.get()
    return events if client is None else (_add_client_to_event(each, client) for each in events)


def _add_client_to_event(event: EventLike, client: str) -> EventLike:
    if isinstance(event, bytes):
        return event
    members = event if isinstance(event, dict) else msgspec.to_builtins(event)
    return {"client": client} | members


_READS_WAIT = 0.25
"""Seconds that a read waits to record its context."""


class Engine:
    """The engine of a store, shared by its groups of operations.

    redact: whether to mask what looks like a key in appended events.
    language_model: distils conversations under `extraction_rules`; None to distil nothing.
    job_rules: when jobs run; None for the default hours. decay_rules: how much memories fade.
    read: queries the read model, after catching up if that is quick. decide: queries it only after catching
    up, or raises Busy.
    """

    def __init__(
        self,
        path: Path,
        find_stream: "FindStream",
        read_model: ReadModel,
        settings: "StoreSettings",
        *,
        language_model: "LanguageModelProvider | None",
        extraction_rules: "ExtractionRules",
        job_rules: "JobRules | None",
        decay_rules: "DecayRules",
        on_stored: OnStored | None,
    ) -> None:
        self.path = path
        self.log_path = path / LOG
        self._settings, self._find_stream = settings, find_stream
        self.lock_timeout, self.redact = settings.lock_timeout, settings.redact
        self.on_stored = on_stored
        self.read_model = read_model
        self.reads = ReadPool(read_model)
        self.read, self.decide = self.reads.query_up_to_date, self.reads.query_for_decision
        self.language_model, self.extraction_rules = language_model, extraction_rules
        self.job_rules, self.decay_rules = job_rules, decay_rules
        self._on_wait: Callable[[], None] = lambda: None

    def copy_for_thread(self, read_model: ReadModel, on_wait: Callable[[], None]) -> "Engine":
        """Return a copy of this engine for one thread, with its own read model and reader process.

        on_wait: called while the reader process works; raising in it cancels the request.
        """
        engine = copy(self)
        vars(engine).pop("readers", None)
        engine.read, engine.decide, engine._on_wait = (
            read_model.query_up_to_date,
            read_model.query_for_decision,
            on_wait,
        )
        return engine

    @cached_property
    def readers(self) -> "Readers":
        """The process that reads untrusted files, started on first use."""
        from memlog.service.engine.sandbox import Readers

        return Readers(self._settings.document_seconds, on_wait=self._on_wait)

    @property
    def exists(self) -> bool:
        """Whether the store exists; the first append creates it."""
        return disk.is_folder(self.log_path)

    def append(self, events: Iterable[EventLike]) -> list[Position]:
        """Append events that record the current client; see `recording_client`."""
        return self.log.append(add_client_to_events(events))

    def draft(self, event: Event) -> "Draft":
        """Check and encode an event that records the current client, for `Log.append_drafts`."""
        (given,) = add_client_to_events([event])
        return self.log.draft_event(given)

    @cached_property
    def log(self) -> "Log":
        """The log to append to."""
        return self._log(self.lock_timeout, find_stream=self._find_stream, look_up=self.known_ids)

    @cached_property
    def nonblocking_log(self) -> "Log":
        """The log in which reads are recorded. It waits only briefly for other writers."""
        return self._log(min(self.lock_timeout, _READS_WAIT))

    @cached_property
    def bulk_log(self) -> "Log":
        """The log for bulk appends, which `sync_and_tell_of` acknowledges."""
        return self._log(self.lock_timeout, durability="os", on_stored=None)

    def sync_and_tell_of(self, positions: Sequence[Position]) -> None:
        """Sync events of `bulk_log` if the durability is `fsync`, and call `on_stored`. Raises LogError."""
        durability = self._settings.durability
        if durability == "fsync":
            self.bulk_log.sync(positions)
        if self.on_stored is not None:
            self.on_stored([msgspec.structs.replace(each, durability=durability) for each in positions])

    def _log(self, lock_timeout: float, **others: Any) -> "Log":  # noqa: ANN401
        # Imported here: most reads append nothing.
        from memlog.eventlog.log.writer import Log
        from memlog.service.engine.readable import check_source_root

        shared = {"durability": self._settings.durability, "on_stored": self.on_stored}
        return Log(
            self.path,
            lock_timeout=lock_timeout,
            redact=self.redact,
            check=check_source_root,
            **shared | others,
        )

    @cached_property
    def known_ids(self) -> "KnownIds":
        """The lookup of ids that are already in use."""
        # Imported here: most reads append nothing.
        from memlog.service.engine.ids import KnownIds

        return KnownIds(self.path)

    def record_sizes(self) -> None:
        """Record the sizes of the logs in use; see `Log.record_sizes`."""
        for name in vars(self).keys() & {"log", "nonblocking_log", "bulk_log"}:
            getattr(self, name).record_sizes()

    def close(self) -> None:
        """Close all resources. The engine can be used again."""
        # This comes first, because the last connection to close checkpoints SQLite's WAL into the read
        # model's file.
        self.record_sizes()
        if "known_ids" in vars(self):
            self.known_ids.close()
        self.reads.close()
        if "readers" in vars(self):
            self.readers.close()
