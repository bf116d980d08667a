"""Classifies a new memory against existing ones: exact duplicate, near duplicate, or new.

An exact duplicate counts as an access. A near duplicate (`near_duplicates`) updates the older memory.
Anything else is saved. So is either duplicate that somebody saves of what a model distilled: it replaces the
memory, which is theirs from then on.

Each decision reads the log first. Two processes that save one text at once name one memory by its id; if they
save near duplicates at once, both may stay.
"""

from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.categories import read_as
from memlog.eventlog.content_ids import derived_memory_id, folded, with_quantities
from memlog.eventlog.encode import draft
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import MemoryAccessed, MemorySaved, MemoryUpdated
from memlog.eventlog.secrets import masked
from memlog.projector.sqlite import Connection
from memlog.query import memories, provenance
from memlog.query.memories import Memory
from memlog.query.merges import DISTILLED, worded_by_somebody
from memlog.query.provenance import StoredEvent
from memlog.query.search.duplicate_candidates import likely_memories
from memlog.service.memories.compared_text import Text
from memlog.service.memories.near_duplicates import LONGEST, says_all, similarity
from memlog.service.memories.own import taken_over
from memlog.service.memories.save import ALREADY_KNOWN, SAVED, Append, SaveReport, merged_into, save, saved
from memlog.service.read_model import Deciding

_CANDIDATES = 20
"""Memories to compare with, from the full-text index."""

_OF_A_MERGE = 0.1
"""Importance that a merge adds."""

_DIGITS = 6
"""Of an importance, lest 0.7 + 0.1 be 0.7999999999999999."""


class Decision(NamedTuple):
    """What becomes of a text: the memory that has it, and the event that says so."""

    memory_id: str
    decision: str
    event: Event | bytes


def save_once(
    append: Append, decide: Deciding, log: Path, event: MemorySaved, *, any_chat: bool
) -> SaveReport:
    """Save `event`, which names no memory_id, unless a memory says the same.

    decide: calls a function with the read model of the log as it is now.
    any_chat: compare with the memories of every chat, not only those of its own.

    Raises:
        BadInput: the event cannot be stored, or another event has its id.
        Busy, LogError: as `Append`.
        DatabaseError: the read model cannot be read.
    """
    try:
        draft(event)
    except BadInput:
        # `save` refuses it with a message that cannot contain a key.
        return save(append, event)
    memory_id, decision, found = decide(lambda db: decided(db, log, event, any_chat), creates=True)
    (position,) = append([found])
    return saved(memory_id, decision, position)


def decided(db: Connection, log: Path, event: MemorySaved, any_chat: bool) -> Decision:
    """What becomes of `event`, by the memories that there are; see `save_once`."""
    own_id = derived_memory_id(event.chat_id, event.content)
    before = _tried_before(db, log, event)
    if before is not None:
        return _again(before, event, own_id)
    own = memories.memory(db, own_id)
    if (
        own is not None
        and folded(own.content) == folded(event.content)
        and not _is_same(own.content, event.content)
    ):
        # It says 5² or mW, and this one 52 or MW.
        own_id = derived_memory_id(event.chat_id, with_quantities(event.content))
        own = memories.memory(db, own_id)
    is_kept = own is not None and (own.archived_at is None or event.source not in DISTILLED)
    if own is not None and is_kept and _is_same(own.content, event.content):
        return _known(db, own, event)
    if len(event.content) > LONGEST or (found := _of_others(db, event, own, any_chat)) is None:
        return Decision(own_id, SAVED, msgspec.structs.replace(event, memory_id=own_id))
    return found


def _of_others(db: Connection, event: MemorySaved, own: Memory | None, any_chat: bool) -> Decision | None:
    """The decision by comparison with memories of similar length; None to save it.

    own: the memory with the id of this text, which may have another text by now.
    """
    new = Text(event.content)
    texts = [(memory, Text(memory.content)) for memory in _candidates(db, event, own, any_chat)]
    same = [memory for memory, text in texts if text.normalised == new.normalised]
    if same:
        return _known(db, min(same, key=lambda memory: memory.chat != (event.chat_id or None)), event)
    if own is not None and own.archived_at is not None:
        return None
    for memory, text in texts:
        if own is not None and memory.memory_id == own.memory_id and says_all(text, new):
            return _known(db, memory, event, memory.content)
    alike = [
        (found, memory, text)
        for memory, text in texts
        if _may_become(memory, event) and (found := similarity(text, new)) is not None
    ]
    if not alike:
        return None
    _, memory, text = max(alike, key=itemgetter(0))
    if event.source in DISTILLED and memory.memory_id in worded_by_somebody(db):
        # A model words nothing anew that somebody saved.
        return _known(db, memory, event) if says_all(text, new) else None
    return _merged(db, memory, event)


