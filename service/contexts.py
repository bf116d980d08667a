"""Gives agents their contexts, and records which memories were given."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from memlog.eventlog.errors import DatabaseError, EmbeddingError, MemlogError
from memlog.eventlog.events import MemoryAccessed
from memlog.eventlog.writer import Log
from memlog.projector.embedding.models import Embedder
from memlog.projector.sqlite import Connection
from memlog.query.context.compose import Context, compose
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits, find, without_the_question
from memlog.query.context.scope import scope_of
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.searches import latest_for_search


def context(reads: ReadPool, log: Log, asked: BuildContext) -> Context:
    """The context for a message.

    log: where accesses are recorded.
    """
    started = time.perf_counter()
    try:
        if asked.part == "stable":
            return reads.healed(lambda read_model: _composed(read_model, asked, ContextHits()))
        given = reads.healed(lambda read_model: _searched(read_model, asked))
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


def _searched(read_model: ReadModel, asked: BuildContext) -> Context:
    db, synced, embedder, silent = latest_for_search(read_model, is_synced=asked.sync)
    return _made(db, asked, lambda asked: _found(db, asked, embedder, silent), synced=synced)


def _found(
    db: Connection, asked: BuildContext, embedder: Embedder | None, silent: dict[str, str]
) -> ContextHits:
    found = find(db, asked, embedder)
    found.silent.update(silent)
    return found


def _composed(read_model: ReadModel, asked: BuildContext, found: ContextHits) -> Context:
    db, synced = read_model.latest(sync=asked.sync)
    return _made(db, asked, lambda _: found, synced=synced)


def _made(
    db: Connection, asked: BuildContext, hits: Callable[[BuildContext], ContextHits], *, synced: bool
) -> Context:
    scope, why = scope_of(db, asked, synced=synced)
    asked = replace(without_the_question(db, asked), scope=scope)
    given = compose(db, asked, hits(asked), synced=synced)
    given.scope, given.scope_why = scope, why
    return given
