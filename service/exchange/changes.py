"""What a source says of a record that the log does not know yet, as an event that overrules no later one."""

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.content_ids import content_hash_of_one
from memlog.eventlog.envelope import Change, Event
from memlog.eventlog.events import CoreMemoryUpdated, FactStored, MemoryAccessed, MemorySaved
from memlog.eventlog.secrets import masked
from memlog.eventlog.store_key import keyed_hash
from memlog.query.memories import Memory
from memlog.service.exchange.holdings import DATED, Holding, StoredChange, aspect_of, text_of

_FIRST = "1970-01-01T00:00:00.000Z"
_HASH_LENGTH = 12

State = Literal["new", "known", "forgotten"]


def dated(event: Event, now: str, *, is_changed: bool) -> Event:
    """Return a record's own event with a precedence: a time in the future, or none, overrules nothing.

    is_changed: whether changes follow, which need a time before theirs.
    """
    if not isinstance(event, Change):
        return event
    is_trusted = event.ts is not None and event.ts <= now
    if isinstance(event, CoreMemoryUpdated | FactStored) and not is_trusted:
        return replace(event, ts=event.ts or now, wins=_FIRST)  # a person may have set it
    if event.ts is None:
        return replace(event, ts=now) if is_changed else event
    return event if is_trusted else replace(event, wins=now)


def stored(event: Event, aspect: str, now: str) -> StoredChange:
    """Return what the log will hold of a new event."""
    return StoredChange(event, aspect, event.ts or now, getattr(event, "wins", None) or event.ts or now)


def state_of(change: Event, base_id: str, holding: Holding, now: str) -> State:
    """Return what becomes of a change: `known` also if a later one is, or if it says nothing new."""
    aspect, _ = aspect_of(str(change.id), base_id)
    claimed = change.ts or ""
    if any(each.aspect == aspect and claimed <= each.until for each in holding.forgotten):
        return "forgotten"
    earlier = holding.of(aspect)
    if not isinstance(change, MemoryAccessed):
        others = (each for each in holding.changes if each.aspect in DATED)
        if any(_is_before(claimed, each, now) for each in (*earlier, *others)):
            return "known"
    if not earlier:
        return "new"
    last = earlier[-1]
    if isinstance(change, MemoryAccessed):
        is_later = claimed > str(last.event.ts) and all(each.claimed != claimed for each in earlier)
        is_known = change.times <= _accesses(earlier) and not is_later
    elif aspect == "archived":
        is_known = type(last.event) is type(change)
    else:
        is_known = any(
            _is_same(change, each.event) for each in earlier if each is last or each.claimed == claimed
        )
    return "known" if is_known else "new"


def _is_before(claimed: str, known: StoredChange, now: str) -> bool:
    """Whether a time of the source is before a known change: it is an older copy that says so.

    A change that claimed a time in the future is one of the time when it was imported, except to another
    that claims one.
    """
    if not claimed:
        return False
    return claimed < (known.claimed if claimed > now else min(known.claimed, str(known.event.ts)))


def _is_same(change: Event, other: Event) -> bool:
    """Whether two changes of one aspect say the same; what is stored may be masked."""
    text = text_of(change)
    if text is not None:
        return text_of(other) in (text, masked(text))
    return content_hash_of_one(change) == content_hash_of_one(other)


def _accesses(changes: Iterable[StoredChange]) -> int:
    return sum(each.event.times for each in changes if isinstance(each.event, MemoryAccessed))


def named(change: Event, base_id: str, holding: Holding, now: str, key: bytes) -> Change:
    """Return a new change with an id of its own, and a precedence after what it changes.

    A time in the future, or none, decides nothing: such a change is right behind what its source said last,
    and so overrules nobody else. A restored record is right behind its archiving, for the same reason.
    """
    assert isinstance(change, Change)
    aspect, _ = aspect_of(str(change.id), base_id)
    earlier = holding.of(aspect)
    if isinstance(change, MemoryAccessed):  # its source says how many there are in all
        change = replace(change, times=max(1, change.times - _accesses(earlier)))
    after = max(each.wins for each in (holding.base, *earlier) if each is not None)
    claimed = change.ts or ""
    is_trusted = claimed != "" and claimed <= now
    if is_trusted and claimed > after and not isinstance(change, MemorySaved):
        wins = claimed
    else:
        wins = timestamps.shifted(after, 1) if is_trusted else after
    said = content_hash_of_one(change).hex() + (
        str(earlier[-1].event.id) if aspect == "archived" and earlier else ""
    )
    ending = "-".join(filter(None, (claimed, keyed_hash(key, said)[:_HASH_LENGTH])))
    ts = claimed if is_trusted else now
    return replace(change, id=f"{change.id}/{ending}", ts=ts, wins=None if wins == ts else wins)


def restored(change: Event, memory: Memory | None) -> Event | None:
    """Return the event that makes an archived memory active as it is in the store; None for an active one.

    What people have changed of it stays: its source says only that it is active.
    """
    if memory is None or memory.archived_at is None:
        return None
    return MemorySaved(
        id=change.id,
        ts=change.ts,
        memory_id=memory.memory_id,
        content=memory.content,
        title=memory.title,
        category=memory.category,
        kind=memory.kind,
        importance=memory.importance,
        source=memory.source,
        topic=memory.topic,
        chat_id=memory.chat,
        tags=memory.tags or None,
    )
