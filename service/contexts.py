"""Gives agents their contexts, and records what was given."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from memlog.eventlog.errors import DatabaseError, EmbeddingError, MemlogError
from memlog.eventlog.events import MemoryAccessed
from memlog.eventlog.store_key import key_of, keyed_hash
from memlog.eventlog.writer import Log
from memlog.projector.sqlite import Connection, transaction
from memlog.query.context.compose import Context, compose
from memlog.query.context.given import GivenContext, given_of
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits, asking_message, find
from memlog.query.context.scope import scope_of
from memlog.query.event_index import Key
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.searches import OFF, Asking, latest_for_search, reranker_of

_Made = tuple[Context, GivenContext | None]
"""A context, and what is to be recorded of it."""


def context(reads: ReadPool, log: Log, asked: BuildContext) -> Context:
    """The context for a message.

    log: where it is recorded what was given.
    """
    started = time.perf_counter()
    if reads.first.is_off:
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
    try:
        if asked.part == "stable":
            return reads.healed(lambda read_model: _composed(read_model, asked, ContextHits()))[0]
        asking = Asking(reads, asked.text, chat=asked.conversation, is_synced=asked.sync)
        given, said = reads.healed(lambda read_model: _searched(read_model, asked, asking))
    except (DatabaseError, EmbeddingError) as error:
        found = ContextHits(silent={"search": error.message})
        given, said = reads.healed(lambda read_model: _composed(read_model, asked, found))
    if said is not None:
        try:
            _record(log, given.memory_ids, said)
        except MemlogError as error:  # the read goes on
            given.unrecorded = error.message
    given.took_ms = round((time.perf_counter() - started) * 1000, 3)
    return given


def _record(log: Log, memory_ids: list[str], said: GivenContext) -> None:
    key = key_of(log.store)
    given = said.event
    given.stable, given.turn = (block and keyed_hash(key, block) for block in (said.stable, said.turn))
    log.append([*([MemoryAccessed(memory_ids=memory_ids)] if memory_ids else []), given])


def _searched(read_model: ReadModel, asked: BuildContext, question: Asking) -> _Made:
    db, synced, models, silent = latest_for_search(read_model, question, is_synced=asked.sync)

    def found(asked: BuildContext, asking: Key | None) -> ContextHits:
        rerank = reranker_of(read_model, lambda ask: ask(db), has_key=question.has_key)
        hits = find(db, asked, models, asking, read_model.sample, rerank)
        hits.silent.update(silent)
        return hits

    return _made(read_model, db, asked, found, synced=synced)


def _composed(read_model: ReadModel, asked: BuildContext, found: ContextHits) -> _Made:
    db, synced = read_model.latest(sync=asked.sync)
    return _made(read_model, db, asked, lambda _, asking: replace(found, asking=asking), synced=synced)


def _made(
    read_model: ReadModel,
    db: Connection,
    asked: BuildContext,
    hits: Callable[[BuildContext, Key | None], ContextHits],
    *,
    synced: bool,
) -> _Made:
    # One state of the read model: a second person may speak between the choice of the scope and the search.
    with transaction(db, "DEFERRED"):
        chosen = scope_of(db, asked, read_model.people, synced=synced)
        asked = replace(asked, scope=chosen.scope, joined=chosen.joined)
        asking = asking_message(db, asked)
        given = compose(db, asked, hits(asked, asking), synced=synced)
        is_recorded = asked.record and asked.part != "stable" and given.entries
        said = given_of(db, asked, given, asking) if is_recorded else None
    given.scope, given.scope_why = chosen.scope, chosen.why
    return given, said
