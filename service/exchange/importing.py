"""Imports a source's records as events, each once, and accounts for every record."""

import os
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.codec.content_ids import content_hash_without_openssl
from memlog.eventlog.codec.encode import Draft
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import (
    ChatDescribed,
    Event,
    EventsImported,
    MemorySaved,
    Message,
    type_name_of_event,
)
from memlog.eventlog.log.layout import STORE_KEY
from memlog.eventlog.log.streams import conversation_stream, escape_invalid_utf8, stream_of
from memlog.eventlog.positions import AppendWarning, Position, collect_warnings
from memlog.eventlog.secrets.detection import mask_keys, rewrite_texts
from memlog.eventlog.secrets.outgoing import compute_keyed_hash, load_or_create_store_key
from memlog.projector.catchup import Progress
from memlog.projector.disk_table import DiskTable
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.imports import Key, find_hidden_ids
from memlog.query import imports
from memlog.query.event_index import hashes_of_contexts_given
from memlog.query.memories import Memory, find_memory
from memlog.query.provenance import (
    edits_of_messages,
    find_id_suffixes,
    find_ids_with_prefix,
    forgotten_ids,
    ids_below_names,
    ids_in_use,
    line_places_of_ids,
)
from memlog.service.engine.engine import Engine
from memlog.service.engine.read_model import Answer, Ask
from memlog.service.exchange import alignment, holdings
from memlog.service.exchange.archives import Archive
from memlog.service.exchange.changes import (
    add_own_id,
    add_precedence,
    classify_change,
    is_unfilled,
    restoring_event,
    to_edit,
    to_stored_change,
)
from memlog.service.exchange.formats import ChosenSessions, Importer, Record, Skipped, Unreadable, Used
from memlog.service.exchange.holdings import Holding
from memlog.service.exchange.incoming import ImportedRecords, cut_given_contexts
from memlog.service.exchange.maps import RecordMap
from memlog.service.exchange.source import ForeignFiles, Tables

_HASH_LENGTH = 12
_RUN_BYTES = 4
_MAX_IDS = 20_000
"""The maximum number of ids of restored and met events in one log line."""

_MAX_EXAMPLES = 10

_FIRST = 5
"""The number of events shown in a dry run's report."""

_MAX_UNSYNCED = 20_000
"""How many events are synced together. A power cut may lose them, but the next import appends them again."""

_OPEN = ("known", "restored", "changed", "updated")
"""The outcomes of an event whose later changes may be imported."""

_Outcome = Literal["new", "known", "restored", "replaced", "changed", "updated", "forgotten", "refused"]
"""replaced: new content of a record whose import was undone."""


class ImportProblem(msgspec.Struct, frozen=True):
    """A record or event that was not stored. where: its name."""

    where: str
    why: str


class ImportReport(msgspec.Struct, kw_only=True):
    """The outcome of an import, for the records of the sources and for their events.

    found = used + sum of skipped + unreadable. events = appended + restored + known + updated + forgotten +
    refused. Chat descriptions are counted separately.

    run: the import's id, with which it can be undone; None if it changed nothing.

    project: the only project that was read, if a project was chosen. store: the folder of its store, if the
        import chose the store.
    skipped: the number of records, keyed by reason. unreadable: how many records and files. known: events
        that were stored before, and are not written again, even if they have `changed` in the source.
    restored: events of an undone import that count again.
    updated: events that change the content or the state of a message.
    described: how many chat descriptions were appended.
    forgotten: events that were forgotten, and do not come back. refused: events that the log rejects, and
        notes in a file whose other notes have moved or were forgotten, since they may be old notes.
    problems: with unreadable, refused and changed records. warnings: about appended events. At most ten each.
    unknown_columns: how many rows have a value in a column that is not imported, keyed by `table.column`.
    first: in a dry run, the first five events that would be appended.
    """

    format: str
    dry_run: bool
    run: str | None = None
    project: str | None = None
    store: str | None = None
    found: int = 0
    used: int = 0
    skipped: dict[str, int] = {}
    unreadable: int = 0
    events: int = 0
    appended: int = 0
    restored: int = 0
    known: int = 0
    changed: int = 0
    updated: int = 0
    described: int = 0
    forgotten: int = 0
    refused: int = 0
    types: dict[str, int] = {}
    problems: list[ImportProblem] = []
    warnings: list[AppendWarning] = []
    unknown_columns: dict[str, int] = {}
    prefixes: list[str] = []
    first: list[dict[str, Any]] = []


