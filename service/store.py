"""The store: append, search, context, get, and groups of further operations."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar, overload

from msgspec import Meta
from msgspec.structs import replace

from memlog.eventlog.errors import BadInput, NotFound, format_value_for_message
from memlog.eventlog.events import Durability, Event
from memlog.eventlog.fields import Reads, read_argument, to_path
from memlog.eventlog.files import disk
from memlog.eventlog.files.locks import check_owner
from memlog.eventlog.log.layout import LOG
from memlog.eventlog.positions import OnStored, Position, RefusedLine
from memlog.eventlog.sections import (
    DecayRules,
    EmbeddingProvider,
    ExtractionRules,
    JobRules,
    LanguageModelProvider,
    People,
    Provider,
    RerankProvider,
    SearchRules,
)
from memlog.eventlog.settings import DEFAULTS, StoreSettings
from memlog.projector.passages.chunking import ChunkSizes
from memlog.query.context.request import BuildContext
from memlog.query.request import ChatField, Count
from memlog.query.search.request import Search
from memlog.service.engine.embedding_models import StoreEmbedder, choose_model
from memlog.service.engine.engine import Engine, EventLike
from memlog.service.engine.operation import OperationGroup, import_group_named, operation
from memlog.service.engine.read_model import ReadModel

if TYPE_CHECKING:
    from memlog.query.context.compose import Context
    from memlog.query.provenance import StoredEvent
    from memlog.query.search.hybrid import SearchResult
    from memlog.service.documents.documents import Documents, Workspaces
    from memlog.service.exchange.exchange import DataExchange
    from memlog.service.llm.extraction import Extractions
    from memlog.service.memory.conversations import Conversations
    from memlog.service.memory.core import Core
    from memlog.service.memory.daily import DailyEvents
    from memlog.service.memory.facts import Facts
    from memlog.service.memory.memories import Memories
    from memlog.service.retrieval.search import PreRoute
    from memlog.service.retrieval.tools import Tools
    from memlog.service.upkeep.erasure import Erasure
    from memlog.service.upkeep.jobs import Jobs
    from memlog.service.upkeep.maintenance import Maintenance

# Some imports are local, so that a process only pays for what it uses.


def _check_events(given: EventLike | Iterable[EventLike]) -> Iterable[EventLike]:
    if isinstance(given, Event | dict | bytes):
        return [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(
            f"not an event: {format_value_for_message(given)}",
            hint="pass a struct, for example memlog.Message, or a list of them",
        )
    return given


G = TypeVar("G", bound=OperationGroup)


class LazyGroup(Generic[G]):
    """A store's operation group, imported and created on first use."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, store: None, _: type["StoreGroups"]) -> Self: ...
    @overload
    def __get__(self, store: "StoreGroups", _: type["StoreGroups"]) -> G: ...
    def __get__(self, store: "StoreGroups | None", _: type["StoreGroups"]) -> Self | G:
        if store is None:
            return self
        group: G = vars(store).setdefault(self._name, store._make_operation_group(self._name))
        return group


class StoreGroups(ABC):
    """The operation groups of a store, local or on a server."""

    conversations: LazyGroup["Conversations"] = LazyGroup()
    memories: LazyGroup["Memories"] = LazyGroup()
    core: LazyGroup["Core"] = LazyGroup()
    facts: LazyGroup["Facts"] = LazyGroup()
    daily: LazyGroup["DailyEvents"] = LazyGroup()
    documents: LazyGroup["Documents"] = LazyGroup()
    workspaces: LazyGroup["Workspaces"] = LazyGroup()
    extraction: LazyGroup["Extractions"] = LazyGroup()
    jobs: LazyGroup["Jobs"] = LazyGroup()
    exchange: LazyGroup["DataExchange"] = LazyGroup()
    erasure: LazyGroup["Erasure"] = LazyGroup()
    maintenance: LazyGroup["Maintenance"] = LazyGroup()
    tools: LazyGroup["Tools"] = LazyGroup()

    @abstractmethod
    def _make_operation_group(self, name: str) -> Any: ...  # noqa: ANN401 - an `OperationGroup`, or what stands for it


def _list_withheld_channels(providers: Sequence[Provider | None], rules: ExtractionRules) -> frozenset[str]:
    """Return the channels of coding agents' transcripts, if a provider is on another machine.

    Their texts leave this machine only if the rules name the channel.
    """
    if all(each is None or each.is_of_this_machine for each in providers):
        return frozenset()
    # Imported here: most stores have no such provider.
    from memlog.service.exchange.formats import list_agent_channels

    return list_agent_channels() - {*rules.channels}


