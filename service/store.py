"""A store: append, project, search, read. What the command line and Python programs call."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

from msgspec.structs import replace

from memlog.eventlog.acknowledgements import OnStored
from memlog.eventlog.chat import Chat, ChatName
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event
from memlog.eventlog.store_folder import check_store
from memlog.eventlog.writer import Durability, Log, Position
from memlog.projector.catchup import Progress
from memlog.projector.digest import digest
from memlog.projector.lifecycle import EMBED_BATCH
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import wrapped
from memlog.query import provenance
from memlog.query.filters import Filters
from memlog.query.provenance import QuarantinedLine, Stored
from memlog.query.request import ids
from memlog.query.search.expansion import check_neighbours
from memlog.query.search.hybrid import Mode, Search, SearchResult, search
from memlog.query.search.ranking import Ranking
from memlog.query.sessions import Session, SessionContent, session_content, sessions
from memlog.query.summaries import Summary, summaries
from memlog.query.window import Window, window
from memlog.service.known_ids import KnownIds
from memlog.service.local_model import LocalModel
from memlog.service.maintenance import project
from memlog.service.maintenance.project import EmbedReport, ProjectReport
from memlog.service.maintenance.stats import Stats, stats_of
from memlog.service.maintenance.status import Status, name_pending, status_of
from memlog.service.read_model import Deciding, Reading, ReadModel
from memlog.service.read_pool import ReadPool

if TYPE_CHECKING:
    from memlog.projector.verify import Verification
    from memlog.query.context.compose import Context
    from memlog.query.context.rendering import Form
    from memlog.query.context.token_counters import Counter
    from memlog.service.contexts import Contexts
    from memlog.service.core.facade import Core
    from memlog.service.daily_events import DailyEvents
    from memlog.service.documents.facade import Documents
    from memlog.service.documents.workspaces import Workspaces
    from memlog.service.erasure import scrub
    from memlog.service.erasure.byte_search import Proof
    from memlog.service.erasure.find_secrets import SecretPlace
    from memlog.service.erasure.forget import Confirm, Forgetting, Forgotten
    from memlog.service.erasure.scrub import Scrubbed
    from memlog.service.facts.facade import Facts
    from memlog.service.maintenance.findings import Finding
    from memlog.service.memories.facade import Memories
    from memlog.service.watching.worker import WatchStep

# What only some calls need is imported by them: a process that asks one thing pays for that alone.

_READS_WAIT = 0.25
"""Seconds that a read waits to record what it gave."""


def _ignore(_: str) -> None:
    pass


def _go_on() -> None:
    pass


def ignore_step(_: "WatchStep") -> None:
    """Tell nobody of a step of a watch."""


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
    redact: mask what looks like a key in whatever is appended, before it is written.
    document_seconds: of the processor that reading one HTML or PDF file may take; a longer one is skipped.
    notify: called with what a person should know, such as that the read model was built anew.
    on_stored: called with the positions of events once they are durable, before any method returns.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: Path | None = None,
        durability: Durability = "fsync",
        lock_timeout: float = 10.0,
        chunk_sizes: ChunkSizes | None = None,
        redact: bool = False,
        document_seconds: int = 60,
        notify: Callable[[str], None] = _ignore,
        on_stored: OnStored | None = None,
    ) -> None:
        self.path = path
        self._lock_timeout = lock_timeout
        self._redact = redact
        self._document_seconds = document_seconds
        self._on_stored = on_stored
        self._known_ids = KnownIds(path)
        self._log = Log(
            path,
            durability=durability,
            lock_timeout=lock_timeout,
            find_stream=self.stream_with,
            redact=redact,
            look_up=self._known_ids,
            on_stored=on_stored,
        )
        self._read_model = ReadModel(
            path, chunk_sizes, lock_timeout=lock_timeout, model=LocalModel(model), notify=notify
        )
        self._reads = ReadPool(self._read_model)
        self._read = self._reads.read

    @cached_property
    def memories(self) -> "Memories":
        """What was kept beyond conversations; see `Memories`."""
        from memlog.service.memories.facade import Memories

        return Memories(self._log.path, append=self.append, **_readings(self._reads))

    @cached_property
    def core(self) -> "Core":
        """What an agent always sees; see `Core`."""
        return self._core_by(self._reads)

    @cached_property
    def daily(self) -> "DailyEvents":
        """What happened on which day; see `DailyEvents`."""
        from memlog.service.daily_events import DailyEvents

        return DailyEvents(self.append, **_readings(self._reads))

    @cached_property
    def facts(self) -> "Facts":
        """What is known by a topic's name; see `Facts`."""
        from memlog.service.facts.facade import Facts

        return Facts(append=self.append, redact=self._redact, **_readings(self._reads))

    @cached_property
    def documents(self) -> "Documents":
        """Folders and files of text; see `Documents`."""
        return self._documents_by(self._reads, _go_on)

    @cached_property
    def workspaces(self) -> "Workspaces":
        """The folders of agents, whose notes are memories; see `Workspaces`."""
        from memlog.service.documents.workspaces import Workspaces

        return Workspaces(self.documents)

    @cached_property
    def _contexts(self) -> "Contexts":
        from memlog.service.contexts import Contexts

        # A read does not wait for writers.
        wait = min(self._lock_timeout, _READS_WAIT)
        log = Log(self.path, durability=self._log.durability, lock_timeout=wait, redact=self._redact)
        return Contexts(self._reads, log)

    @cached_property
    def _forgetting(self) -> "Forgetting":
        from memlog.service.erasure.forget import Forgetting, log_that_syncs

        return Forgetting(
            log_that_syncs(self.path, self._lock_timeout, redact=self._redact, on_stored=self._on_stored),
            self._read_model,
        )

    def _core_by(self, reads: ReadModel | ReadPool) -> "Core":
        from memlog.service.core.facade import Core

        return Core(self.append, view=self._read_model.projector.core_view, **_readings(reads))

    def _documents_by(self, reads: ReadModel | ReadPool, on_wait: Callable[[], None]) -> "Documents":
        from memlog.service.documents.facade import Documents
        from memlog.service.documents.readers import Readers

        return Documents(
            self.path,
            self.append,
            **_readings(reads),
            take_over=self._core_by(reads).take_over,
            readers=Readers(self._document_seconds, on_wait=on_wait),
            lock_timeout=self._lock_timeout,
            redact=self._redact,
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

        A position says what is odd about its event in `warnings`; where its id already names another event,
        as far as the read model knows, it says which in `conflict`.

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

    def forget(
        self,
        event_id: str | None = None,
        *,
        stream: str | None = None,
        chat: ChatName | None = None,
        memory: str | None = None,
        match: str | None = None,
        reason: str | None = None,
        confirm: "Confirm" = lambda _: True,
    ) -> "Forgotten":
        """Forget one event (in `stream`, where several have its id), all of a chat (channel, chat_id), every
        event that touched a memory, or every event that says what a regular expression finds.

        A redaction is appended for each of them and synced, whatever `durability` is; then no read model of
        this store shows them, and no line of such an id ever counts again. Their bytes stay in the log until
        `scrub`.

        reason: kept in the log, for those who read it.
        confirm: asked with what would be forgotten; where it says no, nothing is done.

        Raises:
            BadInput: not exactly one of them is named; several streams have the id; no regular expression.
            NotFound: nothing of this name ever stood here.
            Busy, LogError: as `append`. Some of it may be forgotten; forgetting it again is safe.
        """
        check_store(self.path)
        asked = [each for each in (event_id, chat, memory, match) if each is not None]
        if len(asked) != 1:
            raise BadInput("one event, one chat, one memory, or one pattern is forgotten", hint="name one")
        if chat is not None:
            return self._forgetting.chat(Chat.of(chat), reason, confirm)
        if memory is not None:
            return self._forgetting.memory(memory, reason, confirm)
        if match is not None:
            return self._forgetting.match(match, reason, confirm)
        assert event_id is not None
        return self._forgetting.event(event_id, stream, reason, confirm)

    def scrub(
        self,
        *,
        confirm: "scrub.Confirm" = lambda _: True,
        progress: Progress | None = None,
    ) -> "Scrubbed":
        """Overwrite in the log what was forgotten, and leave nothing that was made of it: a new read model is
        built, others are removed, and the cache has no free pages.

        Offsets, files and the number of lines stay as they are. Killed, or stopped by an error, it finishes
        when it is called again.

        confirm: asked with what would be overwritten; where it says no, nothing is done.

        Raises:
            Busy: another process held a segment, the seals or the read model for too long.
            LogError, DatabaseError: a file could not be written. What was forgotten may still stand there.
        """
        from memlog.service.erasure import scrub

        check_store(self.path)
        with self._read_model.mutex, wrapped("the read model"):
            done = scrub.scrub_store(
                self._read_model, lock_timeout=self._lock_timeout, confirm=confirm, progress=progress
            )
        # The disk keeps the bytes of a removed generation while a connection to it is open.
        self._reads.close()
        return done

    def prove(self, text: str) -> "Proof":
        """Look for `text` in every byte of the store, and say where it stands.

        Raises:
            BadInput: there is no text to look for. LogError: a file cannot be read.
        """
        from memlog.service.erasure.byte_search import prove

        check_store(self.path)
        # Who closes a file that SQLite has open in the same process drops SQLite's locks.
        with self._reads.all_closed():
            self._known_ids.close()
            return prove(self.path, text)

    def secrets(self) -> "list[SecretPlace]":
        """Where the log holds what looks like a key, as far as its lines are no longer than an event; never
        the key itself. Reads the log alone."""
        from memlog.service.erasure.find_secrets import secrets_in

        check_store(self.path)
        return secrets_in(self._log.path)

    def stream_with(self, event_id: str) -> str:
        """The one stream that has an event of this id.

        Raises:
            NotFound: none has. BadInput: several have.
        """
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

    def project(
        self, *, from_scratch: bool = False, embed: bool = True, progress: Progress | None = None
    ) -> ProjectReport:
        """Bring the read model up to the log, and give its passages vectors.

        from_scratch: build a new one from the whole log beside the live one, and swap it in.
        embed: compute vectors that the cache lacks.

        Raises:
            Busy: another projector held the lock for too long.
            DatabaseError: the read model cannot be written.
        """
        return self._read_model.healed(
            lambda: project.project(
                self._read_model, from_scratch=from_scratch, embed=embed, progress=progress
            )
        )

    def embed(self, *, batch: int = EMBED_BATCH, progress: Progress | None = None) -> EmbedReport:
        """Catch up with the log, then give passages that have no vector one, in the order of their numbers.

        batch: how many passages are computed between two writes; what was written stays, whatever happens.

        Raises:
            EmbeddingError: no model works here, or it failed.
            Busy, DatabaseError: as `project`.
        """
        return self._read_model.healed(
            lambda: project.embed(self._read_model, batch=batch, progress=progress)
        )

    def watch(
        self,
        *,
        once: bool = False,
        stop: threading.Event | None = None,
        tell: "Callable[[WatchStep], None]" = ignore_step,
        progress: Progress | None = None,
    ) -> None:
        """Keep the read model up to the log, documents up to the files of their sources, and give passages
        vectors, until told to stop. One process watches a store at a time.

        What goes wrong is said once through `notify`, and tried again. Rows have the precedence: what any
        process appends is in the read model within 250 ms.

        once: bring everything up, and return.
        stop: set it from another thread; it is set when this returns.
        tell: called in this thread with each step that did something, and with the first.
        progress: called in this thread while a step takes long.

        Raises:
            Busy: another process watches this store.
            NotFound: with `once`, there is no store.
            LogError: the store cannot be made, or written; with `once`, also as `project`.
            DatabaseError: with `once`, as `project`.
        """
        from memlog.service.watching import threads

        if once:
            self._read_model.check_store()
            threads.bring_up(self._read_model, self.documents, tell=tell, progress=progress)
            return
        threads.watch(
            self._read_model,
            self._documents_by,
            stop=stop or threading.Event(),
            tell=tell,
            progress=progress,
        )

    def search(
        self,
        text: str,
        *,
        k: int = 10,
        mode: Mode = "hybrid",
        chat: ChatName | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        min_similarity: float | None = None,
        is_raw: bool = False,
        explain: bool = False,
        expand: int = 0,
        ranking: Ranking | Mapping[str, Any] | None = None,
        sync: bool = True,
    ) -> SearchResult:
        """The `k` messages, memories and documents that answer `text` best.

        chat: `telegram:7` or (channel, chat_id): only of this conversation.
        filters, ranking: or their fields in a dict.
        min_similarity: leave out what only meaning finds and is less similar; None for nothing.
        is_raw: the full text takes `text` as FTS5's own syntax.
        explain: say of each hit which side found it, and how.
        expand: give each hit with so many neighbours on either side, at most 100: a message with those
            of its session, a document's passage with the text around it.
        ranking: how the sides are ranked and joined; None for what was found best.
        sync: first catch up with the log, waiting at most 250 ms for another projector, and embed at most
            16 new passages; what could not be done is named in the result.

        Raises:
            BadInput: a value is not of its type or outside its bounds; FTS5 does not understand a raw text.
            DatabaseError: the read model cannot be read, nor made anew.
        """
        started = time.perf_counter()
        named = Filters.of(filters or {})
        asked = Search(
            text,
            k=k,
            mode=mode,
            filters=named if chat is None else replace(named, chat=Chat.of(chat)),
            ranking=Ranking.of(ranking or {}),
            min_similarity=min_similarity,
            is_raw=is_raw,
            explain=explain,
            expand=expand,
        )

        def found(read_model: ReadModel) -> SearchResult:
            embedder, silent = (None, {}) if mode == "text" else read_model.model.embedder_or_why()
            db, synced = read_model.latest(sync=sync, embedder=embedder, silent=silent)
            if embedder is not None:
                name_pending(db, silent)
            result = search(db, asked, embedder, read_model.held_vectors)
            result.synced = synced
            result.silent |= silent
            return result

        result = self._reads.healed(found)
        result.took_ms = round((time.perf_counter() - started) * 1000, 3)
        return result

    def context(
        self,
        text: str,
        *,
        chat: ChatName | None = None,
        max_tokens: int = 4000,
        counter: "Counter" = "model",
        form: "Form" = "text",
        limit: int = 5,
        passages: int = 20,
        min_salience: float = 0.3,
        exclude: Iterable[str] = (),
        record: bool = True,
        explain: bool = False,
        sync: bool = True,
    ) -> "Context":
        """What an agent should know now to answer the message `text`, in at most `max_tokens`: the core
        memory, facts, memories, passages of conversations, summaries, the chat's window. `Context.text` is
        all of it as it is printed.

        chat: (channel, chat_id), whose window is given, without the message that asks. Passages and summaries
            are of it alone, facts and memories of it or of no chat; without one they are of any.
        counter: `model`, tokens of the shipped vocabulary; `chars4`, characters // 4; `heuristic`, Chinese
            characters × 1.5 and words × 0.75.
        form: `text`, `json`, or `messages` as a language model is sent them.
        limit, passages: memories and passages of messages at most.
        min_salience: leave out memories that have faded below it.
        exclude: ids of events, memories or documents.
        record: append that the memories were given: one `memory_accessed`. Where that fails, the context says
            why in `unrecorded`.
        explain: look for memories that have faded, too, so that `left_out` has them.
        sync: as in `search`.

        Where the search fails, core memory and window are given, and `silent` says why.

        Raises:
            BadInput: a value is out of its range, or the message empty.
            NotFound: the store has events, and none of this chat.
            DatabaseError: the read model cannot be read, nor made anew.
        """
        from memlog.query.context.request import Asking

        asked = Asking(
            text,
            chat=_named(chat),
            max_tokens=max_tokens,
            counter=counter,
            form=form,
            limit=limit,
            passages=passages,
            min_salience=min_salience,
            exclude=ids(exclude),
            explain=explain,
        )
        return self._contexts.give(asked, record=record, sync=sync)

    def window(
        self,
        chat: ChatName,
        chat_id: str | None = None,
        *,
        last: int | None = None,
        tokens: int | None = None,
        across_sessions: bool = False,
    ) -> Window:
        """The newest messages of a chat's current session, oldest first.

        last: at most so many (50 where neither is given). tokens: only whole messages that together fit.
        across_sessions: those of earlier sessions, too.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        named = _chat_of(chat, chat_id)
        return self._read(
            lambda db: window(db, named, last=last, tokens=tokens, across_sessions=across_sessions)
        )

    def session_content(
        self,
        chat: ChatName,
        chat_id: str | None = None,
        *,
        last: int | None = None,
        tokens: int | None = None,
        across_sessions: bool = False,
    ) -> SessionContent:
        """What was said in a chat's current session, as one text; all of it where no limit is given.

        last: its newest so many messages. tokens: as many of its newest messages as fit whole.
        across_sessions: what was said in earlier sessions, too.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        named = _chat_of(chat, chat_id)
        return self._read(
            lambda db: session_content(db, named, last=last, tokens=tokens, across_sessions=across_sessions)
        )

    def sessions(self, chat: ChatName | None = None, *, all: bool = False) -> list[Session]:
        """The current session of each chat, or of one (channel, chat_id); what began last comes first.

        all: their earlier sessions, too.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        named = _named(chat)
        return self._read(lambda db: sessions(db, named, is_all=all))

    def summaries(self, chat: ChatName | None = None) -> list[Summary]:
        """Every summary, or those of one chat (channel, chat_id), in the order in which they were written.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        named = _named(chat)
        return self._read(lambda db: summaries(db, named))

    def get(self, name: str, *, stream: str | None = None, around: int = 0) -> Stored | None:
        """The event of the id `name`; else the one that says what the memory or the document (`source/file`)
        `name` says; None where none does.

        around: give a message with so many others of its session on either side, at most 100.

        Raises:
            BadInput: several streams have an event of this id, and `stream` names none of them; no such
                `around`.
        """
        check_neighbours(around)
        return self._read(lambda db: provenance.stored(db, self._log.path, name, stream, neighbours=around))

    def quarantine(self) -> list[QuarantinedLine]:
        """Every line of the log that could not be projected."""
        return self._read(lambda db: provenance.quarantine(db))

    def explain(self, line: QuarantinedLine) -> str:
        """Why a line is quarantined, and what can be done, for people."""
        return provenance.explanation(self._log.path, line)

    def status(self) -> Status:
        """What stands in the store, and what works here. Does not catch up."""
        return self._reads.healed(status_of)

    def stats(self) -> Stats:
        """Count what stands in the store, how large it is, and how far behind the read model was."""
        return self._reads.healed(stats_of)

    def verify(self, *, progress: Progress | None = None) -> "Verification":
        """Check the log and its seals, the cache, and the read model, as far as it has come, beside a replay.

        Changes nothing.

        Raises:
            LogError: the log cannot be read.
        """
        from memlog.service.maintenance.verify import verify_store

        check_store(self.path)
        with self._read_model.mutex:
            return verify_store(self._read_model, progress)

    def examine(self, *, fix: bool = False) -> "list[Finding]":
        """Look at the store and this machine, and say what to do where something is not as it should be.

        fix: make the read model and the cache anew where they are damaged, and take permissions from others.

        Raises:
            OSError: the store cannot be read.
        """
        from memlog.service.maintenance.doctor import examine

        with self._read_model.mutex:
            return examine(self._read_model, fix=fix)

    def digest(self, *, content: bool = False) -> str:
        """sha256 over every row of the read model, in hex: equal wherever the log and the projection id are.

        content: leave out where events stand and when they were appended: equal wherever logs say the same.
        """

        def taken(read_model: ReadModel) -> str:
            db, synced = read_model.latest()
            if not synced:
                read_model.notify("the read model may be behind the log")
            return digest(db, content=content)

        return self._reads.healed(taken)


def _named(chat: ChatName | None) -> Chat | None:
    return None if chat is None else Chat.of(chat)


def _chat_of(chat: ChatName, chat_id: str | None) -> Chat:
    """chat_id: given by callers of an older memlog, with the channel alone before it."""
    if chat_id is None:
        return Chat.of(chat)
    return Chat.of((chat, chat_id) if isinstance(chat, str) else chat)


def open(
    path: str | Path,
    *,
    model: str | Path | None = None,
    durability: Durability = "fsync",
    lock_timeout: float = 10.0,
    chunk_sizes: ChunkSizes | None = None,
    redact: bool = False,
    document_seconds: int = 60,
    notify: Callable[[str], None] = _ignore,
    on_stored: OnStored | None = None,
) -> Store:
    """The store in the folder `path`; see `Store`."""
    return Store(
        Path(path),
        model=None if model is None else Path(model),
        durability=durability,
        lock_timeout=lock_timeout,
        chunk_sizes=chunk_sizes,
        redact=redact,
        document_seconds=document_seconds,
        notify=notify,
        on_stored=on_stored,
    )
