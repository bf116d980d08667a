"""The operations of a store as coroutines: their types, written by `make snapshots`."""

import builtins
import collections.abc
import datetime
import pathlib
import typing
from typing import Literal, Optional, Union, overload

import memlog.eventlog.events
import memlog.eventlog.positions
import memlog.projector.verify
import memlog.query.buffer
import memlog.query.conflicts
import memlog.query.context.compose
import memlog.query.conversations
import memlog.query.documents
import memlog.query.facts.answers
import memlog.query.filters
import memlog.query.imports
import memlog.query.memories
import memlog.query.provenance
import memlog.query.records
import memlog.query.search.hybrid
import memlog.query.search.request
import memlog.query.sessions
import memlog.service.documents.indexing
import memlog.service.documents.sources
import memlog.service.engine.prompts
import memlog.service.exchange.exchange
import memlog.service.exchange.formats
import memlog.service.exchange.histories
import memlog.service.exchange.importing
import memlog.service.exchange.incoming
import memlog.service.llm.extraction
import memlog.service.llm.tasks.extract
import memlog.service.memory.core
import memlog.service.memory.facts
import memlog.service.memory.fading
import memlog.service.memory.save
import memlog.service.retrieval.search
import memlog.service.retrieval.tools
import memlog.service.upkeep.doctor
import memlog.service.upkeep.erasure
import memlog.service.upkeep.forgetting
import memlog.service.upkeep.jobs
import memlog.service.upkeep.maintenance
import memlog.service.upkeep.project
import memlog.service.upkeep.status
import memlog.service.upkeep.undoing
from memlog.service.adapters.awaiting import Awaitable, Watching

class AsyncConversations(Awaitable):
    """The methods of `Conversations` as coroutines."""

    async def window(
        self,
        chat: tuple[str, str | int] | str,
        *,
        last: int | None = ...,
        tokens: int | None = ...,
        across_sessions: bool = ...,
    ) -> memlog.query.conversations.Window: ...
    async def session_content(
        self,
        chat: tuple[str, str | int] | str,
        *,
        last: int | None = ...,
        tokens: int | None = ...,
        across_sessions: bool = ...,
    ) -> memlog.query.sessions.SessionContent: ...
    async def sessions(
        self, chat: Union[tuple[str, str | int], str, None] = ..., *, all: bool = ...
    ) -> builtins.list[memlog.query.sessions.Session]: ...
    async def summaries(
        self, chat: Union[tuple[str, str | int], str, None] = ...
    ) -> builtins.list[memlog.query.sessions.Summary]: ...

class AsyncMemories(Awaitable):
    """The methods of `Memories` as coroutines."""

    async def save(
        self,
        content: str,
        title: str | None = ...,
        *,
        category: str = ...,
        kind: Literal["fact", "preference", "insight"] = ...,
        importance: float = ...,
        source: str = ...,
        topic: str | None = ...,
        tags: Optional[builtins.list[str]] = ...,
        memory_id: str | None = ...,
        event_id: Optional[str] = ...,
        ts: Union[str, datetime.datetime, None] = ...,
        dedup: bool = ...,
        any_chat: bool = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
    ) -> memlog.service.memory.save.SaveReport: ...
    async def get(self, memory_id: str) -> memlog.query.memories.Memory | None: ...
    async def history(self, memory_id: str) -> builtins.list[memlog.query.provenance.StoredEvent]: ...
    async def conflicts(self) -> builtins.list[memlog.query.conflicts.MemoryConflict]: ...
    async def resolve(
        self, conflict: str, keep: collections.abc.Sequence[str]
    ) -> memlog.query.conflicts.MemoryConflict: ...
    async def unmerge(self, memory_id: str) -> builtins.list[memlog.query.memories.Memory]: ...
    async def update(
        self,
        memory_id: str,
        *,
        content: str | None = ...,
        title: str | None = ...,
        category: Optional[str] = ...,
        kind: Optional[Literal["fact", "preference", "insight"]] = ...,
        importance: Optional[float] = ...,
        salience: Optional[float] = ...,
        source: str | None = ...,
        topic: str | None = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
        tags: Optional[builtins.list[str]] = ...,
        event_id: Optional[str] = ...,
        ts: Union[str, datetime.datetime, None] = ...,
    ) -> memlog.eventlog.positions.Position: ...
    async def archive(self, memory_id: str) -> memlog.eventlog.positions.Position: ...
    async def archive_all(
        self, memory_ids: collections.abc.Sequence[str], *, dry_run: bool = ...
    ) -> builtins.list[memlog.query.memories.Memory]: ...
    async def delete(self, memory_id: str) -> Union[memlog.eventlog.positions.Position, Literal[False]]: ...
    async def touch(self, *memory_ids: str) -> memlog.eventlog.positions.Position: ...
    async def list(
        self,
        *,
        chat: Union[tuple[str, str | int], str, None] = ...,
        category: Optional[str] = ...,
        kind: Optional[Literal["fact", "preference", "insight"]] = ...,
        topic: str | None = ...,
        tag: str | None = ...,
        min_salience: float = ...,
        archived: bool = ...,
        limit: int | None = ...,
        light: bool = ...,
    ) -> builtins.list[memlog.query.memories.Memory]: ...
    async def decay(
        self, rates: Optional[collections.abc.Mapping[str, float]] = ...
    ) -> memlog.service.memory.fading.DecayReport: ...
    async def prune(
        self, *, dry_run: bool = ..., categories: collections.abc.Iterable[str] = ..., threshold: float = ...
    ) -> memlog.service.memory.fading.PruneReport: ...

