"""Which source it is whose records are imported: row 7 of one database is not row 7 of another."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from memlog.eventlog.envelope import Event
from memlog.eventlog.events import CoreMemoryUpdated
from memlog.eventlog.hashing import short_sha256
from memlog.eventlog.writer import in_batches
from memlog.service.exchange.holdings import DATED, Holding, aspect_of, text_of
from memlog.service.importers import Record, Used

SUFFIX_LENGTH = 8
"""Hex digits behind `~`."""

_BATCH = 500

Verdict = Literal["same", "updated", "edited", "other_time", "other_text"]
"""Whether a record is the one that the log holds under its id: it has the same text, and no other time of
creation; it has the same time of creation and another text, and was updated since, there or here; it has them
and was not; or it is another.
"""

Find = Callable[[Sequence[str], Collection[str]], dict[str, Holding]]
"""Finds what the log holds under ids, and the changes of some."""


def verdict(record: Used, event: Event, holding: Holding) -> Verdict | None:
    """Return whether an event of a record is the one in the log; None if nothing tells."""
    base = holding.base
    if base is None:
        return None
    is_dated = record.created is not None and base.event.ts == record.created
    if record.created is not None and not is_dated:
        # Older versions gave a core value the time of its last update.
        is_core = isinstance(base.event, CoreMemoryUpdated)
        if not is_core or str(base.event.ts) < record.created:
            return "other_time"
    texts = [text_of(each) or "" for each in record.events if each is event or record.group is not None]
    if any(holding.has_said(text) for text in texts):
        return "same"
    if not is_dated:
        return "other_text"
    return "edited" if said_at(record) == holding.said_at else "updated"


def may_change(record: Used) -> bool:
    """Whether the log may hold changes of a record."""
    return bool(record.changes or record.resets) or isinstance(record.events[0], CoreMemoryUpdated)


def said_at(record: Used) -> str:
    """Return when the source changed a record last; "" if no time tells."""
    name = str(record.events[0].id)
    changes = (each for each in record.changes if aspect_of(str(each.id), name)[0] in DATED)
    return max([record.created or "", *(each.ts or "" for each in changes)])


def recognised(records: Iterable[Record], prefix: str, suffixes: Iterable[str], find: Find) -> str:
    """Return the suffix of the ids of a source; "" for the first one, or if it shares no id with another.

    records: as they are without a suffix. prefix: of their ids. suffixes: those in use, "" first.
    """
    tallies: dict[str, Counter[Verdict]] = {suffix: Counter() for suffix in suffixes}
    has_forgotten: set[str] = set()
    marks: list[str] = []
    used = (record for record in records if isinstance(record, Used) and record.is_telling)
    for batch in in_batches(used, lambda _: 1, _BATCH):
        marks = sorted([*marks, *_marks(batch)])[:1]
        events = [(record, event) for record in batch for event in record.events]
        ids = {suffix: [_with(suffix, event, prefix) for _, event in events] for suffix in tallies}
        changed = {
            _with(suffix, record.events[0], prefix)
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
                if (said := verdict(record, event, holding)) is not None:
                    tallies[suffix][said] += 1
    same = {suffix: _same(tally, suffix in has_forgotten) for suffix, tally in tallies.items()}
    best = max(same, key=lambda suffix: same[suffix])
    if same[best]:
        return best
    for suffix, tally in tallies.items():
        # All that it shares with that source was forgotten: it does not come back under another name.
        if suffix in has_forgotten and not tally:
            return suffix
    return "" if not tallies[""] else _new_suffix(marks, tallies)


def _same(tally: Counter[Verdict], has_forgotten: bool) -> int:
    """Return how many records are the same; 0 if they are less than half.

    A time of creation proves nothing where others share it that say something else. Where a record was
    forgotten, it decides alone: what was forgotten does not come back because another text was edited.
    """
    others = tally["edited"] + tally["other_text"]
    same = tally["same"]
    if has_forgotten:
        same += tally["updated"] + tally["edited"]
    elif tally["same"] or not others:
        same += tally["updated"]
    return same if 2 * same >= tally.total() else 0


def _with(suffix: str, event: Event, prefix: str) -> str:
    return f"{prefix}{suffix}{str(event.id).removeprefix(prefix)}"


def _marks(batch: Iterable[Used]) -> Iterator[str]:
    """What tells a source from others, and no text of it: ids and times of creation, hashed."""
    for record in batch:
        if record.created is not None:
            yield _short(f"{record.events[0].id} {record.created}")


def _new_suffix(marks: list[str], used: Collection[str]) -> str:
    """A suffix that no source has; the same on each copy of a store if records have times of creation."""
    mark = marks[0] if marks else os.urandom(SUFFIX_LENGTH // 2).hex()
    while f"~{mark}" in used:
        mark = _short(mark)
    return f"~{mark}"


def _short(text: str) -> str:
    return short_sha256(text.encode(errors="surrogatepass")).hexdigest()[:SUFFIX_LENGTH]
