"""What the log holds of the records of a source: their events, and what changed them since."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from memlog.eventlog.acknowledgements import IdHolder
from memlog.eventlog.envelope import Event
from memlog.eventlog.events import MemoryArchived
from memlog.eventlog.precedence import precedence
from memlog.eventlog.secrets import masked
from memlog.eventlog.streams import SegmentName
from memlog.projector.sqlite import Connection
from memlog.query.ids import IdInUse, ids_below, ids_in_use
from memlog.service.known_ids import event_with

_STREAMS = ("memory", "core")
"""Those of events that change a record."""

_ASPECTS = {"restored": "archived"}
"""What an event changes, where its id does not end in this."""

DATED = ("updated", "archived", "salience")
"""The aspects whose changes have the time at which the source changed the record."""

_TEXTS = ("content", "value", "summary")


class StoredChange(NamedTuple):
    """An event of the log, the aspect of its record that it changes, and when.

    claimed: the time that its source says. wins: its precedence, which its place in the log decides if equal.
    """

    event: Event
    aspect: str
    claimed: str
    wins: str
    place: tuple[str, int, str, int] = ("", 0, "", 0)


class Forgotten(NamedTuple):
    """A change that was forgotten: nothing of its aspect up to `until` comes back."""

    aspect: str
    until: str


class Holding:
    """What the log holds under the id of a record.

    base: None where it was forgotten or can no longer be read.
    """

    def __init__(self, base: StoredChange | None = None, changes: Iterable[StoredChange] = ()) -> None:
        self.base, self.changes = base, [*changes]
        self.is_forgotten = False
        self.forgotten: list[Forgotten] = []

    @property
    def is_archived(self) -> bool:
        """Whether its source has archived it, and not restored it."""
        archivings = self.of("archived")
        return bool(archivings) and isinstance(archivings[-1].event, MemoryArchived)

    @property
    def said_at(self) -> str:
        """Return when its source changed it last, as far as the log knows."""
        base = [] if self.base is None else [self.base]
        return max((each.claimed for each in (*base, *self.changes) if each.aspect in DATED), default="")

    def add(self, gained: "Holding") -> None:
        """Hold what another holds, too."""
        self.base = self.base or gained.base
        self.changes += gained.changes

    def of(self, aspect: str) -> list[StoredChange]:
        """Return what changed an aspect, in the order of precedence; a record's text begins with its base."""
        base = [] if self.base is None else [self.base]
        found: list[StoredChange] = []
        for change in sorted([*base, *self.changes], key=lambda change: (change.wins, change.place)):
            # A record is restored with the text that the store has: its source's, or a person's.
            repeats = aspect == "updated" and found and text_of(change.event) == text_of(found[-1].event)
            if change.aspect == aspect or repeats:
                found.append(change)
        return found

    def has_said(self, text: str) -> bool:
        """Whether the record's text is or was `text`, which may be masked in the log."""
        return not {text, masked(text)}.isdisjoint(text_of(each.event) for each in self.of("updated"))


def text_field(event: Event) -> str:
    """Name the field with the text of an event; "" if it has none."""
    return next((name for name in _TEXTS if getattr(event, name, None) is not None), "")


def text_of(event: Event) -> str | None:
    """Return the text of an event; None if it sets none."""
    return getattr(event, text_field(event), None)


def aspect_of(event_id: str, base_id: str) -> tuple[str, str]:
    """Return what the id of a change says: its aspect, and its time; "" in those of older versions."""
    kind, _, ending = event_id.removeprefix(f"{base_id}/").partition("/")
    return _ASPECTS.get(kind, kind), ending.rpartition("-")[0]


def holdings(db: Connection, log: Path, ids: Sequence[str], changed: Iterable[str]) -> dict[str, Holding]:
    """Find what the log holds under those of `ids` that are known or forgotten.

    changed: those of `ids` that may have changes.
    """
    known, forgotten = ids_in_use(db, ids)
    found = {name: Holding() for name in (*(each.id for each in known), *forgotten)}
    for name in forgotten:
        found[name].is_forgotten = True
    for each in known:
        if (event := _event(log, each)) is not None and not found[each.id].is_forgotten:
            found[each.id].base = _stored(event, each, "updated", event.ts or "")
    names = [name for name in dict.fromkeys(changed) if name in found]
    below, gone = ids_below(db, _STREAMS, names)
    for each in below:
        base = _base(each.id, found)
        aspect, claimed = aspect_of(each.id, base)
        if (event := _event(log, each)) is not None:
            found[base].changes.append(_stored(event, each, aspect, claimed or event.ts or ""))
    for name, ts in gone:
        aspect, claimed = aspect_of(name, base := _base(name, found))
        found[base].forgotten.append(Forgotten(aspect, claimed or ts))
    return found


def _base(name: str, known: dict[str, Holding]) -> str:
    """The known id of which `name` is an extension."""
    while name not in known:
        name = name.rpartition("/")[0]
    return name


def _event(log: Path, holder: IdInUse) -> Event | None:
    name, stream, segment, offset, length = holder
    return event_with(log, name, IdHolder(stream, segment, offset), length)


def _stored(event: Event, holder: IdInUse, aspect: str, claimed: str) -> StoredChange:
    segment = SegmentName.parse(holder.segment)
    assert segment is not None  # its line was read
    place = (segment.day, segment.number, segment.writer, holder.offset)
    return StoredChange(event, aspect, claimed, precedence(event, segment), place)
