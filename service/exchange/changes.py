"""Compares a source's changes with the log, and gives each new change an id and a precedence."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal

from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.codec.content_ids import content_hash_without_openssl
from memlog.eventlog.events import (
    Change,
    CoreMemoryUpdated,
    Event,
    FactStored,
    MemoryAccessed,
    MemorySaved,
    Message,
    MessageUpdated,
)
from memlog.eventlog.secrets.detection import mask_keys
from memlog.eventlog.secrets.outgoing import compute_keyed_hash
from memlog.query.memories import Memory
from memlog.service.exchange import holdings
from memlog.service.exchange.holdings import Holding, StoredChange
from memlog.service.memory.placeholders import is_denial, is_placeholder

_EPOCH = "1970-01-01T00:00:00.000Z"
_HASH_LENGTH = 12

State = Literal["new", "known", "forgotten"]


def add_precedence(event: Event, now: str, *, is_changed: bool) -> Event:
    """Return an event with a precedence: the lowest if its time is missing or in the future.

    is_changed: whether changes of the record follow, so that the event needs an earlier time.
    """
    if not isinstance(event, Change):
        return event
    is_trusted = event.ts is not None and event.ts <= now
    if isinstance(event, CoreMemoryUpdated | FactStored) and not is_trusted:
        return replace(event, ts=event.ts or now, wins=_EPOCH)  # a person may have set it
    if event.ts is None:
        return replace(event, ts=now) if is_changed else event
    return event if is_trusted else replace(event, wins=now)


def to_stored_change(event: Event, aspect: str, now: str) -> StoredChange:
    """Convert a new event to a `StoredChange`, as if it were already in the log."""
    return StoredChange(event, aspect, event.ts or now, getattr(event, "wins", None) or event.ts or now)


def classify_change(change: Event, base_id: str, holding: Holding, now: str) -> State:
    """Return whether a change is new, known or forgotten. Outdated and redundant changes count as known."""
    aspect, _ = holdings.parse_aspect_and_time(str(change.id), base_id)
    claimed = change.ts or ""
    if any(each.aspect == aspect and claimed <= each.until for each in holding.forgotten):
        return "forgotten"
    earlier = holding.changes_of(aspect)
    if not isinstance(change, MemoryAccessed):
        others = (each for each in holding.changes if each.aspect in holdings.DATED)
        if any(_is_before(claimed, each, now) for each in (*earlier, *others)):
            return "known"
    if not earlier:
        return "new"
    last = earlier[-1]
    if isinstance(change, MemoryAccessed):
        is_later = claimed > str(last.event.ts) and all(each.claimed != claimed for each in earlier)
        is_known = change.times <= _count_accesses(earlier) and not is_later
    elif aspect == "archived":
        is_known = type(last.event) is type(change)
    else:
        is_known = any(
            _is_same(change, each.event) for each in earlier if each is last or each.claimed == claimed
        )
    return "known" if is_known else "new"


def _is_before(claimed: str, known: StoredChange, now: str) -> bool:
    """Whether a change is older than a known one, and so comes from an older copy of the source.

    A known change dated in the future counts from its import, unless `claimed` is in the future, too.
    """
    if not claimed:
        return False
    return claimed < (known.claimed if claimed > now else min(known.claimed, str(known.event.ts)))


def _is_same(change: Event, other: Event) -> bool:
    """Whether two changes of one aspect are equal. Keys may be masked in the stored change."""
    text = holdings.event_text(change)
    if text is not None:
        return holdings.event_text(other) in (text, mask_keys(text))
    return content_hash_without_openssl(change) == content_hash_without_openssl(other)


def _count_accesses(changes: Iterable[StoredChange]) -> int:
    return sum(each.event.times for each in changes if isinstance(each.event, MemoryAccessed))


def add_own_id(change: Event, base_id: str, holding: Holding, now: str, key: bytes) -> Change:
    """Return a new change with its own id and a precedence after the events that it changes.

    A change whose time is missing or in the future directly follows its source's last change, so that it
    overrides nothing else. For the same reason, a record is restored directly after it was archived.
    """
    assert isinstance(change, Change)
    aspect, _ = holdings.parse_aspect_and_time(str(change.id), base_id)
    earlier = holding.changes_of(aspect)
    if isinstance(change, MemoryAccessed):  # its source counts the total
        change = replace(change, times=max(1, change.times - _count_accesses(earlier)))
    after = max(each.wins for each in (holding.base, *earlier) if each is not None)
    claimed = change.ts or ""
    is_trusted = claimed != "" and claimed <= now
    if is_trusted and claimed > after and not isinstance(change, MemorySaved):
        wins = claimed
    else:
        wins = timestamps.shift_timestamp(after, 1) if is_trusted else after
    digest = content_hash_without_openssl(change).hex() + (
        str(earlier[-1].event.id) if aspect == "archived" and earlier else ""
    )
    ending = "-".join(filter(None, (claimed, compute_keyed_hash(key, digest)[:_HASH_LENGTH])))
    ts = claimed if is_trusted else now
    return replace(change, id=f"{change.id}/{ending}", ts=ts, wins=None if wins == ts else wins)


def restoring_event(change: Event, memory: Memory | None) -> Event | None:
    """Return an event that restores an archived memory with its content, or None if it is not archived.

    People's changes stay, because the source only says that the memory is active.
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


def to_edit(event: Message) -> MessageUpdated:
    """Return the change of a known message. Its id is the same on every machine that imports it."""
    return MessageUpdated(
        id=f"{event.id}~{sha256(event.content.encode()).hexdigest()[:_HASH_LENGTH]}",
        channel=event.channel,
        chat_id=event.chat_id,
        message_id=str(event.id),
        content=event.content,
    )


def is_unfilled(event: Event) -> bool:
    """Whether an event is a memory or core memory value whose content is only a placeholder."""
    if isinstance(event, MemorySaved):
        return is_placeholder(event.content)
    if isinstance(event, CoreMemoryUpdated):
        return is_placeholder(event.value) and not is_denial(event.value)
    return False
