"""Finds the log's ids for the items of a list or file that only their places and texts identify.

An item whose text is in the log is the same item, wherever it is now. Any other item may be the new version
of the known item in its place; otherwise it is new.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.events import (
    CoreMemoryUpdated,
    DailyEventRecorded,
    DailyEventsCompressed,
    Event,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.secrets.detection import mask_keys
from memlog.service.exchange.formats import Used
from memlog.service.exchange.holdings import Holding, event_text

_ID = re.compile(r"(.*)/(\d{1,9})(?:~[0-9a-f]{12})?", re.DOTALL)
"""Matches an item's id: its list's id, its number, and a hash of its text if it replaced another item."""

_HASH_LENGTH = 12
_OWN = 10**9
"""The rank of a list under its current id; former ids rank lower."""

_CHUNK, _LONG = 500, 8 * 1024
"""How many events are looked up together; an event counts once more for each `_LONG` characters."""

_Key = tuple[type[Event], str, str]
"""The key of an item in a list: the type of its event, its core memory key, and its text."""


class ListItem(NamedTuple):
    """An event of a record, with its list's id. former: the list's id in older versions of memlog."""

    record: Used
    event: Event
    list_id: str
    former: str | None

    def list_keys(self) -> Iterator[_Key]:
        """Yield each lookup key under which the log may have the item, with secrets masked or unmasked."""
        for text in filter(None, (event_text(self.event), self.record.former_text)):
            for each in (text, mask_keys(text)):
                yield (type(self.event), getattr(self.event, "key", ""), each)
                if self.former is not None:  # older versions took journals for notes
                    yield (MemorySaved, "", each)


class ListPlace(NamedTuple):
    """A place in a list, as the log has it: the ids of its versions, oldest first."""

    ids: list[str]
    holdings: list[Holding]

    @property
    def is_forgotten(self) -> bool:
        """Whether any version was forgotten."""
        return any(each.is_forgotten for each in self.holdings)

    def list_keys(self) -> Iterator[_Key]:
        """Yield the key of each text that the place has had."""
        for holding in self.holdings:
            base = None if holding.base is None else holding.base.event
            if base is not None:
                texts = (event_text(change.event) or "" for change in holding.changes_of("updated"))
                yield from ((type(base), getattr(base, "key", ""), text) for text in texts)


_Number = tuple[int, int]
"""The rank of a list's id, and the number of a place: older versions may have used other ids for the list."""

_Places = dict[_Number, ListPlace]