class AsyncCore(Awaitable):
    """The methods of `Core` as coroutines."""

    @overload
    async def get(
        self, *, chat: tuple[str, str | int] | str | None = ...
    ) -> memlog.query.records.CoreMemory: ...
    @overload
    async def get(
        self, section: Literal["user", "agent"], *, chat: tuple[str, str | int] | str | None = ...
    ) -> dict[str, str]: ...
    @overload
    async def get(
        self, section: Literal["user", "agent"], key: str, *, chat: tuple[str, str | int] | str | None = ...
    ) -> str | None: ...
    async def set(
        self, section: Literal["user", "agent"], key: str, value: str
    ) -> memlog.eventlog.positions.Position: ...
    async def delete(
        self, section: Literal["user", "agent"], key: str
    ) -> Union[memlog.eventlog.positions.Position, Literal[False]]: ...
    async def import_file(
        self, path: str | pathlib.Path, *, force: bool = ...
    ) -> memlog.service.memory.core.CoreImportReport: ...
    async def take_over(self, text: str, name: str) -> memlog.service.memory.core.CoreImportReport: ...

class AsyncFacts(Awaitable):
    """The methods of `Facts` as coroutines."""

    async def set(
        self,
        topic: str,
        *values: str,
        single: bool = ...,
        ranks: collections.abc.Sequence[int] | None = ...,
        source_message_id: str | None = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
    ) -> memlog.service.memory.facts.FactUpdate: ...
    async def get(
        self,
        topic: str,
        *,
        rank: Optional[int] = ...,
        any_chat: bool = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
    ) -> memlog.query.facts.answers.FactAnswer: ...
    async def ask(
        self, question: str, *, any_chat: bool = ..., chat: Union[tuple[str, str | int], str, None] = ...
    ) -> memlog.query.facts.answers.FactAnswer: ...
    async def extract(
        self,
        text: str,
        *,
        source_message_id: str | None = ...,
        dry_run: bool = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
    ) -> memlog.service.memory.facts.FactExtraction: ...
    async def remove(
        self, topic: str, *, rank: Optional[int] = ..., chat: Union[tuple[str, str | int], str, None] = ...
    ) -> builtins.list[memlog.eventlog.positions.Position]: ...
    async def list(
        self, *, chat: Union[tuple[str, str | int], str, None] = ...
    ) -> builtins.list[memlog.query.facts.answers.Fact]: ...