def draw_run_id() -> str:
    """Return a random import id."""
    return os.urandom(_RUN_BYTES).hex()


class _New(NamedTuple):
    """An event that is not in the log. drafted: the encoded event; None for a change."""

    event: Event
    drafted: Draft | None = None


class Importing:
    """One import of one or several sources.

    engine: the engine of the store, which may not exist yet. tables: reads databases. map: for `jsonl`.
    chosen: the only sessions to import; None for all. run: the id of the import; None for a random one.
    since: only files that changed at or after this time are imported; None for all.
    imported: the records that this process has already imported, which are skipped; None to skip none.
    """

    def __init__(
        self,
        report: ImportReport,
        engine: Engine,
        tables: Tables,
        progress: Progress | None,
        map: RecordMap | None = None,
        chosen: ChosenSessions | None = None,
        run: str | None = None,
        since: str | None = None,
        imported: ImportedRecords | None = None,
    ) -> None:
        self._imported = imported
        self._map, self._chosen, self._since = map, chosen, since
        self._report, self._engine, self._tables, self._progress = report, engine, tables, progress
        self._skipped: Counter[str] = Counter()
        self._tried: dict[str, Holding] = {}
        """The holdings that a dry run would have added to the log, keyed by id."""
        self._suffixes = {""}
        """The id suffixes of all sources in this format."""
        self._unsynced: list[Position] = []
        self._run = run or draw_run_id()

    def import_path(self, importer: Importer, path: Path, archive: Archive | None) -> None:
        """Import the sources at a path, or in the archive there; see `import_source`."""
        if archive is not None and (self._chosen is None or self._chosen.has_rest):
            deque(self._count_records(archive.problems), maxlen=0)
        patterns = importer.sources
        files = ForeignFiles(path, self._tables, archive=archive, since=self._since)
        for source in files.find_files(*patterns) if patterns else [path]:
            self.import_source(importer, source, archive)

    def import_source(self, importer: Importer, path: Path, archive: Archive | None) -> None:
        """Import a source in batches. A first pass identifies the source, unless its ids already do.

        Raises:
            Busy, LogError: as `Store.append`; earlier batches stay stored, and are recognised later.
        """
        prefix, project = self._report.format, self._report.project
        in_use = self._query_if_exists(lambda db: find_id_suffixes(db, f"{prefix}~", holdings.SUFFIX_LENGTH))
        self._suffixes.update(f"~{suffix}" for suffix in in_use or [])
        self._begins_empty = in_use is None
        if self._query_if_exists(lambda db: imports.is_undone(db, self._run)):
            self._run = draw_run_id()
        self._seen = DiskTable()
        """The content hashes of this source's events, keyed by id."""
        self._streams = self._query_if_exists(self._read_streams) or DiskTable()
        self._suffix = ""
        if not importer.has_unique_ids or len(self._suffixes) > 1:
            self._suffix = holdings.recognise_source(
                importer.read(self._open_source(path, archive)),
                prefix,
                sorted(self._suffixes),
                self._find_holdings,
            )
        if self._suffix:
            self._suffixes.add(self._suffix)
            self._report.prefixes = sorted({*self._report.prefixes, prefix + self._suffix})
        self._path = escape_invalid_utf8(path.absolute())
        self._of_others = self._query_if_exists(self._read_events_of_others) or DiskTable()
        """Events imported from other sources, and not yet recorded as met by this source."""
        self._hidden: dict[str, set[Key]] = {}
        """The hidden events of a batch, keyed by the id of their record."""
        self._restored: set[Key] = set()
        self._met: set[Key] = set()
        self._edits: Mapping[str, list[tuple[str, str]]] = {}
        """Earlier edits of messages, keyed by message id; see `_find_edits`."""
        self._moved: set[str | None] = set()
        """Groups of records whose places have changed."""
        self._doubtful: set[str | None] = set()
        """Groups whose last known record was forgotten: the next one may be that record, moved."""
        source = self._open_source(path, archive)
        ending = "" if project is None else f" of {project}"
        try:
            read = cut_given_contexts(importer.read(source), self._is_given)
            records = self._align(self._count_records(read))
            for batch in holdings.split_records(self._leave_out_imported(records)):
                self._import_batch(batch)
                if len(self._restored) + len(self._met) >= _MAX_IDS:
                    self._record_met_events()
                if self._progress is not None and source.done:
                    self._progress(f"bytes{ending} imported", source.done, source.size)
                elif self._progress is not None:
                    self._progress(f"records{ending} imported", self._report.found, self._report.found)
            self._record_met_events()
        finally:
            self._acknowledge()
        self._report.skipped = dict(sorted(self._skipped.items()))
        self._report.unknown_columns = dict(Counter(self._report.unknown_columns) + source.unknown)

    def _open_source(self, path: Path, archive: Archive | None) -> ForeignFiles:
        report, log = self._report, self._engine.log_path
        options = report.project, log, self._map, archive, self._is_stored, self._chosen, self._since
        return ForeignFiles(path, self._tables, self._suffix, *options)

    def _count_records(self, records: Iterable[Record]) -> Iterator[Used]:
        for record in records:
            self._report.found += 1
            if isinstance(record, Skipped):
                self._skipped[record.reason] += 1
                if record.events:
                    yield Used([*record.events], is_telling=False)
            elif isinstance(record, Unreadable):
                self._report.unreadable += 1
                self._add_problem(record.where, record.why)
            else:
                self._report.used += 1
                yield record

    def _leave_out_imported(self, records: Iterator[Used]) -> Iterator[Used]:
        for record in records:
            if self._imported is None or self._imported.add(str(self._engine.path), record):
                yield record
            else:
                count = sum(not isinstance(event, ChatDescribed) for event in record.events)
                self._report.events += count
                self._report.known += count

    def _align(self, records: Iterator[Used]) -> Iterator[Used]:
        """Yield records under the ids that the log has for them; see `alignment`."""
        if self._begins_empty:
            yield from records
            return
        for chunk in alignment.split_groups(records):
            lists, former = alignment.find_lists(chunk), alignment.find_former_ids(chunk)
            if not lists and not former:
                yield from chunk
                continue
            known, forgotten = self._engine.decide(
                partial(ids_below_names, streams=holdings.CHANGED_IN, names=sorted(lists))
            )
            names = dict.fromkeys((*(each.id for each in known), *(name for name, _ in forgotten)))
            ids = [*filter(alignment.is_of_list, names), *former]
            yield from alignment.align(chunk, self._find_holdings(ids, ids), self._moved)

    def _is_stored(self, stream: str, name: str) -> bool:
        """Whether a stream has an event with an id that is not hidden, or had one that was forgotten."""
        return name in self._tried or bool(
            self._query_if_exists(
                lambda db: (
                    {*line_places_of_ids(db, stream, [name])} - find_hidden_ids(db, stream, [name])
                    or forgotten_ids(db, stream, [name])
                )
            )
        )

    def _is_given(self, chat: str, block: str) -> bool:
        """Whether a block of text is a context that was given to the chat."""
        given = self._query_if_exists(lambda db: hashes_of_contexts_given(db, chat))
        return given is not None and compute_keyed_hash(self._key, block) in given

    def _query_if_exists(self, ask: Ask[Answer]) -> Answer | None:
        """Return the result of `ask` on the read model; None if there is no store yet."""
        return self._engine.decide(ask) if self._engine.exists else None

    @cached_property
    def _key(self) -> bytes:
        """The store's key, for hashing. A dry run does not create a key, but uses b"" if there is none."""
        path = self._engine.path
        return (
            load_or_create_store_key(path) if not self._report.dry_run or (path / STORE_KEY).exists() else b""
        )

    def _read_streams(self, db: Connection) -> DiskTable:
        """Return the streams that have imported events of the format, one per line, keyed by event id."""
        streams = DiskTable()
        for name, stream in find_ids_with_prefix(db, self._report.format):
            _add_stream(streams, name, stream)
        return streams

    def _read_events_of_others(self, db: Connection) -> DiskTable:
        found = DiskTable()
        for stream, name in imports.events_of_other_sources(db, self._report.format, self._path):
            found.add(f"{stream}\n{name}")
        return found

    def _find_holdings(self, ids: Sequence[str], changed: Collection[str]) -> dict[str, Holding]:
        """Return the log's holdings, keyed by id, for `ids`. changed: the ids that may have changes."""
        keys = [(name, stream) for name in ids for stream in _streams_of(self._streams, name)]

        def ask(db: Connection) -> dict[str, Holding]:
            return holdings.read_holdings(db, self._engine.log_path, keys, ids, changed)

        # What this import has appended of the source is needed only where the source repeats an id.
        if changed or any(name in self._seen for name in ids):
            found = self._query_if_exists(ask) or {}
        elif self._begins_empty:
            found = {}
        else:
            found = self._engine.reads.run_with_repair(
                lambda read_model: ask(read_model.connect_to_latest(sync=False)[0])
            )
        for name, hidden in self._find_hidden([(stream, each) for each, stream in keys]).items():
            if name in found:
                own = {key[1] for key in hidden}
                found[name].is_hidden, found[name].hidden_changes = name in own, own - {name}
        for name in self._tried.keys() & ids:
            found.setdefault(name, Holding()).add(self._tried[name])
        return found

    def _import_batch(self, batch: list[Used]) -> None:
        now = timestamps.now()
        changed = [str(record.events[0].id) for record in batch if holdings.may_change(record)]
        ids = [str(event.id) for record in batch for event in record.events]
        found = self._find_holdings(
            [*ids, *(name for record in batch for name in self._possible_ids_in_other_sources(record))],
            changed,
        )
        archived = [name for name in changed if name in found and found[name].is_archived]
        memories: Mapping[str, Memory | None] | None = None
        if archived:
            memories = self._query_if_exists(lambda db: {name: find_memory(db, name) for name in archived})
        keys = [(stream, name) for name in ids for stream in _streams_of(self._streams, name)]
        self._hidden = self._find_hidden(keys)
        self._edits = self._find_edits(batch, found)
        new = [each for record in batch for each in self._new_events(record, found, memories or {}, now)]
        if not self._report.dry_run:
            new = self._append_accepted(new)
        if self._report.dry_run:
            shown = [msgspec.to_builtins(each.event) for each in new[: _FIRST - len(self._report.first)]]
            self._report.first += rewrite_texts(shown, mask_keys) if self._engine.redact else shown
        kinds = Counter(type_name_of_event(each.event) for each in new)
        updated = kinds["message_updated"] + kinds["message_deleted"]
        self._report.updated += updated
        self._report.described += kinds["chat_described"]
        self._report.appended += len(new) - updated - kinds["chat_described"]
        self._report.types = dict(Counter(self._report.types) + kinds)

    def _find_hidden(self, keys: Sequence[Key]) -> dict[str, set[Key]]:
        """Return the hidden events of records, keyed by record id, without catching up with the log."""
        if not keys or self._begins_empty:
            return {}
        return self._engine.reads.run_with_repair(
            lambda read_model: imports.hidden_by_record(
                read_model.connect_to_latest(sync=False)[0], keys, holdings.CHANGED_IN
            )
        )

    def _new_events(
        self, record: Used, found: dict[str, Holding], memories: Mapping[str, Memory | None], now: str
    ) -> Iterator[_New]:
        """Yield a record's events that are not in the log, and count the outcome of each event."""
        first = str(record.events[0].id)
        if self._imported is not None and self._is_hidden(first):
            # Undone: only an import that a person starts brings it back.
            for _ in record.events:
                self._count_outcome("known")
            return
        fates: list[_Outcome] = []
        for event in record.events:
            made = add_precedence(event, now, is_changed=bool(record.changes))
            drafted, why = self._try_draft(made)
            fate = self._find_outcome(record, event, why, found, now)
            if fate == "replaced":
                made, fate = self._replace_hidden_event(made)
                drafted, _ = self._try_draft(made)
            fates.append(fate if isinstance(event, ChatDescribed) else self._count_outcome(fate))
            if fate == "new":
                self._add_holding(found, str(event.id), Holding(base=to_stored_change(made, "updated", now)))
                yield _New(made, drafted)
            elif fate == "updated":
                assert isinstance(event, Message)
                yield _New(to_edit(event))
        own = fates[0]
        if own == "refused" or (own == "changed" and record.created is None):
            return  # the changes may belong to another record
        for change in record.changes:
            is_open = own in _OPEN
            outcome: _Outcome = classify_change(change, first, found[first], now) if is_open else own
            if outcome == "known" and self._restore_changes(first, change):
                outcome = "restored"
            if self._count_outcome(outcome) == "new":
                yield _New(self._name_change(change, first, found, now))
        if own in _OPEN:
            for reset in record.resets:
                is_due = found[first].changes_of(holdings.parse_aspect_and_time(str(reset.id), first)[0])
                renewed = (
                    restoring_event(reset, memories.get(first)) if isinstance(reset, MemorySaved) else reset
                )
                if (
                    is_due
                    and renewed is not None
                    and classify_change(reset, first, found[first], now) == "new"
                ):
                    self._count_outcome("new")
                    yield _New(self._name_change(renewed, first, found, now))

    def _find_outcome(
        self, record: Used, event: Event, why: str | None, found: dict[str, Holding], now: str
    ) -> _Outcome:
        """Return the outcome for a record's event. why: the reason, if the log rejects the event."""
        name, group, content = str(event.id), record.group, content_hash_without_openssl(event)
        holding = found.get(name)
        if holding is not None and holding.is_forgotten:
            self._doubtful.add(group)
            return "forgotten"
        if (seen := self._seen.get(name)) is not None:
            is_same = seen == content and holding is not None
            if is_same and isinstance(event, ChatDescribed):
                return "known"
            self._add_problem(
                name, f"the source has this id twice{'' if is_same else ', with different content'}"
            )
            return "known" if is_same else "refused"
        self._seen[name] = content
        if why is None and holding is not None:
            fate = self._compare_with_known(record, event, holding, now)
            if fate in ("known", "changed", "updated"):
                self._note_met_event(name)
            is_restored = fate in ("known", "updated") and self._restore(name)
            return "restored" if is_restored and fate == "known" else fate
        if why is None and is_unfilled(event):
            why = "it is a placeholder without content"
        if why is None and group is not None and group in self._moved | self._doubtful:
            why = f"notes of {group} have changed, moved or been forgotten: it may be an old note"
        elsewhere = (found[each] for each in self._possible_ids_in_other_sources(record) if each in found)
        if why is None and any(each.is_forgotten for each in elsewhere):
            why = "another source's record with this id was forgotten, and without a time it may be the same"
        if why is not None:
            self._add_problem(name, why)
            return "refused"
        return "new"

    def _compare_with_known(self, record: Used, event: Event, holding: Holding, now: str) -> _Outcome:
        name, group = str(event.id), record.group
        self._doubtful.discard(group)
        if holding.base is None:
            self._add_problem(name, "its line in the log is unreadable: store.maintenance.verify() says why")
            return "refused"
        if holdings.compare_event(record, event, holding) == "other_time":
            self._add_problem(name, "another record, created at another time, already has this id")
            return "refused"
        if record.has_own_id and isinstance(event, Message) and isinstance(holding.base.event, Message):
            return self._compare_edits(event, holding.base.event)
        is_older = record.created is not None and holdings.last_change_time(record) < holding.last_change_time
        if is_older or not self._has_new_content(record, event, holding, now):
            return "known"
        if self._is_hidden(name):
            return "replaced"
        self._add_problem(name, "its content differs from what was imported under this id")
        if group is not None:
            self._moved.add(group)
        return "changed"

    def _find_edits(
        self, batch: list[Used], found: dict[str, Holding]
    ) -> Mapping[str, list[tuple[str, str]]]:
        """Return the edits that earlier imports made to known messages, oldest first, keyed by message id."""
        own = (each for record in batch if record.has_own_id for each in record.events)
        known = [
            (conversation_stream(event.channel, event.chat_id), str(event.id))
            for event in own
            if isinstance(event, Message) and event.id in found
        ]
        edits = self._query_if_exists(lambda db: edits_of_messages(db, known)) if known else None
        # Others may have edited the message, too: their edits stay.
        return {
            name: [each for each in those if each[0].startswith(f"{name}~")]
            for name, those in (edits or {}).items()
        }

    def _compare_edits(self, event: Message, base: Message) -> _Outcome:
        """Return the outcome for a known message; a text that it once had comes from an older copy."""
        earlier = {base.content, *(content for _, content in self._edits.get(str(event.id), ()))}
        if not earlier.isdisjoint({event.content, mask_keys(event.content)}):
            return "known"
        edit = to_edit(event)
        name, stream = str(edit.id), conversation_stream(edit.channel, edit.chat_id)
        _, forgotten = self._query_if_exists(lambda db: ids_in_use(db, (), [name])) or ((), set())
        if name in forgotten:
            return "forgotten"
        if self._query_if_exists(lambda db: find_hidden_ids(db, stream, [name])):
            self._restored.add((stream, name))
            return "known"
        return "updated"

    def _is_hidden(self, name: str) -> bool:
        return any(key[1] == name for key in self._hidden.get(name, ()))

    def _restore(self, name: str) -> bool:
        """Restore the hidden event of a record; return whether there is one."""
        keys = {key for key in self._hidden.get(name, ()) if key[1] == name}
        self._restored |= keys
        return bool(keys)

    def _restore_changes(self, record: str, change: Event) -> bool:
        """Restore hidden changes of an aspect, up to the source's change; return whether there are any."""
        keys = {
            key
            for key in self._hidden.get(record, ())
            if key[1].startswith(f"{change.id}/")
            and holdings.parse_aspect_and_time(key[1], record)[1] <= (change.ts or "~")
        }
        self._restored |= keys
        return bool(keys)

    def _replace_hidden_event(self, event: Event) -> tuple[Event, _Outcome]:
        """Return an event with new content for a hidden record, under an id of its own, and the outcome."""
        content = content_hash_without_openssl(event).hex()[:_HASH_LENGTH]
        made = replace(event, id=f"{event.id}~{content}")
        name, stream = str(made.id), stream_of(made)
        known = self._query_if_exists(lambda db: line_places_of_ids(db, stream, [name])) or {}
        if self._query_if_exists(lambda db: forgotten_ids(db, stream, [name])):
            return made, "forgotten"
        if not known:
            return made, "new"
        is_hidden = self._query_if_exists(lambda db: find_hidden_ids(db, stream, [name]))
        self._restored |= {(stream, name)} if is_hidden else set()
        return made, "restored" if is_hidden else "known"

    def _note_met_event(self, name: str) -> None:
        for stream in _streams_of(self._streams, name):
            if f"{stream}\n{name}" in self._of_others:
                self._met.add((stream, name))

    def _record_met_events(self) -> None:
        """Append a record of the hidden events that count again, and of the events met from other sources."""
        if not self._report.dry_run and (self._restored or self._met):
            made = self._draft_of_run(self._restored, self._met)
            self._unsynced += self._engine.bulk_log.append_drafts([made])
        self._restored, self._met = set(), set()

    def _draft_of_run(self, appended: Iterable[Key], met: Iterable[Key] = ()) -> Draft:
        self._report.run = self._run
        return self._engine.draft(
            EventsImported(
                run=self._run,
                format=self._report.format,
                path=self._path,
                appended=imports.group_by_stream(appended),
                met=imports.group_by_stream(met),
            )
        )

    def _has_new_content(self, record: Used, event: Event, holding: Holding, now: str) -> bool:
        """Whether a known event has content that neither the log nor a new change of the record has."""
        assert holding.base is not None
        base, field = holding.base.event, holdings.text_field(event)
        if type(base) is not type(event):
            return True
        if not field:
            return content_hash_without_openssl(event) != content_hash_without_openssl(base)
        is_told = holding.has_had_text(getattr(event, field)) or any(
            holdings.parse_aspect_and_time(str(change.id), str(event.id))[0] == "updated"
            and (classify_change(change, str(event.id), holding, now) == "new" or holding.hidden_changes)
            for change in record.changes
        )
        if not is_told or self._engine.redact:  # stored events are masked, and so cannot be compared
            return not is_told
        return content_hash_without_openssl(
            replace(event, **{field: getattr(base, field)})
        ) != content_hash_without_openssl(base)

    def _possible_ids_in_other_sources(self, record: Used) -> list[str]:
        """Return the ids that an undated record's events have in other sources; [] for a dated record."""
        if record.created is not None:
            return []
        own = f"{self._report.format}{self._suffix}"
        rests = [str(event.id).removeprefix(own) for event in record.events]
        others = self._suffixes - {self._suffix}
        return [f"{self._report.format}{suffix}{rest}" for suffix in others for rest in rests]

    def _name_change(self, change: Event, name: str, found: dict[str, Holding], now: str) -> Event:
        made = add_own_id(change, name, found[name], now, self._key)
        aspect, claimed = holdings.parse_aspect_and_time(str(made.id), name)
        self._add_holding(found, name, Holding(changes=[to_stored_change(made, aspect, claimed or now)]))
        return made

    def _add_holding(self, found: dict[str, Holding], name: str, gained: Holding) -> None:
        """Add `gained` to the known holdings; in a dry run, also keep it for later records."""
        found.setdefault(name, Holding()).add(gained)
        if self._report.dry_run:
            self._tried.setdefault(name, Holding()).add(gained)

    def _count_outcome(self, fate: _Outcome) -> _Outcome:
        report = self._report
        report.events += 1
        report.known += fate in ("known", "changed")
        report.restored += fate == "restored"
        report.changed += fate == "changed"
        report.forgotten += fate == "forgotten"
        report.refused += fate == "refused"
        return fate

    def _try_draft(self, event: Event) -> tuple[Draft | None, str | None]:
        """Return (encoded event, None), or (None, reason) if the log rejects the event."""
        try:
            return self._engine.draft(event), None
        except BadInput as error:
            return None, error.message

    def _add_problem(self, where: str, why: str) -> None:
        if len(self._report.problems) < _MAX_EXAMPLES:
            self._report.problems.append(ImportProblem(escape_invalid_utf8(where), escape_invalid_utf8(why)))

    def _append_accepted(self, new: list[_New]) -> list[_New]:
        """Append and return the events that the log accepts, and count the others as refused."""
        taken = []
        for event, known in new:
            drafted, why = (known, None) if known is not None else self._try_draft(event)
            if drafted is not None:
                taken.append(_New(event, drafted))
            else:
                self._report.refused += 1
                self._add_problem(str(event.id), str(why))
        drafts = [each.drafted for each in taken if each.drafted is not None]
        # The line with the ids comes first: a kill leaves no event that its import does not name.
        of_run = [self._draft_of_run((each.stream, each.id) for each in drafts)] if drafts else []
        positions = self._engine.bulk_log.append_drafts([*of_run, *drafts])
        for each in drafts:
            _add_stream(self._streams, each.id, each.stream)
        self._unsynced += positions
        if len(self._unsynced) >= _MAX_UNSYNCED:
            self._acknowledge()
        told = collect_warnings(positions)
        self._report.warnings += told[: _MAX_EXAMPLES - len(self._report.warnings)]
        return taken

    def _acknowledge(self) -> None:
        positions, self._unsynced = self._unsynced, []
        if positions:
            self._engine.sync_and_tell_of(positions)


def _streams_of(streams: DiskTable, name: str) -> list[str]:
    known = streams.get(name)
    return [] if known is None else str(known).split("\n")


def _add_stream(streams: DiskTable, name: str, stream: str) -> None:
    known = _streams_of(streams, name)
    if stream not in known:
        streams[name] = "\n".join([*known, stream])