def _candidates(db: Connection, event: MemorySaved, own: Memory | None, any_chat: bool) -> list[Memory]:
    # Half to twice as long, since white space and punctuation are not compared.
    lengths = (len(event.content) // 2, min(len(event.content) * 2, LONGEST))
    chat = event.chat_id or None
    found = likely_memories(
        db, event.content, chat=chat, any_chat=any_chat, lengths=lengths, limit=_CANDIDATES
    )
    if own is None or own.archived_at is not None or len(own.content) > LONGEST or own in found:
        return found
    return [*found, own]


def _may_become(memory: Memory, event: MemorySaved) -> bool:
    """Whether `event` may update a memory: of its kind, category and topic, and not changed after it."""
    now = timestamps.now() if event.ts is None else timestamps.normalised(event.ts, naive_is_utc=False)
    return (
        (memory.kind, read_as(memory.category)) == (event.kind, event.category)
        and (not memory.topic or not event.topic or memory.topic == event.topic)
        and memory.updated_at <= now
    )


def _is_same(stored: str, content: str) -> bool:
    """Whether a stored text is `content`, with or without masked keys."""
    said = folded(with_quantities(stored))
    return said in (folded(with_quantities(content)), folded(with_quantities(masked(content))))


def _known(db: Connection, memory: Memory, event: MemorySaved, content: str | None = None) -> Decision:
    """The decision about what a memory says. content: its text where it says more than `event`."""
    if _is_taken_over(db, memory, event):
        return Decision(memory.memory_id, SAVED, taken_over(memory, event, content or event.content))
    accessed = MemoryAccessed(id=event.id, ts=event.ts, memory_ids=[memory.memory_id], by="save")
    return Decision(memory.memory_id, ALREADY_KNOWN, accessed)


def _merged(db: Connection, memory: Memory, event: MemorySaved) -> Decision:
    if _is_taken_over(db, memory, event):
        return Decision(memory.memory_id, SAVED, taken_over(memory, event, event.content))
    new_tags = [tag for tag in event.tags or () if tag not in memory.tags]
    updated = MemoryUpdated(
        id=event.id,
        ts=event.ts,
        memory_id=memory.memory_id,
        content=event.content,
        title=event.title or None,
        topic=event.topic or None,
        importance=min(1.0, round(max(memory.importance, event.importance) + _OF_A_MERGE, _DIGITS)),
        tags=[*memory.tags, *dict.fromkeys(new_tags)] if new_tags else None,
    )
    return Decision(memory.memory_id, merged_into(memory.memory_id), updated)


def _is_taken_over(db: Connection, memory: Memory, event: MemorySaved) -> bool:
    """Whether somebody saves what a model distilled, and nobody has worded."""
    return event.source not in DISTILLED and memory.memory_id not in worded_by_somebody(db)


# A second try


def _tried_before(db: Connection, log: Path, event: MemorySaved) -> StoredEvent | None:
    if event.id is None:
        return None
    found = provenance.stored(db, log, event.id, "memory")
    return found if found is not None and found.id == event.id else None


def _again(before: StoredEvent, event: MemorySaved, own_id: str) -> Decision:
    """The decision of the first try, with its line, which counts once.

    Raises:
        BadInput: the stored event has another content.
    """
    members = msgspec.json.decode(before.raw)
    memory_id, *others = members.get("memory_ids") or [members.get("memory_id")]
    is_same = before.type == "memory_accessed" or _is_same(members.get("content") or "", event.content)
    decision = {
        "memory_saved": SAVED,
        "memory_updated": merged_into(memory_id),
        "memory_accessed": ALREADY_KNOWN,
    }.get(before.type)
    if decision is None or others or not is_same:
        raise BadInput(f"the event {before.id} says something else", hint="give another id, or none")
    return Decision(memory_id or own_id, decision, before.raw.encode())
