"""A store: append, project, search, read. What the command line and Python programs call."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from memlog.eventlog.errors import Busy, DatabaseError, EmbeddingError, LogError
from memlog.eventlog.events import Event, Redacted
from memlog.eventlog.log import Durability, Log, Position
from memlog.eventlog.streams import shown
from memlog.projector import catchup, passages, schema, vectors
from memlog.projector.catchup import Progress
from memlog.projector.chunking import ChunkSizes
from memlog.projector.digest import digest
from memlog.projector.embedding import Embedder, Model, bundled_model, load_embedder
from memlog.projector.projector import EMBED_BATCH, Embedded, Projection, Projector
from memlog.projector.sqlite import Connection, count_rows, described, vec_version, why_no_vectors, wrapped
from memlog.projector.verify import Verification, verify
from memlog.query import provenance
from memlog.query.filters import Filters
from memlog.query.provenance import QuarantinedLine, Stored
from memlog.query.search import DEPTH, Mode, SearchResult, search
from memlog.query.sessions import Session, sessions
from memlog.query.summaries import Summary, summaries
from memlog.query.window import Window, window
from memlog.service.core import Core
from memlog.service.documents import Documents
from memlog.service.memories import Memories

_QUERY_LOCK_TIMEOUT = 0.25
_QUERY_EMBEDDINGS = 16


class ProjectReport(msgspec.Struct, kw_only=True):
    """What a projection did.

    events, duplicates, conflicts, quarantined: lines that were read now, by what became of them.
    rows: events in the read model.
    vectors_computed, vectors_cached, vectors_pending: passages.
    rebuilt: why everything was read from scratch; None where the read model was read on.
    notes: what a person should know: streams whose history was rewritten, files that are no segments.
    silent: what did not work, and why.
    """

    events: int
    rows: int
    duplicates: int
    conflicts: int
    quarantined: int
    vectors_computed: int
    vectors_cached: int
    vectors_pending: int
    rebuilt: str | None
    notes: list[str]
    silent: dict[str, str]
    seconds: float


class EmbedReport(msgspec.Struct, kw_only=True):
    """What became of passages without a vector: how many the model `computed` one for, the cache had one for
    (`cached`), and still have none (`pending`).
    """

    computed: int
    cached: int
    pending: int


class Status(msgspec.Struct, kw_only=True):
    """What stands in a store, and what works here.

    generation: the file of the read model; None where none stands.
    unread_bytes: of the log, behind the read model.
    vector_model: the model that the read model's vectors are of; None where it has no room for any.
    sqlite: the binding and its version, the first here that loads extensions where one does.
    sqlite_vec: the version of the extension; None where it does not work.
    model, dimension: of the embedding model that works here; None where none does.
    silent: what would not take part in a search, and why: `vector`, `pending`.
    """

    store: str
    generation: str | None
    projection_id: str
    unread_bytes: int
    events: int
    messages: int
    memories: int
    streams: int
    quarantined: int
    duplicates: int
    conflicts: int
    vectors_pending: int
    vector_model: str | None
    sqlite: str
    sqlite_vec: str | None
    model: str | None
    dimension: int | None
    silent: dict[str, str]


def _ignore(_: str) -> None:
    pass


class Store:
    """One store. May be used from several threads; use it with `with`, or call `close`.

    documents: folders and files of text, see `Documents`.
    core: its core memory.

    path: its folder; made at the first append.
    model: a folder with `model.onnx` and `tokenizer.json`; None for the model that memlog ships with.
    durability: `fsync`, or `os`: an acknowledged event then survives the process but not a power cut.
    lock_timeout: seconds to wait for other writers and projectors.
    chunk_sizes: of passages. Another one makes another read model; all that use a store should agree on it.
    notify: called with what a person should know, such as that the read model was built anew.

    memories: what was kept beyond conversations; see `Memories`.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: Path | None = None,
        durability: Durability = "fsync",
        lock_timeout: float = 10.0,
        chunk_sizes: ChunkSizes | None = None,
        notify: Callable[[str], None] = _ignore,
    ) -> None:
        self.path = path
        self._log = Log(path, durability=durability, lock_timeout=lock_timeout)
        self._projector = Projector(path, chunk_sizes, lock_timeout=lock_timeout, model=self._model_here)
        self._model = model
        self._notify = notify
        self._embedder: Embedder | None = None
        self._no_embedder: EmbeddingError | None = None
        self._mutex = threading.RLock()
        self.documents = Documents(path, self.append, self._reading)
        self.memories = Memories(
            self._log.path, append=self.append, reading=self._reading, deciding=self._deciding
        )
        self.core = Core(self.append, self._reading, self._projector.core_view)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open. The store can be used again after it."""
        with self._mutex:
            self._projector.close()

    def append(self, events: Iterable[Event | dict[str, Any] | bytes]) -> list[Position]:
        """Append events (structs, dicts, or lines of JSON) and return where they stand, once durable.

        Raises:
            BadInput: an event cannot be stored; none was written.
            Busy: another writer held the stream for too long.
            LogError: the log could not be written. Safe to try again with the same ids.
        """
        return self._log.append([self._with_stream(event) for event in events])

    def stream_with(self, event_id: str) -> str:
        """The one stream that has an event of this id.

        Raises:
            NotFound: none has. BadInput: several have.
        """
        with self._reading() as db:
            return provenance.stream_with(db, event_id)

    def _with_stream(self, event: Event | dict[str, Any] | bytes) -> Event | dict[str, Any] | bytes:
        """A redaction goes where its target stands."""
        if isinstance(event, Redacted) and event.stream is None:
            return msgspec.structs.replace(event, stream=self.stream_with(event.target_id))
        return event

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
        started = time.monotonic()
        with self._mutex, wrapped("the read model"):
            self._make_folder()
            embedder, silent = self._embedder_or_why() if embed else (None, {})
            if from_scratch:
                done = self._projector.rebuild("asked for", progress=progress)
            else:
                done = self._projector.catch_up(progress=progress)
            embedded = self._embedded(embedder, silent, progress=progress) if embed else Embedded()
            db = self._projector.live()
            return ProjectReport(
                events=done.read.events,
                rows=count_rows(db, "events"),
                duplicates=done.read.duplicates,
                conflicts=done.read.conflicts,
                quarantined=done.read.quarantined,
                vectors_computed=embedded.computed,
                vectors_cached=embedded.cached + done.vectors_cached,
                vectors_pending=passages.count_pending(db),
                rebuilt=done.rebuilt,
                notes=done.read.notes,
                silent=silent,
                seconds=round(time.monotonic() - started, 3),
            )

    def embed(self, *, batch: int = EMBED_BATCH, progress: Progress | None = None) -> EmbedReport:
        """Catch up with the log, then give passages that have no vector one, in the order of their numbers.

        batch: how many passages are computed between two writes; what was written stays, whatever happens.

        Raises:
            EmbeddingError: no model works here, or it failed.
            Busy, DatabaseError: as `project`.
        """
        with self._mutex, wrapped("the read model"):
            embedder, silent = self._embedder_or_why()
            if embedder is None:
                raise self._no_embedder or EmbeddingError(silent["vector"])
            self._make_folder()
            caught_up = self._caught_up(progress=progress)
            done = self._projector.embed(embedder, batch=batch, progress=progress)
            return EmbedReport(
                computed=done.computed,
                cached=done.cached + caught_up.vectors_cached,
                pending=passages.count_pending(self._projector.live()),
            )

    def search(
        self,
        text: str,
        *,
        k: int = 10,
        mode: Mode = "hybrid",
        filters: Filters | None = None,
        min_similarity: float | None = None,
        is_raw: bool = False,
        explain: bool = False,
        depth: int = DEPTH,
        sync: bool = True,
    ) -> SearchResult:
        """The `k` messages, memories and documents that answer `text` best.

        min_similarity: leave out what only meaning finds and is less similar; None for nothing.
        is_raw: the full text takes `text` as FTS5's own syntax.
        explain: say of each hit which side found it, and how.
        depth: candidates that each side gives, and never fewer than `k`.
        sync: first catch up with the log, waiting at most 250 ms for another projector, and embed at most
            16 new passages; what could not be done is named in the result.

        Raises:
            BadInput: `is_raw`, and FTS5 does not understand it.
            DatabaseError: the read model cannot be read, nor made anew.
        """
        started = time.perf_counter()
        with self._mutex:
            embedder, silent = (None, {}) if mode == "text" else self._embedder_or_why()
            db, synced = self._reader(sync=sync, embedder=embedder, silent=silent)
            with wrapped("the read model"):
                if embedder is not None:
                    _name_pending(db, silent)
                result = search(
                    db,
                    text,
                    k=k,
                    mode=mode,
                    filters=filters or Filters(),
                    embedder=embedder,
                    min_similarity=min_similarity,
                    is_raw=is_raw,
                    explain=explain,
                    depth=depth,
                )
        result.synced = synced
        result.silent |= silent
        result.took_ms = round((time.perf_counter() - started) * 1000, 3)
        return result

    def window(
        self, channel: str, chat_id: str, *, last: int | None = None, tokens: int | None = None
    ) -> Window:
        """The newest messages of a chat's current session, oldest first.

        last: at most so many (50 where neither is given). tokens: only whole messages that together fit.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        with self._reading() as db:
            return window(db, (channel, chat_id), last=last, tokens=tokens)

    def sessions(self, chat: tuple[str, str] | None = None, *, all: bool = False) -> list[Session]:
        """The current session of each chat, or of one (channel, chat_id); what began last comes first.

        all: their earlier sessions, too.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        with self._reading() as db:
            return sessions(db, chat, is_all=all)

    def summaries(self, chat: tuple[str, str] | None = None) -> list[Summary]:
        """Every summary, or those of one chat (channel, chat_id), in the order in which they were written.

        Raises:
            NotFound: the store has events, and none of this chat.
        """
        with self._reading() as db:
            return summaries(db, chat)

    def get(self, name: str, *, stream: str | None = None) -> Stored | None:
        """The event of the id `name`; else the one that says what the memory or the document (`source/file`)
        `name` says; None where none does.

        Raises:
            BadInput: several streams have an event of this id, and `stream` names none of them.
        """
        with self._reading() as db:
            return provenance.stored(db, self._log.path, name, stream)

    def quarantine(self) -> list[QuarantinedLine]:
        """Every line of the log that could not be projected."""
        with self._reading() as db:
            return provenance.quarantine(db)

    def explain(self, line: QuarantinedLine) -> str:
        """Why a line is quarantined, and what can be done, for people."""
        return provenance.explanation(self._log.path, line)

    def status(self) -> Status:
        """What stands in the store, and what works here. Does not catch up."""
        with self._mutex:
            embedder, silent = self._embedder_or_why()
            db, _ = self._reader(sync=False)
            current = self._projector.generations.current()
            with wrapped("the read model"):
                if embedder is not None:
                    _name_pending(db, silent)
                    _name_unlike(db, embedder, silent)
                return Status(
                    store=shown(self.path),
                    generation=current.name if current else None,
                    projection_id=schema.projection_id(self._projector.sizes),
                    unread_bytes=catchup.unread_bytes(db, self._log.path),
                    events=count_rows(db, "events"),
                    messages=count_rows(db, "messages WHERE type <> 'session_break'"),
                    memories=count_rows(db, "memories"),
                    streams=count_rows(db, "(SELECT DISTINCT stream FROM checkpoints)"),
                    quarantined=count_rows(db, "quarantine"),
                    duplicates=count_rows(db, "duplicates"),
                    conflicts=count_rows(db, "conflicts"),
                    vectors_pending=passages.count_pending(db),
                    vector_model=vectors.model_of(db),
                    sqlite=described(),
                    sqlite_vec=vec_version(db),
                    model=embedder.id if embedder else None,
                    dimension=embedder.dimension if embedder else None,
                    silent=silent,
                )

    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Catch up, then compare the read model with a replay of the log."""
        with self._reading() as db:
            return verify(
                db, self._log.path, self._projector.sizes, read_only=self._is_read_only(), progress=progress
            )

    def digest(self, *, content: bool = False) -> str:
        """sha256 over every row of the read model, in hex: equal wherever the log and the projection id are.

        content: leave out where events stand and when they were appended: equal wherever logs say the same.
        """
        with self._mutex, wrapped("the read model"):
            db, synced = self._reader()
            if not synced:
                self._notify("the read model may be behind the log")
            return digest(db, content=content)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._mutex, wrapped("the read model"):
            yield self._reader()[0]

    @contextmanager
    def _deciding(self) -> Iterator[Connection]:
        """The read model as the log is now, to decide by: a writer waits rather than go by an older one."""
        with self._mutex, wrapped("the read model"):
            self._make_folder()
            self._caught_up()
            yield self._projector.live()

    def _reader(
        self,
        *,
        sync: bool = True,
        embedder: Embedder | None = None,
        silent: dict[str, str] | None = None,
    ) -> tuple[Connection, bool]:
        """The live generation, and whether it has come up to the log. Builds one where none can be read."""
        if self._is_read_only():
            return self._read_only_reader(), False
        self._make_folder()
        if not sync and self._projector.why_unusable() is None:
            return self._projector.live(), False
        try:
            self._caught_up(lock_timeout=_QUERY_LOCK_TIMEOUT)
            self._embedded(
                embedder,
                {} if silent is None else silent,
                limit=_QUERY_EMBEDDINGS,
                lock_timeout=_QUERY_LOCK_TIMEOUT,
            )
        except Busy:
            if self._projector.why_unusable() is not None:
                raise
            return self._projector.live(), False
        return self._projector.live(), True

    def _caught_up(
        self, *, lock_timeout: float | None = None, progress: Progress | None = None
    ) -> Projection:
        """Catch up with the log, and tell what a person should know of it."""
        done = self._projector.catch_up(lock_timeout=lock_timeout, progress=progress)
        if done.rebuilt:
            self._notify(f"{done.rebuilt}: built one from the log ({done.read.events} events)")
        for note in done.read.notes:
            self._notify(note)
        return done

    def _read_only_reader(self) -> Connection:
        """The live generation of a store that cannot be written, which stays as it is."""
        if self._projector.generations.current() is None:
            why: str | None = "there was no read model"
        else:
            db = self._projector.live(read_only=True)
            why = self._projector.why_unusable()
        if why is not None:
            raise DatabaseError(
                f"{why}, and {shown(self.path)} cannot be written to make one",
                hint="run memlog project as someone who may write there, or on a copy",
                code="cannot_create",
            )
        self._notify(f"{shown(self.path)} cannot be written: the read model stays as it is")
        return db

    def _embedded(
        self,
        embedder: Embedder | None,
        silent: dict[str, str],
        *,
        limit: int | None = None,
        lock_timeout: float | None = None,
        progress: Progress | None = None,
    ) -> Embedded:
        """Passages without a vector get one, where a model works; where it fails, `silent` says so."""
        if embedder is None:
            return Embedded()
        try:
            return self._projector.embed(embedder, limit=limit, lock_timeout=lock_timeout, progress=progress)
        except EmbeddingError as error:
            silent["vector"] = error.message
            return Embedded()

    def _embedder_or_why(self) -> tuple[Embedder | None, dict[str, str]]:
        """The embedding model; or None, and why there is none."""
        reason = why_no_vectors()
        if reason is None and self._embedder is None:
            try:
                self._embedder = load_embedder(self._model) if self._model else _bundled_embedder()
            except EmbeddingError as error:
                self._no_embedder = error
        reason = reason or (self._no_embedder.message if self._no_embedder else None)
        return (None, {"vector": reason}) if reason else (self._embedder, {})

    def _model_here(self) -> Model | None:
        """What is known of the embedding model without loading it, where that can be told."""
        if self._embedder is None and self._model is None:
            return bundled_model()
        return self._embedder_or_why()[0]

    def _make_folder(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot_create(error.strerror) from error
        if self._is_read_only():
            raise self._cannot_create("the folder cannot be written")

    def _is_read_only(self) -> bool:
        return self.path.is_dir() and not os.access(self.path, os.W_OK)

    def _cannot_create(self, why: str | None) -> LogError:
        return LogError(
            f"{shown(self.path)}: {why}",
            hint="name a folder that can be written with --store",
            code="cannot_create",
            retryable=False,
        )


def _name_pending(db: Connection, silent: dict[str, str]) -> None:
    if pending := passages.count_pending(db):
        silent["pending"] = f"{pending} passages have no vector yet: memlog project"


def _name_unlike(db: Connection, embedder: Embedder, silent: dict[str, str]) -> None:
    if reason := vectors.why_unlike(db, embedder):
        silent["vector"] = reason


def open(
    path: str | Path,
    *,
    model: str | Path | None = None,
    durability: Durability = "fsync",
    lock_timeout: float = 10.0,
    chunk_sizes: ChunkSizes | None = None,
    notify: Callable[[str], None] = _ignore,
) -> Store:
    """The store in the folder `path`; see `Store`."""
    return Store(
        Path(path),
        model=None if model is None else Path(model),
        durability=durability,
        lock_timeout=lock_timeout,
        chunk_sizes=chunk_sizes,
        notify=notify,
    )


@cache
def _bundled_embedder() -> Embedder:
    """One for all stores of a process: each takes 0.2 s to load and 260 MB."""
    return load_embedder()
