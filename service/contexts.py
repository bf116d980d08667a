"""Gives agents their contexts, and records which memories were given."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from memlog.eventlog.errors import DatabaseError, EmbeddingError, MemlogError
from memlog.eventlog.events import MemoryAccessed
from memlog.eventlog.writer import Log
from memlog.projector.sqlite import Connection, transaction
from memlog.query.context.compose import Context, compose
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits, asking_message, find
from memlog.query.context.scope import scope_of
from memlog.query.event_index import Key
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.searches import OFF, Asking, latest_for_search, reranker_of


def context(reads: ReadPool, log: Log, asked: BuildContext) -> Context:
    """The context for a message.

    log: where accesses are recorded.
    """
    started = time.perf_counter()
    if reads.first.is_off:
        return _nothing(asked)
    try:
        if asked.part == "stable":
            return reads.healed(lambda read_model: _composed(read_model, asked, ContextHits()))
        asking = Asking(reads.first, asked.text)
        given = reads.healed(lambda read_model: _searched(read_model, asked, asking))
    except (DatabaseError, EmbeddingError) as error:
        found = ContextHits(silent={"search": error.message})
        given = reads.healed(lambda read_model: _composed(read_model, asked, found))
    if asked.record and given.memory_ids:
        try:
            log.append([MemoryAccessed(memory_ids=given.memory_ids)])
        except MemlogError as error:  # the read goes on
            given.unrecorded = error.message
    given.took_ms = round((time.perf_counter() - started) * 1000, 3)
    return given


def _nothing(asked: BuildContext) -> Context:
    return Context(
        text="",
        form=asked.form,
        counter=asked.counter,
        max_tokens=asked.max_tokens,
        tokens=0,
        frame=0,
        entries=[],
        left_out=[],
        silent=dict(OFF),
        synced=True,
    )


def _searched(read_model: ReadModel, asked: BuildContext, question: Asking) -> Context:
    db, synced, embedder, silent = latest_for_search(read_model, question, is_synced=asked.sync)

    def found(asked: BuildContext, asking: Key | None) -> ContextHits:
        hits = find(db, asked, embedder, asking, reranker_of(read_model, lambda ask: ask(db)))
        hits.silent.update(silent)
        return hits

    return _made(db, asked, found, synced=synced)


def _composed(read_model: ReadModel, asked: BuildContext, found: ContextHits) -> Context:
    db, synced = read_model.latest(sync=asked.sync)
    return _made(db, asked, lambda _, asking: replace(found, asking=asking), synced=synced)


def _made(
    db: Connection,
    asked: BuildContext,
    hits: Callable[[BuildContext, Key | None], ContextHits],
    *,
    synced: bool,
) -> Context:
    # One state of the read model: a second person may speak between the choice of the scope and the search.
    with transaction(db, "DEFERRED"):
        scope, why = scope_of(db, asked, synced=synced)
        asked = replace(asked, scope=scope)
        given = compose(db, asked, hits(asked, asking_message(db, asked)), synced=synced)
    given.scope, given.scope_why = scope, why
    return given
