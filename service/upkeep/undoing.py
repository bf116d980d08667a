"""Takes imports back: their events, and what was derived from these, no longer count."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog import events as ev
from memlog.eventlog.codec.content_ids import derive_memory_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat
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
"""Streams with derived events, besides summaries in conversations."""


class ImportUndo(msgspec.Struct, kw_only=True):
    """What undoing an import takes back or, in a dry run, would.

    events: the number of its events, with descriptions of chats, that no longer count.
    derived: the number of events that were derived from them, and no longer count either.
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
    """The outcome of undoing an import, and the events that it hides and keeps."""

    report: ImportUndo
    hidden: set[Key]
    kept: set[Key]
    derived: set[Key]


def undo_import(
    engine: Engine, run: str, *, anyway: bool, dry_run: bool, forget: Callable[[set[Key]], None] | None
) -> ImportUndo:
    """Undo an import; see `Erasure.undo_import`. forget: forgets the events for good."""
    plan = engine.decide(lambda db: _plan_undo(db, engine, run))
    report = plan.report
    if report.met_by and not anyway:
        named = ", ".join(report.met_by[:_MAX_NAMED])
        raise BadInput(
            f"later imports of other sources met events of {run}: {named}",
            hint="undo these first, or undo it anyway: anyway=True",
        )
    if dry_run:
        return report
    undone = ev.ImportUndone(
        run=run, kept=imports.group_by_stream(plan.kept), derived=imports.group_by_stream(plan.derived)
    )
    engine.append([undone])
    if forget is not None:
        forget(plan.hidden | plan.derived)
        report.erased = True
    engine.decide(lambda _: None)  # the next read would take the time otherwise
    report.done = True
    return report


def _plan_undo(db: Connection, engine: Engine, run: str) -> _Plan:
    found = _find_import(db, run)
    events = {*imports.events_of_import(db, found.run)}
    changed = imports.changed_since(db, events, is_imported)
    kept = {key for keys in changed.values() for key in keys}
    hidden = events - kept
    derived = _find_derived_events(engine.log_path, hidden)
    report = ImportUndo(
        run=found.run,
        formats=found.formats,
        paths=found.paths,
        events=len(hidden),
        derived=len(derived),
        kept=sorted(changed),
        met_by=imports.imports_that_met(db, found.run, events),
    )
    return _Plan(report, hidden, kept, derived)


def _find_import(db: Connection, run: str) -> ImportRun:
    known = {each.run: each for each in imports.list_imports(db)}
    if run not in known:
        raise make_not_found_error("import_not_found", run)
    if known[run].is_undone:
        raise BadInput(f"the import {run} was undone before", hint="import again to bring its events back")
    return known[run]


class _Derivation(NamedTuple):
    """An event that was derived from others, or that closes such an extraction.

    extraction: the id of its extraction. sources: the events that it was derived from.
    memories: the ids of memories that it was derived from. memory: that of the memory that it saves.
    """

    key: Key
    extraction: str | None
    sources: frozenset[Key]
    memories: frozenset[str] = frozenset()
    memory: str | None = None


def _find_derived_events(log: Path, hidden: set[Key]) -> set[Key]:
    """Return the events that were derived from hidden ones, also by several steps.

    The whole extraction goes, also if it had other sources: what these say is distilled again.
    """
    streams = {*_DERIVED_IN, *(stream for stream, _ in hidden)}
    entries = [each for stream in sorted(streams) for each in _entries_of(log, stream)]
    derivations = [each for entry in entries if (each := _to_derivation(entry)) is not None]
    gone, memories, extractions = {*hidden}, _memories_saved_only_by(entries, hidden), set[str]()
    found: set[Key] = set()
    while True:
        new = [
            each
            for each in derivations
            if each.key not in gone
            and (each.extraction in extractions or each.sources & gone or each.memories & memories)
        ]
        if not new:
            return found
        found |= {each.key for each in new}
        gone |= found
        memories |= {each.memory for each in new if each.memory is not None}
        extractions |= {each.extraction for each in new if each.extraction is not None}


def _entries_of(log: Path, stream: str) -> Iterator[LogEntry]:
    for entry in read_entries_in_log_order(select_segments(log, stream=stream)):
        is_plain = isinstance(entry.event, ev.Message) or not isinstance(entry.event, ev.Event)
        if not is_plain:
            yield entry


def _memories_saved_only_by(entries: list[LogEntry], events: set[Key]) -> set[str]:
    """Return the memories that some of the events save, and that nothing else saves."""
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
            return _Derivation(key, None, _keys_of_messages(event.chat_id, [event.source_message_id]))
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
