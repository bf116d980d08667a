"""Reads the events and later changes that the log already holds for a source's records."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.events import CoreMemoryUpdated, Event, MemoryArchived
from memlog.eventlog.log.order import compute_precedence
from memlog.eventlog.log.streams import SegmentName
from memlog.eventlog.log.writer import split_into_batches
from memlog.eventlog.secrets.detection import mask_keys
from memlog.projector.sqlite import Connection
from memlog.query.provenance import IdInUse, ids_below_names, ids_in_use
from memlog.service.engine.ids import read_event_from_line
from memlog.service.exchange.formats import Record, Used

CHANGED_IN = ("memory", "core")
"""The streams with events that change a record."""

_ASPECTS = {"restored": "archived"}
"""Aspects whose name differs in event ids, keyed by the word in the id."""

DATED = ("updated", "archived", "salience")
"""The aspects whose changes are dated by the source."""

_TEXTS = ("content", "value", "summary")


class StoredChange(NamedTuple):
    """An event in the log, and the aspect of a record that it changes.

    claimed: the time of the change, according to its source. wins: its precedence; ties are broken by
    `place`, the position in the log.
    """

    event: Event
    aspect: str
    claimed: str
    wins: str
    place: tuple[str, int, str, int] = ("", 0, "", 0)


class Forgotten(NamedTuple):
    """A forgotten change. Changes of its aspect up to the time `until` are not imported again."""

    aspect: str
    until: str


class Holding:
    """The events and changes that the log holds under a record's id.

    base: the record's own event; None if it was forgotten or is unreadable.
    is_hidden: whether its import was undone. hidden_changes: the ids of changes whose import was undone.
    """

    def __init__(self, base: StoredChange | None = None, changes: Iterable[StoredChange] = ()) -> None:
        self.base, self.changes = base, [*changes]
        self.is_forgotten = self.is_hidden = False
        self.hidden_changes: set[str] = set()
        self.forgotten: list[Forgotten] = []

    @property
    def is_archived(self) -> bool:
        """Whether the source has archived the record and not restored it since."""
        archivings = self.changes_of("archived")
        return bool(archivings) and isinstance(archivings[-1].event, MemoryArchived)

    @property
    def last_change_time(self) -> str:
        """The time of the source's last change in the log; "" if there is none."""
        base = [] if self.base is None else [self.base]
        return max((each.claimed for each in (*base, *self.changes) if each.aspect in DATED), default="")

    def add(self, gained: "Holding") -> None:
        """Merge another holding into this one."""
        self.base = self.base or gained.base
        self.changes += gained.changes

    def changes_of(self, aspect: str) -> list[StoredChange]:
        """Return the changes of an aspect in order of precedence. Changes of the text begin with the base."""
        base = [] if self.base is None else [self.base]
        found: list[StoredChange] = []
        for change in sorted([*base, *self.changes], key=lambda change: (change.wins, change.place)):
            # A restored record repeats the text that the store had: the source's or a person's.
            repeats = (
                aspect == "updated" and found and event_text(change.event) == event_text(found[-1].event)
            )
            if change.aspect == aspect or repeats:
                found.append(change)
        return found

    def has_had_text(self, text: str) -> bool:
        """Whether the record has, or once had, this text. The log may contain it with keys masked."""
        counting = (
            each
            for each in self.changes_of("updated")
            if self.is_hidden or str(each.event.id) not in self.hidden_changes
        )
        texts = [event_text(each.event) for each in counting]
        return text in texts or mask_keys(text) in texts


def text_field(event: Event) -> str:
    """Return the name of the field that holds an event's text; "" if the event has no text."""
    return next((name for name in _TEXTS if getattr(event, name, None) is not None), "")


def event_text(event: Event) -> str | None:
    """Return an event's text; None if it has none."""
    return getattr(event, text_field(event), None)