class AsyncDailyEvents(Awaitable):
    """The methods of `DailyEvents` as coroutines."""

    async def record(
        self,
        summary: str,
        date: Union[str, datetime.datetime, None] = ...,
        *,
        channel: str | None = ...,
        sender_id: str | None = ...,
        raw_tokens: int | None = ...,
        event_id: Optional[str] = ...,
        ts: Union[str, datetime.datetime, None] = ...,
    ) -> memlog.eventlog.positions.Position: ...
    async def list(
        self,
        *,
        date: Union[str, datetime.datetime, None] = ...,
        since: Union[str, datetime.datetime, None] = ...,
        until: Union[str, datetime.datetime, None] = ...,
        channel: str | None = ...,
        uncompressed: bool = ...,
    ) -> builtins.list[memlog.query.records.DailyEvent]: ...
    async def compress(
        self, *ids: str, memory_ids: collections.abc.Sequence[str] = ..., event_id: Optional[str] = ...
    ) -> memlog.eventlog.positions.Position: ...

class AsyncDocuments(Awaitable):
    """The methods of `Documents` as coroutines."""

    async def add(
        self,
        path: str | pathlib.Path,
        *,
        source: str | None = ...,
        include: collections.abc.Iterable[str] = ...,
        exclude: collections.abc.Iterable[str] = ...,
        kind: Literal["docs", "memory"] = ...,
        progress: typing.Any | None = ...,
    ) -> memlog.service.documents.sources.IndexingReport: ...
    async def add_all(
        self,
        paths: collections.abc.Iterable[str | pathlib.Path],
        *,
        source: str | None = ...,
        include: collections.abc.Iterable[str] = ...,
        exclude: collections.abc.Iterable[str] = ...,
        kind: Literal["docs", "memory"] = ...,
        progress: typing.Any | None = ...,
    ) -> builtins.list[memlog.service.documents.sources.IndexingReport]: ...
    async def refresh(
        self, source: str | None = ..., *, progress: typing.Any | None = ...
    ) -> builtins.list[memlog.service.documents.sources.IndexingReport]: ...
    @overload
    async def list(self, source: None = ...) -> builtins.list[memlog.query.documents.Source]: ...
    @overload
    async def list(self, source: str) -> builtins.list[memlog.query.documents.Document]: ...
    async def get(
        self, name: str
    ) -> memlog.query.documents.DocumentText | memlog.query.documents.Source | None: ...
    async def tree(
        self, source: str | None = ...
    ) -> builtins.list[memlog.query.documents.DocumentFolder]: ...
    async def status(
        self, source: str | None = ...
    ) -> builtins.list[memlog.service.documents.indexing.SourceStatus]: ...
    async def jobs(self) -> builtins.list[memlog.service.documents.indexing.IndexingJob]: ...
    async def remove(self, name: str) -> Union[memlog.eventlog.positions.Position, Literal[False]]: ...

class AsyncWorkspaces(Awaitable):
    """The methods of `Workspaces` as coroutines."""

    async def add(
        self, path: str | pathlib.Path, *, source: str | None = ..., progress: typing.Any | None = ...
    ) -> memlog.service.documents.sources.IndexingReport: ...
    async def list(self) -> builtins.list[memlog.query.documents.Source]: ...
    async def remove(self, name: str) -> Union[memlog.eventlog.positions.Position, Literal[False]]: ...

class AsyncExtractions(Awaitable):
    """The methods of `Extractions` as coroutines."""

    async def run(
        self,
        chat: Union[tuple[str, str | int], str, None] = ...,
        mode: Optional[str] = ...,
        *,
        dry_run: bool = ...,
        unbounded: bool = ...,
        progress: typing.Any | None = ...,
        retry: bool = ...,
    ) -> builtins.list[memlog.service.llm.tasks.extract.ExtractionReport]: ...
    async def days(
        self,
        until: Union[str, datetime.datetime, None] = ...,
        *,
        progress: typing.Any | None = ...,
        retry: bool = ...,
    ) -> builtins.list[memlog.service.llm.tasks.extract.ExtractionReport]: ...
    async def extract(
        self,
        session: tuple[str, str | int] | str,
        user: str | None = ...,
        assistant: str | None = ...,
        mode: Optional[str] = ...,
    ) -> memlog.service.llm.extraction.DistilRequest: ...
    async def buffer(
        self, chat: Union[tuple[str, str | int], str, None] = ...
    ) -> builtins.list[memlog.query.buffer.Buffer]: ...
    async def prompt(self, name: str) -> memlog.service.engine.prompts.Prompt: ...

