"""The state, counts and sizes of a store, and which parts work on this machine."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.files import disk
from memlog.eventlog.log.layout import CACHE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.sections import LanguageModelProvider
from memlog.projector import catchup
from memlog.projector.embedding.fill import list_names_of_texts_set_aside
from memlog.projector.lifecycle import Generations
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import (
    Connection,
    converting_errors,
    count_rows,
    describe_binding,
    is_file_of_wal,
    measure_database,
    transaction,
    version_of_sqlite_vec,
)
from memlog.query import records
from memlog.query.buffer import SetAside, failures_of_today
from memlog.query.conflicts import MOST_OPEN, count_open_conflicts
from memlog.query.records import why_clock_is_doubted
from memlog.service.engine.http_client import Breaker, ProviderState, count_failures_of_role
from memlog.service.engine.read_model import ReadModel, report_missing_vectors
from memlog.service.engine.requests import PRUNED
from memlog.service.retrieval.search import provider_states
from memlog.service.upkeep.doctor import ask_embedder, why_multilingual_is_needed


class Status(msgspec.Struct, kw_only=True):
    """The state of a store, and which parts work on this machine.

    generation: the file of the read model; None if there is none.
    unread_bytes: bytes of the log that the read model has not read.
    nul_runs: runs of NUL bytes around lines, left by a power cut.
    plain_texts: events too long for structured indexing; full-text search finds them.
    vector_model: the model of the vectors in the read model; None if it has no vector table.
    sqlite: the binding and its version; one that loads extensions is preferred.
    sqlite_vec: the extension's version; None if it does not work.
    model, dimension: the working embedding model and its dimension; None if no model works.
    multilingual_model: the model of the `multilingual` extra; None if it is not installed or does not work.
    vectors_set_aside: names of texts that a model could not embed today: full-text search finds them, and
        they are retried another day.
    providers: the state of the embedding and rerank providers.
    set_aside: requests that are not sent to the language model again before tomorrow (UTC).
    memory_conflicts: conflicts that wait for a person; memory_conflicts_queued: conflicts queued behind them.
    silent: the parts of searches and jobs that do not work, and why: `vector`, `multilingual`, `pending`,
        `prune`.
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
    nul_runs: int
    plain_texts: int
    duplicates: int
    conflicts: int
    memory_conflicts: int
    memory_conflicts_queued: int
    vectors_pending: int
    vectors_set_aside: list[str]
    vector_model: str | None
    sqlite: str
    sqlite_vec: str | None
    model: str | None
    dimension: int | None
    multilingual_model: str | None
    providers: list[ProviderState]
    set_aside: list[SetAside]
    silent: dict[str, str]


def read_status(language_model: LanguageModelProvider | None, read_model: ReadModel) -> Status:
    """Return a store's state, without catching up with the log."""
    projector = read_model.projector
    (embedder, multilingual), silent = read_model.model.load_models_or_why()
    if multilingual is not None and (problem := ask_embedder(multilingual)):
        multilingual, silent["multilingual"] = None, problem.message
    db, _ = read_model.connect_to_latest(sync=False)
    current = projector.generations.find_live_file()
    with converting_errors("the read model"):
        if embedder is not None or multilingual is not None:
            report_missing_vectors(db, silent)
        if (missing := why_multilingual_is_needed(db, read_model.model)) is not None:
            silent["multilingual"] = missing
        if embedder is not None and (reason := vectors.why_incomparable(db, embedder)):
            silent["vector"] = reason
        if doubt := why_clock_is_doubted(db, timestamps.now(), PRUNED):
            silent["prune"] = doubt
        unsettled = count_open_conflicts(db)
        providers, set_aside = [*provider_states(read_model)], []
        if language_model is not None:
            providers.append(Breaker(read_model.path, "language_model", language_model).read_state())
            set_aside = failures_of_today(db, language_model.place, language_model.name).requests_set_aside()
        return Status(
            store=escape_invalid_utf8(read_model.path),
            generation=current.name if current else None,
            projection_id=catchup.compute_projection_id(projector.sizes),
            unread_bytes=catchup.count_unread_bytes(db, projector.log),
            events=count_rows(db, "events"),
            messages=count_rows(db, "messages WHERE type <> 'session_break'"),
            memories=count_rows(db, "memories"),
            streams=count_rows(db, "(SELECT DISTINCT stream FROM checkpoints)"),
            quarantined=count_rows(db, "quarantine"),
            nul_runs=count_rows(db, "nul_runs"),
            plain_texts=count_rows(db, "plain_texts"),
            duplicates=count_rows(db, "duplicates"),
            conflicts=count_rows(db, "conflicts"),
            memory_conflicts=min(unsettled, MOST_OPEN),
            memory_conflicts_queued=max(unsettled - MOST_OPEN, 0),
            vectors_pending=index.count_pending_passages_of_all_sets(db),
            vectors_set_aside=list_names_of_texts_set_aside(db, read_model.path),
            vector_model=vectors.read_model_of_vectors(db),
            sqlite=describe_binding(),
            sqlite_vec=version_of_sqlite_vec(db),
            model=embedder.id if embedder else None,
            dimension=embedder.dimension if embedder else None,
            multilingual_model=multilingual.id if multilingual else None,
            providers=providers,
            set_aside=set_aside,
            silent=silent,
        )


