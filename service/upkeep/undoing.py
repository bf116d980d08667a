"""Undoes imports: their events, and the events derived from them, no longer count."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog import events as ev
from memlog.eventlog.codec.content_ids import derive_memory_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import CONVERSATIONS, IMPORT_LOCK
from memlog.eventlog.log.reader import LogEntry, read_entries_in_log_order, select_segments
from memlog.eventlog.log.streams import conversation_stream
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.imports import Key
from memlog.query import imports
from memlog.query.imports import ImportRun
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import make_not_found_error
from memlog.service.exchange.formats import is_imported

_MAX_NAMED = 3

_DERIVED_IN = (ev.MemorySaved.STREAM, ev.CoreMemoryUpdated.STREAM, ev.FactStored.STREAM)
"""The streams with derived events, besides summaries in conversations."""


class ImportUndo(msgspec.Struct, kw_only=True):
    """The result of undoing an import or, in a dry run, the expected result.

    events: how many of its events, including chat descriptions, no longer count.
    derived: how many events that were derived from them no longer count.
    kept: the messages and memories that stay because something else has changed them since.
    met_by: later imports of other sources that met some of the events.
    erased: whether the events were also forgotten, so that they cannot be imported again.
    """

    run: str
    formats: list[str]
    paths: list[str]
    events: int
    derived: int
    kept: list[str]
    met_by: list[str]
    done: bool = False
    erased: bool = False


class _Plan(NamedTuple):
    """The outcome of undoing an import, and the events that it hides and keeps.

    is_undone: whether the import was undone before; its hidden events may still be erased.
    """

    report: ImportUndo
    hidden: set[Key]
    kept: set[Key]
    derived: set[Key]
    is_undone: bool


def undo_import(
    engine: Engine, run: str, *, anyway: bool, dry_run: bool, forget: Callable[[set[Key]], None] | None
) -> ImportUndo:
    """Undo an import; see `Erasure.undo_import`. forget: forgets the events for good."""
    # An import that runs would go on to append what this takes back.
    lock = holding_lock(engine.path / IMPORT_LOCK, "the import", engine.lock_timeout)
    with nullcontext() if dry_run else lock:
        plan = engine.decide(lambda db: _plan_undo(db, engine, run, may_be_undone=forget is not None))
        report = plan.report
        if report.met_by and not anyway:
            named = ", ".join(report.met_by[:_MAX_NAMED])
            raise BadInput(
                f"later imports of other sources met events of {run}: {named}",
                hint="undo these first, or undo it anyway: anyway=True",
            )
        if dry_run:
            return report
        kept, derived = imports.group_by_stream(plan.kept), imports.group_by_stream(plan.derived)
        if not plan.is_undone:
            engine.append([ev.ImportUndone(run=run, kept=kept, derived=derived)])
        if forget is not None:
            forget(plan.hidden | plan.derived)
            report.erased = True
        engine.decide(lambda _: None)  # the next read would take the time otherwise
        report.done = True
    return report


def _plan_undo(db: Connection, engine: Engine, run: str, *, may_be_undone: bool) -> _Plan:
    found = _find_import(db, run, may_be_undone=may_be_undone)
    events = {*imports.events_of_import(db, found.run)}
    changed = imports.changed_since(db, events, is_imported)
    kept = {key for keys in changed.values() for key in keys}
    hidden = imports.hidden_among(db, events - kept) if found.is_undone else events - kept
    derived, memories = _find_derived_events(engine.log_path, hidden)
    edited = imports.changed_since(db, derived, is_imported)
    own = {name: keys for name, keys in edited.items() if name in memories}
    derived -= {key for keys in own.values() for key in keys}
    report = ImportUndo(
        run=found.run,
        formats=found.formats,
        paths=found.paths,
        events=len(hidden),
        derived=len(derived),
        kept=sorted({*changed, *own}),
        met_by=[] if found.is_undone else imports.imports_that_met(db, found.run, events),
    )
    return _Plan(report, hidden, kept, derived, found.is_undone)


def _find_import(db: Connection, run: str, *, may_be_undone: bool) -> ImportRun:
    known = {each.run: each for each in imports.list_imports(db)}
    if run not in known:
        raise make_not_found_error("import_not_found", run)
    if known[run].is_undone and not may_be_undone:
        raise BadInput(f"the import {run} was undone before", hint="import again to bring its events back")
    return known[run]


class _Derivation(NamedTuple):
    """An event that was derived from others, or that closes such an extraction.

    extraction: the id of its extraction. sources: the events that it was derived from.
    memories: the ids of memories that it was derived from. memory: the id of the memory that it saves.
    """

    key: Key
    extraction: str | None
    sources: frozenset[Key]
    memories: frozenset[str] = frozenset()
    memory: str | None = None


def _find_derived_events(log: Path, hidden: set[Key]) -> tuple[set[Key], set[str]]:
    """Return the events derived, directly or indirectly, from hidden ones, and the memories that they save.

    The whole extraction goes, even if it had other sources: these are distilled again.
    """
    streams = {*_DERIVED_IN, *(stream for stream, _ in hidden)}
    entries = [each for stream in sorted(streams) for each in _entries_of(log, stream)]
    derivations = [each for entry in entries if (each := _to_derivation(entry)) is not None]
    # A fact without a chat names its message by id alone.
    gone = hidden | {(CONVERSATIONS, name) for stream, name in hidden if stream.startswith(CONVERSATIONS)}
    memories, extractions = _memories_saved_only_by(entries, hidden), set[str]()
    found, saved = set[Key](), set[str]()
    while True:
        new = [
            each
            for each in derivations
            if each.key not in gone
            and (each.extraction in extractions or each.sources & gone or each.memories & memories)
        ]
        if not new:
            return found, saved
        found |= {each.key for each in new}
        gone |= found
        saved |= {each.memory for each in new if each.memory is not None}
        memories |= saved
        extractions |= {each.extraction for each in new if each.extraction is not None}


def _entries_of(log: Path, stream: str) -> Iterator[LogEntry]:
    for entry in read_entries_in_log_order(select_segments(log, stream=stream)):
        is_plain = isinstance(entry.event, ev.Message) or not isinstance(entry.event, ev.Event)
        if not is_plain:
            yield entry


def _memories_saved_only_by(entries: list[LogEntry], events: set[Key]) -> set[str]:
    """Return the memories that are saved by `events` and by no other entries."""
    own, others = set[str](), set[str]()
    for entry in entries:
        if isinstance(entry.event, ev.MemorySaved):
            (own if entry.redaction_key in events else others).add(_memory_of(entry.event))
    return own - others


def _memory_of(event: ev.MemorySaved) -> str:
    return event.memory_id or derive_memory_id(event.chat_id, event.content)


def _to_derivation(entry: LogEntry) -> _Derivation | None:
    event, key = entry.event, entry.redaction_key
    match event:
        case ev.MemoriesExtracted():
            return _Derivation(key, event.id, _keys_of_messages(event.chat_id, event.message_ids))
        case ev.DailyEventsCompressed():
            return _Derivation(key, event.id, _keys_of_changes(event.ids))
        case ev.MemoriesMerged() | ev.ProfileRefreshed():
            return _Derivation(key, event.id, _keys_of_changes(event.event_ids))
        case ev.FactStored() if event.source_message_id is not None:
            told_by = [event.source_message_id]
            sources = (
                frozenset((CONVERSATIONS, name) for name in told_by)
                if event.chat_id is None
                else _keys_of_messages(event.chat_id, told_by)
            )
            return _Derivation(key, None, sources)
    extraction = getattr(event, "extraction", None)
    if extraction is None:
        return None
    saved = _memory_of(event) if isinstance(event, ev.MemorySaved) else None
    sources = _keys_of_messages(extraction.chat_id, extraction.message_ids)
    return _Derivation(key, extraction.id, sources, frozenset(extraction.memory_ids), saved)


def _keys_of_changes(ids: list[str]) -> frozenset[Key]:
    return frozenset((ev.MemorySaved.STREAM, name) for name in ids)


def _keys_of_messages(chat: str | None, ids: list[str]) -> frozenset[Key]:
    if chat is None:
        return frozenset()
    return frozenset((conversation_stream(*Chat.of(chat)), name) for name in ids)