def parse_aspect_and_time(event_id: str, base_id: str) -> tuple[str, str]:
    """Return the aspect and the time from a change's id. The time is "" in ids of older versions."""
    kind, _, ending = event_id.removeprefix(f"{base_id}/").partition("/")
    return _ASPECTS.get(kind, kind), ending.rpartition("-")[0]


def read_holdings(
    db: Connection, log: Path, keys: Sequence[tuple[str, str]], ids: Sequence[str], changed: Iterable[str]
) -> dict[str, Holding]:
    """Return the holding for each of `ids` that the log knows or has forgotten.

    keys: pairs of (id, stream), for each stream that has an event under one of the ids.
    changed: which `ids` may have changes.
    """
    known, forgotten = ids_in_use(db, keys, ids)
    found = {name: Holding() for name in (*(each.id for each in known), *forgotten)}
    for name in forgotten:
        found[name].is_forgotten = True
    for each in known:
        if (event := read_event_from_line(log, *each)) is not None and not found[each.id].is_forgotten:
            found[each.id].base = _stored_change(event, each, "updated", event.ts or "")
    names = [name for name in dict.fromkeys(changed) if name in found]
    below, gone = ids_below_names(db, CHANGED_IN, names)
    for each in below:
        base = _find_base(each.id, found)
        aspect, claimed = parse_aspect_and_time(each.id, base)
        if (event := read_event_from_line(log, *each)) is not None:
            found[base].changes.append(_stored_change(event, each, aspect, claimed or event.ts or ""))
    for name, ts in gone:
        aspect, claimed = parse_aspect_and_time(name, base := _find_base(name, found))
        found[base].forgotten.append(Forgotten(aspect, claimed or ts))
    return found


def _find_base(name: str, known: dict[str, Holding]) -> str:
    """Return the id of the record to which the change `name` belongs."""
    while name not in known:
        name = name.rpartition("/")[0]
    return name


def _stored_change(event: Event, holder: IdInUse, aspect: str, claimed: str) -> StoredChange:
    segment = SegmentName.parse(holder.segment)
    assert segment is not None  # its line was read
    place = (segment.day, segment.number, segment.writer, holder.offset)
    return StoredChange(event, aspect, claimed, compute_precedence(event, segment), place)


SUFFIX_LENGTH = 8
"""How many hex digits follow the `~`."""

_EVENT_UNITS = 16 * 1024
_BATCH_UNITS = 500 * _EVENT_UNITS
"""The size of a batch in characters; each event counts as 16 Ki characters more than it has. If the process
is killed, only whole batches are stored."""

Verdict = Literal["same", "updated", "edited", "other_time", "other_text"]
"""How a record compares with the one in the log under its id. same: the same text, and no different creation
time. updated, edited: the same creation time and another text, with or without a dated update. other_time,
other_text: a different record, to judge by its creation time or its text.
"""

Find = Callable[[Sequence[str], Collection[str]], dict[str, Holding]]
"""Finds the log's holdings, keyed by id; the second argument lists the ids that may have changes."""


def compare_event(record: Used, event: Event, holding: Holding) -> Verdict | None:
    """Compare a record's event with the event in the log under its id; None if the log has no such event."""
    base = holding.base
    if base is None:
        return None
    is_dated = record.created is not None and base.event.ts == record.created
    if record.created is not None and not is_dated:
        # Older versions gave a core value the time of its last update.
        is_core = isinstance(base.event, CoreMemoryUpdated)
        if not is_core or str(base.event.ts) < record.created:
            return "other_time"
    texts = [event_text(each) or "" for each in record.events if each is event or record.group is not None]
    if any(holding.has_had_text(text) for text in texts):
        return "same"
    if not is_dated:
        return "other_text"
    return "edited" if last_change_time(record) == holding.last_change_time else "updated"


def may_change(record: Used) -> bool:
    """Whether the log may contain changes of a record."""
    is_changed = bool(record.changes or record.resets) or record.is_editable
    return is_changed or isinstance(record.events[0], CoreMemoryUpdated)