class AsyncJobs(Awaitable):
    """The methods of `Jobs` as coroutines."""

    async def list(self) -> builtins.list[memlog.service.upkeep.jobs.Job]: ...
    async def run(
        self, job: Optional[Literal["extraction", "summaries", "daily", "weekly"]] = ..., *, retry: bool = ...
    ) -> builtins.list[memlog.service.upkeep.jobs.JobReport]: ...
    async def log(
        self, job: Optional[Literal["daily", "weekly"]] = ..., *, limit: int | None = ...
    ) -> builtins.list[memlog.query.records.JobRun]: ...

class AsyncDataExchange(Awaitable):
    """The methods of `DataExchange` as coroutines."""

    async def import_from(
        self,
        format: str | None = ...,
        paths: collections.abc.Iterable[str | pathlib.Path] = ...,
        *,
        project: str | None = ...,
        map: Union[str, pathlib.Path, None] = ...,
        since: Union[str, datetime.datetime, None] = ...,
        chosen: memlog.service.exchange.formats.ChosenSessions | None = ...,
        run: str | None = ...,
        imported: memlog.service.exchange.incoming.ImportedRecords | None = ...,
        progress: typing.Any | None = ...,
        dry_run: bool = ...,
    ) -> memlog.service.exchange.importing.ImportReport: ...
    async def list_imports(self) -> builtins.list[memlog.query.imports.ImportRun]: ...
    async def find_histories(
        self,
        home: str | pathlib.Path,
        *,
        folders: collections.abc.Iterable[str | pathlib.Path] = ...,
        hosts: tuple[str, ...] = ...,
        since: Union[str, datetime.datetime, None] = ...,
        progress: typing.Any | None = ...,
    ) -> builtins.list[memlog.service.exchange.histories.FoundHistory]: ...
    async def export_sqlite(
        self, path: str | pathlib.Path, *, replace: bool = ..., progress: typing.Any | None = ...
    ) -> memlog.service.exchange.exchange.ExportReport: ...

class AsyncErasure(Awaitable):
    """The methods of `Erasure` as coroutines."""

    async def forget(
        self,
        event_id: str | None = ...,
        *,
        stream: str | None = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
        memory: str | None = ...,
        match: str | None = ...,
        reason: str | None = ...,
        dry_run: bool = ...,
    ) -> memlog.service.upkeep.forgetting.ForgetReport: ...
    async def undo_import(
        self, run: str, *, anyway: bool = ..., erase: bool = ..., dry_run: bool = ...
    ) -> memlog.service.upkeep.undoing.ImportUndo: ...
    async def scrub(
        self, *, dry_run: bool = ..., progress: typing.Any | None = ...
    ) -> memlog.service.upkeep.forgetting.ScrubReport: ...
    async def prove(self, text: str) -> memlog.service.upkeep.erasure.Proof: ...
    async def secrets(self) -> builtins.list[memlog.service.upkeep.erasure.SecretPlace]: ...

class AsyncMaintenance(Watching):
    """The methods of `Maintenance` as coroutines."""

    async def project(
        self, *, from_scratch: bool = ..., embed: bool = ..., progress: typing.Any | None = ...
    ) -> memlog.service.upkeep.project.ProjectReport: ...
    async def embed(
        self, *, batch: int = ..., progress: typing.Any | None = ...
    ) -> memlog.service.upkeep.project.EmbedReport: ...
    async def verify(self, *, progress: typing.Any | None = ...) -> memlog.projector.verify.Verification: ...
    async def examine(self, *, fix: bool = ...) -> builtins.list[memlog.service.upkeep.doctor.Finding]: ...
    async def seal(self, *, accept_loss: bool = ...) -> memlog.service.upkeep.maintenance.SealReport: ...
    async def digest(self, *, content: bool = ...) -> str: ...
    async def status(self) -> memlog.service.upkeep.status.Status: ...
    async def stats(self) -> memlog.service.upkeep.status.Stats: ...
    async def quarantine(self) -> builtins.list[memlog.query.provenance.QuarantinedLine]: ...
    async def explain(self, line: memlog.query.provenance.QuarantinedLine) -> str: ...

