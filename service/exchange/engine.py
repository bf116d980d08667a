"""Imports: makes the events of a source durable, each once, and gives an account of every record."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from memlog.eventlog.acknowledgements import AppendWarning, LookUp, Position, warnings_of
from memlog.eventlog.content_ids import content_hash_of_one
from memlog.eventlog.encode import draft
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput
from memlog.eventlog.streams import shown, stream_of
from memlog.projector.catchup import Progress
from memlog.query.ids import ids_anywhere
from memlog.service.exchange.source import ForeignFiles
from memlog.service.importers import Read, Record, Skipped, Unreadable
from memlog.service.read_model import Deciding

_BATCH = 500
"""Events of one append. A process that is killed has stored whole batches."""

_EXAMPLES = 10


class ImportProblem(msgspec.Struct, frozen=True):
    """A record, or an event of one, that is not stored. where: names it."""

    where: str
    why: str


class ImportReport(msgspec.Struct, kw_only=True):
    """What became of the records of a source, and of the events that they gave.

    found = used + the sum of skipped + unreadable. events = appended + known + forgotten + refused.

    skipped: by reason. unreadable: records and files. known: stored before; they are not written again, also
        not those that are `changed` in the source since.
    forgotten: events that were forgotten; they do not come back. refused: events that the log does not take,
        and notes of a file whose notes have moved, or were forgotten: they may be old ones.
    problems: the first ten of unreadable, refused and changed. warnings: the first ten of appended events.
    unknown_columns: how many rows have a value that memlog has no place for, by `table.column`.
    """

    format: str
    dry_run: bool
    found: int = 0
    used: int = 0
    skipped: dict[str, int] = {}
    unreadable: int = 0
    events: int = 0
    appended: int = 0
    known: int = 0
    changed: int = 0
    forgotten: int = 0
    refused: int = 0
    types: dict[str, int] = {}
    problems: list[ImportProblem] = []
    warnings: list[AppendWarning] = []
    unknown_columns: dict[str, int] = {}


class _OfRecord(NamedTuple):
    """An event, the group of its record, and the id of the record's first event."""

    event: Event
    group: str | None
    first: str


class Importing:
    """One import.

    append: makes events durable. decide: reads the read model of the log as it is now; None where there is no
        store yet. look_up: finds what ids of a stream hold. redacts: whether keys are masked.
    """

    def __init__(
        self,
        report: ImportReport,
        append: Callable[[Sequence[Event]], list[Position]],
        decide: Deciding | None,
        look_up: LookUp,
        progress: Progress | None,
        *,
        redacts: bool,
    ) -> None:
        self._report, self._append, self._decide = report, append, decide
        self._progress, self._look_up = progress, look_up
        self._redacts = redacts
        self._skipped: Counter[str] = Counter()
        self._seen: dict[str, bytes] = {}
        self._moved: set[str | None] = set()
        """Groups of records whose places have changed."""
        self._doubtful: set[str | None] = set()
        """Groups whose last known record was forgotten: what follows may be that one at another place."""

    def take(self, read: Read, source: ForeignFiles) -> None:
        """Import a source, a batch of events at a time.

        Raises:
            Busy, LogError: as `Store.append`; what was appended before stays, and is known the next time.
        """
        events = self._events(read(source))
        while batch := list(islice(events, _BATCH)):
            self._store(batch)
            if self._progress is not None:
                self._progress("records imported", self._report.found, self._report.found)
        self._report.skipped = dict(sorted(self._skipped.items()))
        self._report.unknown_columns = dict(Counter(self._report.unknown_columns) + source.unknown)

    def _events(self, records: Iterator[Record]) -> Iterator[_OfRecord]:
        report = self._report
        for record in records:
            report.found += 1
            if isinstance(record, Skipped):
                self._skipped[record.reason] += 1
            elif isinstance(record, Unreadable):
                report.unreadable += 1
                self._note(record.where, record.why)
            else:
                report.used += 1
                for event in record.events:
                    report.events += 1
                    if self._is_storable(event):
                        yield _OfRecord(event, record.group, str(record.events[0].id))

    def _is_storable(self, event: Event) -> bool:
        try:
            draft(event)
        except BadInput as error:
            self._report.refused += 1
            self._note(str(event.id), error.message)
            return False
        return True

    def _note(self, where: str, why: str) -> None:
        if len(self._report.problems) < _EXAMPLES:
            self._report.problems.append(ImportProblem(shown(where), shown(why)))

    def _store(self, batch: list[_OfRecord]) -> None:
        ids = [name for placed in batch for name in (str(placed.event.id), placed.first)]
        known: set[str] = set()
        forgotten: set[str] = set()
        if self._decide is not None:
            known, forgotten = self._decide(lambda db: ids_anywhere(db, ids))
        if not self._redacts:  # else what is stored is not what the source says
            self._compare([placed for placed in batch if str(placed.event.id) in known - forgotten])
        new: list[Event] = []
        for event, group, first in batch:
            name, content = str(event.id), content_hash_of_one(event)
            if name in forgotten or first in forgotten:
                self._report.forgotten += 1
                self._doubtful.add(group)
            elif name in known:
                self._report.known += 1
                self._doubtful.discard(group)
            elif name in self._seen:
                self._report.known += 1
                if self._seen[name] != content:
                    self._report.changed += 1
                    self._note(name, "another record of the source has this id, too, and says something else")
            elif group is not None and group in self._moved | self._doubtful:
                self._report.refused += 1
                self._note(
                    name, f"notes of {group} have changed or moved, or were forgotten: it may be an old one"
                )
            else:
                new.append(event)
                self._seen[name] = content
        if not self._report.dry_run:
            new = self._appended(new)
        self._report.appended += len(new)
        kinds = Counter(str(event.__struct_config__.tag) for event in new)
        self._report.types = dict(Counter(self._report.types) + kinds)

    def _appended(self, new: list[Event]) -> list[Event]:
        """Append events, each by itself where one of them cannot be stored; return those that are."""
        try:
            if new:
                told = warnings_of(self._append(new))
                self._report.warnings += told[: _EXAMPLES - len(self._report.warnings)]
        except BadInput as error:
            if len(new) > 1:
                return [event for each in new for event in self._appended([each])]
            self._report.refused += 1
            self._note(str(new[0].id), error.message)
            return []
        return new

    def _compare(self, placed: list[_OfRecord]) -> None:
        """Note events that are known, and say something else now."""
        by_stream: defaultdict[str, list[_OfRecord]] = defaultdict(list)
        for each in placed:
            by_stream[stream_of(each.event)].append(each)
        for stream, those in by_stream.items():
            known = self._look_up(stream, [str(each.event.id) for each in those])
            for event, group, _ in those:
                holder = known.get(str(event.id))
                if holder is not None and holder.content and holder.content != content_hash_of_one(event):
                    self._report.changed += 1
                    self._note(str(event.id), "it says something else than what was imported under this id")
                    if group is not None:
                        self._moved.add(group)