def last_change_time(record: Used) -> str:
    """Return the time when the source last changed a record; "" if it is unknown."""
    name = str(record.events[0].id)
    changes = (each for each in record.changes if parse_aspect_and_time(str(each.id), name)[0] in DATED)
    return max([record.created or "", *(each.ts or "" for each in changes)])


def split_records(records: Iterable[Used]) -> Iterator[list[Used]]:
    """Yield records in batches of at least one record, and at most about 500 events or 8 Mi characters."""
    return split_into_batches(records, _units_of, _BATCH_UNITS)


def _units_of(record: Used) -> int:
    events = (*record.events, *record.changes)
    return sum(_EVENT_UNITS + len(event_text(event) or "") for event in events)


def recognise_source(records: Iterable[Record], prefix: str, suffixes: Iterable[str], find: Find) -> str:
    """Return the suffix of a source's ids: "" for the first source, or if no other source uses the same ids.

    records: the source's records, with ids without a suffix. prefix: the prefix of the ids.
    suffixes: the suffixes in use, "" first.
    """
    tallies: dict[str, Counter[Verdict]] = {suffix: Counter() for suffix in suffixes}
    has_forgotten: set[str] = set()
    marks: list[str] = []
    used = (record for record in records if isinstance(record, Used) and record.is_telling)
    for batch in split_records(used):
        # What tells sources apart is computed from ids and creation times, never from texts.
        dated = (f"{record.events[0].id} {record.created}" for record in batch if record.created is not None)
        marks = sorted([*marks, *map(_short_hash, dated)])[:1]
        events = [(record, event) for record in batch for event in record.events]
        ids = {suffix: [_id_with_suffix(suffix, event, prefix) for _, event in events] for suffix in tallies}
        changed = {
            _id_with_suffix(suffix, record.events[0], prefix)
            for record in batch
            if may_change(record)
            for suffix in tallies
        }
        found = find([name for names in ids.values() for name in names], changed)
        for suffix, names in ids.items():
            for (record, event), name in zip(events, names, strict=True):
                if (holding := found.get(name)) is None:
                    continue
                if holding.is_forgotten:
                    has_forgotten.add(suffix)
                reason = compare_event(record, event, holding)
                # What was undone speaks for a source, but not against one.
                if reason is not None and (reason == "same" or not holding.is_hidden):
                    tallies[suffix][reason] += 1
    same = {suffix: _count_same(tally, suffix in has_forgotten) for suffix, tally in tallies.items()}
    best = max(same, key=lambda suffix: same[suffix])
    if same[best]:
        return best
    for suffix, tally in tallies.items():
        # Everything shared with that source was forgotten: it must not come back under another suffix.
        if suffix in has_forgotten and not tally:
            return suffix
    return "" if not tallies[""] else _new_suffix(marks, tallies)


def _count_same(tally: Counter[Verdict], has_forgotten: bool) -> int:
    """Return how many records match, or 0 if fewer than half do.

    Equal creation times prove nothing if records with other texts share them. If a record was forgotten,
    equal times suffice: forgotten records must not come back because another text was edited.
    """
    others = tally["edited"] + tally["other_text"]
    same = tally["same"]
    if has_forgotten:
        same += tally["updated"] + tally["edited"]
    elif tally["same"] or not others:
        same += tally["updated"]
    return same if 2 * same >= tally.total() else 0


def _id_with_suffix(suffix: str, event: Event, prefix: str) -> str:
    return f"{prefix}{suffix}{str(event.id).removeprefix(prefix)}"


def _new_suffix(marks: list[str], used: Collection[str]) -> str:
    """Return an unused suffix. It is the same on every copy of a store if records have creation times."""
    mark = marks[0] if marks else os.urandom(SUFFIX_LENGTH // 2).hex()
    while f"~{mark}" in used:
        mark = _short_hash(mark)
    return f"~{mark}"


def _short_hash(text: str) -> str:
    return short_sha256(text.encode(errors="surrogatepass")).hexdigest()[:SUFFIX_LENGTH]