def split_groups(records: Iterable[Used]) -> Iterator[list[Used]]:
    """Yield records in chunks that split no group, each of a few megabytes at most, plus its last group."""
    chunk: list[Used] = []
    size, last = 0, None
    for record in records:
        if size >= _CHUNK and (record.group is None or record.group != last):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        texts = (event_text(event) or "" for event in record.events)
        size, last = size + sum(1 + len(text) // _LONG for text in texts), record.group
    if chunk:
        yield chunk


def find_lists(records: Iterable[Used]) -> set[str]:
    """Return the ids, including former ones, of the lists to which records belong."""
    items = (item for record in records if record.group is not None for item in _items_of(record))
    return {name for item in items for name in (item.list_id, item.former) if name}


def find_former_ids(records: Iterable[Used]) -> list[str]:
    """Return the current and former ids of ungrouped records whose id or text has changed."""
    alone = (record for record in records if record.group is None)
    changed = (record for record in alone if record.former or record.former_text)
    return [name for record in changed for name in (record.former, str(record.events[0].id)) if name]


def is_of_list(event_id: str) -> bool:
    """Whether an id has the form of an item id."""
    return _ID.fullmatch(event_id) is not None


def align(records: list[Used], found: Mapping[str, Holding], doubtful: set[str | None]) -> Iterator[Used]:
    """Yield the records under the ids that the log has for them; a new version also gets its change.

    found: the log's holdings under former ids and in the lists.
    doubtful: filled with the groups whose items may have been forgotten, and so must not be stored.
    """
    lists: defaultdict[str, dict[int, ListPlace]] = defaultdict(dict)
    for name in sorted(found):
        if (parts := _ID.fullmatch(name)) is not None:
            place = lists[parts[1]].setdefault(int(parts[2]), ListPlace([], []))
            place.ids.append(name)
            place.holdings.append(found[name])
    for group, those in groupby(records, key=lambda record: record.group):
        if group is not None:
            yield from _align_group([*those], lists, doubtful)
            continue
        for record in those:
            yield _find_former(record, found) if record.former or record.former_text else record


def _find_former(record: Used, found: Mapping[str, Holding]) -> Used:
    """Return a record under the id that the log has for it, with a change if the log has its former text."""
    event = record.events[0]
    for name in filter(None, (record.former, str(event.id))):
        if (holding := found.get(name)) is None:
            continue
        if holding.has_had_text(event_text(event) or ""):
            return _rename(record, event, name)
        if record.former_text is not None and holding.has_had_text(record.former_text):
            return _make_version(record, event, [name])
    return record


def _items_of(record: Used) -> Iterator[ListItem]:
    for event in record.events:
        if (parts := _ID.fullmatch(str(event.id))) is not None:
            yield ListItem(record, event, parts[1], record.former)


def _align_group(
    records: list[Used], lists: Mapping[str, dict[int, ListPlace]], doubtful: set[str | None]
) -> Iterator[Used]:
    items = [item for record in records for item in _items_of(record)]
    by_list: defaultdict[str, list[ListItem]] = defaultdict(list)
    for item in items:
        by_list[item.list_id].append(item)
    places: dict[str, _Places] = {}
    matched: dict[str, dict[int, _Number]] = {}
    for name, those in by_list.items():
        names = [each for each in dict.fromkeys(item.former for item in those) if each]
        places[name] = {
            (rank, number): place
            for rank, each in enumerate([*names, name], _OWN - len(names))
            for number, place in lists.get(each, {}).items()
        }
        matched[name] = _match_texts(those, places[name])
    held = sum(not place.is_forgotten for those in places.values() for place in those.values())
    common = sum(map(len, matched.values()))
    is_same = common in (held, len(items)) or 2 * common >= max(held, len(items))
    if not any(places.values()) or (records[0].is_editable and not is_same):
        yield from records  # a new file, or another one of this name
        return
    made = {
        name: _Alignment(those, places[name], matched[name], doubtful).records()
        for name, those in by_list.items()
    }
    for item in items:
        yield next(made[item.list_id])


def _match_texts(items: list[ListItem], places: _Places) -> dict[int, _Number]:
    """Return the places of the items whose texts the log has, keyed by item index.

    Texts that occur once are matched first: they show where equal texts belong.
    """
    free: defaultdict[_Key, list[_Number]] = defaultdict(list)
    for number in sorted(places):
        for key in {*places[number].list_keys()}:
            free[key].append(number)
    keys = [[*dict.fromkeys(item.list_keys())] for item in items]
    times = Counter(each for own in keys for each in own)
    matched: dict[int, _Number] = {}
    taken: set[_Number] = set()

    def match(index: int, key: _Key, expected: _Number) -> None:
        while (number := _pop_nearest(free[key], expected)) in taken:
            pass
        if number is not None:
            matched[index] = number
            taken.add(number)

    for index, own in enumerate(keys):
        for key in own:
            if index not in matched and len(free[key]) == times[key] == 1:
                match(index, key, free[key][0])
    following = _next_matched(matched, len(items))
    for index, own in enumerate(keys):
        for key in own:
            if index not in matched:
                near = following[index]
                near = index - 1 if near is None else near
                rank, at = matched.get(near, (_OWN, 0))
                match(index, key, (rank, at + index - near))
    return matched


def _next_matched(matched: Mapping[int, _Number], count: int) -> list[int | None]:
    """Return, for each index, the next matched index, if any."""
    following: list[int | None] = [None] * count
    for index in range(count - 2, -1, -1):
        following[index] = index + 1 if index + 1 in matched else following[index + 1]
    return following


def _pop_nearest(numbers: list[_Number], expected: _Number) -> _Number | None:
    """Remove and return the number nearest to `expected` from a sorted list; None if the list is empty."""
    if not numbers:
        return None
    at = bisect_left(numbers, expected)
    around = [each for each in (at - 1, at) if 0 <= each < len(numbers)]
    return numbers.pop(min(around, key=lambda each: _distance(numbers[each], expected)))


def _distance(number: _Number, expected: _Number) -> tuple[int, int]:
    return abs(number[0] - expected[0]), abs(number[1] - expected[1])


class _Alignment:
    """The items of a list, aligned with its places in the log."""

    def __init__(
        self,
        items: list[ListItem],
        places: _Places,
        matched: dict[int, _Number],
        doubtful: set[str | None],
    ) -> None:
        self._items, self._places, self._matched, self._doubtful = items, places, matched, doubtful
        self._free = sorted(places.keys() - matched.values())
        self._next = max((number for rank, number in places if rank == _OWN), default=0) + 1
        numbers = [matched[index] for index in sorted(matched)]
        self._is_in_order = numbers == sorted(numbers)
        self._has_forgotten = any(place.is_forgotten for place in places.values())

    def records(self) -> Iterator[Used]:
        """Yield a record for each item."""
        for is_known, run in groupby(range(len(self._items)), key=self._matched.__contains__):
            indices = [*run]
            if not is_known:
                yield from self._place_run(indices)
                continue
            for index in indices:
                yield self._use_known(self._items[index], self._places[self._matched[index]])

    def _use_known(self, item: ListItem, place: ListPlace) -> Used:
        event, text = item.event, event_text(item.event) or ""
        stored = place.holdings[0].base
        if isinstance(event, DailyEventRecorded) and stored and isinstance(stored.event, MemorySaved):
            event = replace(stored.event, content=text, ts=None)
        for name, each in zip(place.ids, place.holdings, strict=True):
            # A version whose import was undone comes back as one: with what it replaced.
            if each.has_had_text(text) and not (each.is_hidden and name != place.ids[0]):
                return _rename(item.record, event, name)
        return _make_version(item.record, event, place.ids)  # known by its former text

    def _place_run(self, indices: list[int]) -> Iterator[Used]:
        """Yield a record for each item in a run of consecutive items with new texts."""
        before = self._matched.get(indices[0] - 1, (-1, 0))
        after = self._matched.get(indices[-1] + 1, (_OWN + 1, 0))
        between = [number for number in self._free if before < number < after]
        forgotten = [number for number in between if self._places[number].is_forgotten]
        live = [number for number in between if number not in forgotten]
        if self._has_forgotten and not self._is_growth(indices, forgotten):
            is_certain = self._is_in_order and not live and len(indices) <= len(forgotten)
            for item, number in zip_longest([self._items[index] for index in indices], forgotten):
                if item is not None and is_certain and number is not None:
                    self._free.remove(number)
                    yield _rename(item.record, item.event, self._places[number].ids[0])
                elif item is not None:
                    self._doubtful.add(item.record.group)
                    yield self._use_new(item)._replace(group=item.record.group)
            return
        for index in indices:
            item = self._items[index]
            number = next((each for each in live if self._may_replace(item, each)), None)
            if number is None:
                yield self._use_new(item)
            else:
                live.remove(number)
                self._free.remove(number)
                yield _make_version(item.record, item.event, self._places[number].ids)

    def _is_growth(self, indices: list[int], forgotten: list[_Number]) -> bool:
        """Whether the items are new: they come last, and all forgotten items are matched."""
        is_last = indices[-1] == len(self._items) - 1
        is_met = not any(self._places[number].is_forgotten for number in self._free)
        return is_last and is_met and self._is_in_order and not forgotten

    def _may_replace(self, item: ListItem, number: _Number) -> bool:
        base = self._places[number].holdings[0].base
        is_alike = base is not None and type(base.event) is type(item.event)
        key = getattr(item.event, "key", None)
        return item.record.is_editable and is_alike and getattr(base and base.event, "key", None) == key

    def _use_new(self, item: ListItem) -> Used:
        name, self._next = f"{item.list_id}/{self._next}", self._next + 1
        return _rename(item.record, item.event, name)


def _make_version(record: Used, event: Event, ids: Sequence[str]) -> Used:
    """Return the record of an item's new version. ids: the ids of its versions in the log, oldest first."""
    name, change = ids[0], event
    match event:
        case MemorySaved():
            change = MemoryUpdated(id=f"{name}/updated", ts=event.ts, memory_id=name, content=event.content)
        case CoreMemoryUpdated():
            change = replace(event, id=f"{name}/updated")
        case DailyEventRecorded():  # which nothing changes: a new one takes its place
            digest = short_sha256(event.summary.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
            name = f"{name.partition('~')[0]}~{digest}"
            former = [each for each in ids if each != name]
            change = DailyEventsCompressed(id=f"{name}/compressed", ts=event.ts, ids=former)
    return _rename(record, event, name)._replace(changes=[change])


def _rename(record: Used, event: Event, name: str) -> Used:
    """Return a record with one event under another id, and without a group, since the id is certain."""
    named = replace(event, id=name)
    if isinstance(named, MemorySaved):
        named = replace(named, memory_id=name)
    return record._replace(events=[named], group=None)
