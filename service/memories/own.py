"""Memories that a model distilled, as a person's own: no model changes them any more."""

from msgspec.structs import replace

from memlog.eventlog.events import MemorySaved
from memlog.projector.handlers.memories import TITLE_LENGTH
from memlog.query.memories import Memory

_GIVEN = ("category", "kind", "importance", "topic", "title")


def as_own(memory: Memory) -> MemorySaved:
    """Return the event that makes a memory somebody's own, as it is."""
    return MemorySaved(
        memory_id=memory.memory_id,
        content=memory.content,
        title=memory.title if memory.title != memory.content[:TITLE_LENGTH] else None,
        category=memory.category,
        kind=memory.kind,
        importance=memory.importance,
        topic=memory.topic,
        chat_id=memory.chat,
        tags=memory.tags or None,
    )


def taken_over(memory: Memory, event: MemorySaved, content: str) -> MemorySaved:
    """Return the event that makes a memory the own of whoever saves `event`, which says the same.

    What they do not give stays as it is.
    """
    plain = MemorySaved(content=content)
    given = {name: getattr(event, name) for name in _GIVEN if getattr(event, name) != getattr(plain, name)}
    tags = [*dict.fromkeys([*memory.tags, *(event.tags or ())])]
    said = replace(event, memory_id=memory.memory_id, content=content, chat_id=memory.chat, tags=tags or None)
    kept = {name: getattr(as_own(memory), name) for name in _GIVEN}
    return replace(said, **kept | given)
