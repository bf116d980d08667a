"""Gives agents their contexts, and records which memories were given."""

import time

from memlog.eventlog.errors import DatabaseError, EmbeddingError, MemlogError
from memlog.eventlog.events import MemoryAccessed
from memlog.eventlog.writer import Log
from memlog.query.context.compose import Context, compose
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits, find, without_the_question
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.searches import latest_for_search


def context(reads: ReadPool, log: Log, asked: BuildContext) -> Context:
    """The context for a message.

    log: where accesses are recorded.
    """
    started = time.perf_counter()
    try:
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
    asked = without_the_question(db, asked)
    found = find(db, asked, embedder)
    found.silent.update(silent)
    return compose(db, asked, found, synced=synced)


def _composed(read_model: ReadModel, asked: BuildContext, found: ContextHits) -> Context:
    db, synced = read_model.latest(sync=asked.sync)
    return compose(db, without_the_question(db, asked), found, synced=synced)