class Store(StoreGroups):
    """One store. Thread-safe; use it with `with`, or call `close`.

    path: the store's folder, made absolute; created by the first append.
    create: create a missing store now; otherwise reads raise NotFound until the first append.
    model: a folder with `model.onnx` and `tokenizer.json`; None for the bundled model.
    embedding: the provider of embeddings, instead of a local model. rerank: the provider that reranks hits.
    language_model: distils conversations; None to distil nothing. extraction: the rules for distilling.
    jobs: when daily and weekly jobs run; None for 03:00 and Monday at 04:00.
    decay: how much memories fade in a day; None for the rates of their categories.
    search: what searches leave out by default; None for nothing.
    people: which chats belong to whom; None to infer that from messages.
    memory: False to make searches and contexts return nothing; appends are still stored.
    durability: `fsync`; or `os`: acknowledged events survive the process, but not a power cut.
    lock_timeout: seconds to wait for other writers and projectors.
    chunk_sizes: the sizes of passages. A change rebuilds the read model; all users of a store should agree on
    it.
    redact: mask texts that look like keys in every event before it is written.
    document_seconds: CPU time for reading one HTML or PDF file; a slower one is skipped.
    notify: called with human-readable notes, for example that the read model was rebuilt.
    on_stored: called with the positions of events once they are durable, before any method returns.

    Raises:
        LogError: the process runs as root, and another user owns the store; or `create` fails.
        BadInput: an argument has the wrong type, or is out of bounds.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = False,
        model: str | Path | None = None,
        embedding: EmbeddingProvider | None = None,
        rerank: RerankProvider | None = None,
        language_model: LanguageModelProvider | None = None,
        extraction: ExtractionRules | None = None,
        jobs: JobRules | None = None,
        decay: DecayRules | None = None,
        search: SearchRules | None = None,
        people: People | None = None,
        memory: bool = True,
        durability: Durability = DEFAULTS.durability,
        lock_timeout: float = DEFAULTS.lock_timeout,
        chunk_sizes: ChunkSizes | None = None,
        redact: bool = DEFAULTS.redact,
        document_seconds: int = DEFAULTS.document_seconds,
        notify: Callable[[str], None] = lambda _: None,
        on_stored: OnStored | None = None,
    ) -> None:
        for name, value, kind in (
            ("embedding", embedding, EmbeddingProvider),
            ("rerank", rerank, RerankProvider),
            ("language_model", language_model, LanguageModelProvider),
            ("extraction", extraction, ExtractionRules),
            ("jobs", jobs, JobRules),
            ("decay", decay, DecayRules),
            ("search", search, SearchRules),
            ("people", people, People),
            ("chunk_sizes", chunk_sizes, ChunkSizes),
        ):
            _check_argument(name, value, isinstance(value, kind | None), f"memlog.{kind.__name__}(…)")
        _check_argument("create", create, isinstance(create, bool), "True or False")
        _check_argument("memory", memory, isinstance(memory, bool), "True or False")
        _check_argument("notify", notify, callable(notify), "a function of a str")
        _check_argument(
            "on_stored", on_stored, on_stored is None or callable(on_stored), "a function of positions"
        )
        settings = StoreSettings(
            durability=durability, lock_timeout=lock_timeout, redact=redact, document_seconds=document_seconds
        )
        self.path = read_argument("path", to_path, path).absolute()
        check_owner(self.path)
        read_model = ReadModel(
            self.path,
            chunk_sizes,
            lock_timeout=lock_timeout,
            model=choose_model(model, embedding, self.path),
            rerank=rerank,
            is_off=not memory,
            people=people,
            min_similarity=None if search is None else search.min_similarity,
            withheld_channels=partial(
                _list_withheld_channels, [embedding, rerank], extraction or ExtractionRules()
            ),
            notify=notify,
        )
        if create and not disk.is_folder(self.path / LOG):
            read_model.make_store()
        self._engine = Engine(
            self.path,
            self.stream_with,
            read_model,
            settings,
            language_model=language_model,
            extraction_rules=extraction or ExtractionRules(),
            job_rules=jobs,
            decay_rules=decay or DecayRules(),
            on_stored=on_stored,
        )

    def _make_operation_group(self, name: str) -> Any:  # noqa: ANN401
        return import_group_named(name)(self._engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all resources. The store can be used again."""
        self._engine.close()

    @operation("append")
    def append(
        self,
        events: Annotated[
            EventLike | Iterable[EventLike],
            Reads(_check_events, wire=list[dict[str, Any]]),
            "Events: structs, members by name, or lines of JSON.",
        ],
    ) -> list[Position]:
        """Append one or several events, and return their positions once all are durable.

        A position's `warnings` say what is odd about its event; if the read model knows another event with
        the same id, `conflict` names it. An event with an id is stored only once: a retry is harmless.

        Raises:
            BadInput: an event cannot be stored; none was written.
            NotFound: a redaction names no stream, and no stream has its target; none was written.
            Busy: another writer held the stream for too long.
            LogError: the log could not be written. It is safe to retry with the same ids.
        """
        return self._engine.append(events)  # type: ignore[arg-type] # `_check_events` makes a list

    def append_lines(
        self, lines: Sequence[tuple[int, bytes | None]]
    ) -> list[tuple[int, Position | RefusedLine]]:
        """Append numbered lines of JSON (None: too long), except blank lines; return their outcomes.

        Raises:
            LogError: the log cannot be written.
        """
        # Imported here: most programs append events.
        from memlog.eventlog.log.writer import append_lines

        return [*append_lines(self._engine.log, lines)]

    @property
    def exists(self) -> bool:
        """Whether the store exists; the first append creates it."""
        return self._engine.exists

    @property
    def embedder(self) -> StoreEmbedder:
        """This store's embedding model or provider, for a program's own texts."""
        return StoreEmbedder(self._engine.read_model.model)

    @operation("read", request=Search)
    def search(self, request: Search) -> "SearchResult":
        from memlog.service.retrieval.search import search_store

        started = time.perf_counter()
        result = search_store(self._engine.reads, request)
        result.took_ms = round((time.perf_counter() - started) * 1000, 3)
        return result

    @operation("append", request=BuildContext)
    def context(self, request: BuildContext) -> "Context":
        from memlog.service.retrieval.search import create_and_record_context

        rules = self._engine.job_rules
        if request.timezone is None and rules is not None:
            request = replace(request, timezone=rules.timezone)
        return create_and_record_context(self._engine.reads, self._engine.nonblocking_log, request)

    @operation("append")
    def pre_route(
        self,
        text: Annotated[str, "The text."],
        *,
        chat: Annotated[ChatField | None, "The current conversation."] = None,
        max_tokens: Annotated[Count, "The most tokens of the context."] = 4000,
    ) -> "PreRoute":
        """Answer `text` from the facts if it asks for a fact; else return the memory context for an answer.

        A question that asks for a list, or for the item at some rank in a list, is answered only from the
        facts: a missing value is never guessed. For any other text, memories are searched.

        Raises:
            BadInput: the text is empty.
            DatabaseError: the read model can neither be read nor rebuilt.
        """
        from memlog.service.retrieval.search import pre_route

        return pre_route(self.facts.ask, self.context, text, chat=chat, max_tokens=max_tokens)

    @operation("read", missing="event_not_found")
    def get(
        self,
        id: Annotated[str, Meta(title="ID"), "The id."],
        *,
        stream: Annotated[str | None, "The stream of the event, if several streams have its id."] = None,
        around: Annotated[
            int, Meta(ge=0, le=100, title="N"), "Show a message with N others of its session on either side."
        ] = 0,
    ) -> "StoredEvent | None":
        """Show the event with an id, as the log has it.

        The id is that of an event, a memory, a fact (`topic_key/rank`) or a document (`source/file`). For the
        last three, the newest event is shown.

        Raises:
            BadInput: several streams have an event with this id, and `stream` is not given.
        """
        from memlog.query import provenance

        log = self._engine.log_path
        return self._engine.read(lambda db: provenance.find_event(db, log, id, stream, neighbours=around))

    def stream_with(self, event_id: str) -> str:
        """Return the only stream that has an event with this id.

        Raises:
            NotFound: no stream has such an event. BadInput: several streams have such an event.
        """
        from memlog.query import provenance

        return self._engine.read(lambda db: provenance.stream_of_event(db, event_id))

    def warm(self) -> None:
        """Load the embedding model, and open all pooled connections, so that the first search is not slower.

        Without a store, only the model is loaded.

        Raises:
            DatabaseError: as `search`.
        """
        text = "warm up"
        try:
            self.search(text, k=1)
            self._engine.reads.open_all_connections()
        except NotFound:
            embedder, _ = self._engine.read_model.model.load_embedder_or_why()
            if embedder is not None:
                embedder.embed([text])


def _check_argument(name: str, value: object, is_right: bool, what_is: str) -> None:
    if not is_right:
        raise BadInput(f"{name} is {format_value_for_message(value)}", hint=f"use {what_is}")


open = Store
"""Opens the store in the folder `path`; takes the arguments of `Store`."""