class AsyncTools(Awaitable):
    """The methods of `Tools` as coroutines."""

    async def memory_search(
        self,
        query: str,
        topK: int = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
        since: Union[str, datetime.datetime, None] = ...,
        until: Union[str, datetime.datetime, None] = ...,
    ) -> memlog.service.retrieval.tools.ToolResults: ...
    async def memory_get(
        self, ids: collections.abc.Sequence[str]
    ) -> memlog.service.retrieval.tools.ToolItems: ...
    async def memory_save(
        self,
        content: str,
        source: str = ...,
        category: str = ...,
        kind: Literal["fact", "preference", "insight"] = ...,
        importance: float = ...,
        topic: str | None = ...,
        tags: builtins.list[str] | None = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
    ) -> memlog.service.retrieval.tools.ToolSaved: ...
    async def memory_core_get(self) -> memlog.query.records.CoreMemory: ...
    async def memory_core_update(
        self, section: Literal["user", "agent"], key: str, value: str
    ) -> memlog.service.retrieval.tools.CoreChange: ...
    async def memory_core_delete(
        self, section: Literal["user", "agent"], key: str
    ) -> memlog.service.retrieval.tools.CoreChange: ...
    async def memory_forget(
        self, memory_ids: collections.abc.Sequence[str], dry_run: bool = ...
    ) -> memlog.service.retrieval.tools.ToolForgotten: ...

class AsyncOperations(Awaitable):
    """The methods of `Store` as coroutines."""

    async def append(
        self,
        events: memlog.eventlog.events.Event
        | dict[str, typing.Any]
        | bytes
        | collections.abc.Iterable[memlog.eventlog.events.Event | dict[str, typing.Any] | bytes],
    ) -> builtins.list[memlog.eventlog.positions.Position]: ...
    async def append_lines(
        self, lines: collections.abc.Sequence[tuple[int, bytes | None]]
    ) -> builtins.list[
        tuple[int, memlog.eventlog.positions.Position | memlog.eventlog.positions.RefusedLine]
    ]: ...
    async def search(
        self,
        text: str,
        *,
        k: int = ...,
        mode: Literal["hybrid", "text", "vector"] = ...,
        chat: Union[tuple[str, str | int], str, None] = ...,
        filters: memlog.query.filters.Filters | collections.abc.Mapping[str, typing.Any] = ...,
        ranking: memlog.query.search.request.Ranking | collections.abc.Mapping[str, typing.Any] = ...,
        min_similarity: Optional[float] = ...,
        is_raw: bool = ...,
        explain: bool = ...,
        expand: int = ...,
        sync: bool = ...,
    ) -> memlog.query.search.hybrid.SearchResult: ...
    async def context(
        self,
        text: str = ...,
        *,
        chat: Union[tuple[str, str | int], str, None] = ...,
        scope: Literal["auto", "store", "chat"] = ...,
        part: Literal["stable", "turn", "both"] = ...,
        max_tokens: int = ...,
        counter: Literal["model", "chars4", "heuristic"] = ...,
        form: Literal["text", "json", "messages", "session"] = ...,
        timezone: str | None = ...,
        limit: int = ...,
        passages: int = ...,
        documents: int = ...,
        health_tokens: int = ...,
        preference_tokens: int = ...,
        min_salience: float = ...,
        message_id: str | None = ...,
        exclude: collections.abc.Iterable[str] = ...,
        joined: tuple[str, ...] = ...,
        is_sent: bool = ...,
        beside: tuple[str, ...] = ...,
        record: bool = ...,
        record_id: str | None = ...,
        explain: bool = ...,
        sync: bool = ...,
    ) -> memlog.query.context.compose.Context: ...
    async def pre_route(
        self, text: str, *, chat: Union[tuple[str, str | int], str, None] = ..., max_tokens: int = ...
    ) -> memlog.service.retrieval.search.PreRoute: ...
    async def get(
        self, id: str, *, stream: str | None = ..., around: int = ...
    ) -> memlog.query.provenance.StoredEvent | None: ...
    async def stream_with(self, event_id: str) -> str: ...
    async def warm(self) -> None: ...
    conversations: AsyncConversations
    memories: AsyncMemories
    core: AsyncCore
    facts: AsyncFacts
    daily: AsyncDailyEvents
    documents: AsyncDocuments
    workspaces: AsyncWorkspaces
    extraction: AsyncExtractions
    jobs: AsyncJobs
    exchange: AsyncDataExchange
    erasure: AsyncErasure
    maintenance: AsyncMaintenance
    tools: AsyncTools