class Stats(msgspec.Struct, kw_only=True):
    """Counts and sizes of a store. Counts by name are sorted by name.

    synced: whether the read model has caught up with the log, so that everything is counted.
    unread_bytes, unread_lines: how much of the log was unread before the catch-up.
    events_by_type, events_by_day: events that count, by the UTC day on which they happened, excluding events
        of undone imports and lines about imports.
    messages_by_role, messages_by_chat: excluding session breaks; a chat is `<channel>:<chat_id>`.
    memories_by_category, memories_by_kind: including archived ones; memories_archived counts those.
    passages: passages in the search index. vectors, vectors_pending: how many have, or lack, a vector.
    log_bytes, model_bytes, cache_bytes: the sizes of the files in these folders.
    counters: `memory.saved.count`: saves; `memory.retrieved.count`: deliveries of a memory to an agent;
        `memory.extraction.count`, `.success`, `.errors`, `.tokens`: requests to a language model; the cache
        records their errors.
    """

    synced: bool
    unread_bytes: int
    unread_lines: int
    events_by_type: dict[str, int]
    events_by_day: dict[str, int]
    messages_by_role: dict[str, int]
    messages_by_chat: dict[str, int]
    memories_by_category: dict[str, int]
    memories_by_kind: dict[str, int]
    memories_archived: int
    passages: int
    vectors: int
    vectors_pending: int
    log_bytes: int
    model_bytes: int
    cache_bytes: int
    counters: dict[str, int]


def read_stats(read_model: ReadModel) -> Stats:
    """Return a store's statistics. The lag is measured before the read model catches up."""
    log = read_model.projector.log
    behind, _ = read_model.connect_to_latest(sync=False)
    unread_bytes, unread_lines = (
        catchup.count_unread_bytes(behind, log),
        catchup.count_unread_lines(behind, log),
    )
    db, synced = (behind, False) if read_model.is_read_only else read_model.connect_to_latest()
    errors = count_failures_of_role(read_model.path, "language_model")  # failed requests leave no event
    with transaction(db, "DEFERRED"):
        by_type = records.count_rows_by_column(db, "type", "counting_events")
        counters = records.count_for_monitoring(db, by_type)
        counters["memory.extraction.errors"] = errors
        counters["memory.extraction.count"] = counters["memory.extraction.success"] + errors
        messages = "messages WHERE type <> 'session_break'"
        return Stats(
            synced=synced,
            unread_bytes=unread_bytes,
            unread_lines=unread_lines,
            events_by_type=by_type,
            events_by_day=records.count_rows_by_column(db, "substr(ts, 1, 10)", "counting_events"),
            messages_by_role=records.count_rows_by_column(db, "role", messages),
            messages_by_chat=records.count_rows_by_column(db, "channel || ':' || chat_id", messages),
            memories_by_category=records.count_rows_by_column(db, "category", "memories"),
            memories_by_kind=records.count_rows_by_column(db, "kind", "memories"),
            memories_archived=count_rows(db, "memories WHERE archived_at IS NOT NULL"),
            passages=index.count_passages(db),
            vectors=sum(vectors.count_vectors(db, of) for of in vectors.SETS),
            vectors_pending=index.count_pending_passages_of_all_sets(db),
            log_bytes=_bytes_below(log),
            model_bytes=_bytes_of_model(read_model.projector.generations, db),
            cache_bytes=_bytes_below(read_model.path / CACHE),
            counters=counters,
        )


def _bytes_of_model(generations: Generations, live: Connection) -> int:
    """Return the size of the read model, whether or not another process has it open."""
    file = generations.find_live_file()
    others = (each for each in _files_below(generations.folder) if each != file)
    return measure_database(live) + sum(
        _size_or_zero(each) for each in others if not is_file_of_wal(each.name)
    )


def _bytes_below(folder: Path) -> int:
    return sum(map(_size_or_zero, _files_below(folder)))


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, files in os.walk(folder):
        yield from (Path(parent, name) for name in files)


def _size_or_zero(file: Path) -> int:
    """Return a file's size, or 0 if it has vanished."""
    with suppress(FileNotFoundError):
        return disk.status_of_path(file).st_size
    return 0
