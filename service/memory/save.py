"""Saving a memory as it is given, without a look into the read model: it takes little longer than an append.

`deduplication` looks first.
"""

from collections.abc import Callable, Sequence

import msgspec

from memlog.eventlog.codec.content_ids import derived_memory_id
from memlog.eventlog.events import AppendWarning, Event, MemorySaved, Position

Append = Callable[[Sequence[Event | bytes]], list[Position]]
"""Makes events, or lines, durable and returns their positions; raises BadInput, Busy and LogError."""

SAVED = "saved"
ALREADY_KNOWN = "already known"


def merged_into(memory_id: str) -> str:
    """Return the decision to merge the text into a memory."""
    return f"merged into {memory_id}"


class SaveReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of a save.

    memory_id: of the memory that has the text.
    decision: `saved`: it is a memory of its own, or replaced the memory with its memory_id, or what a model
        had distilled of the same.
        `merged into ID`: a near duplicate, which has this text now.
        `already known`: an exact duplicate; the save was counted, and its salience is whole again.
    event_id, position, warnings: of the event that was appended.
    """

    memory_id: str
    event_id: str
    decision: str
    position: Position
    warnings: list[AppendWarning] = []


def save(append: Append, event: MemorySaved) -> SaveReport:
    """Append `event`, with the memory_id that its chat and content give it where it names none.

    The id is part of the event, so that a search of the log finds it. Raises as `Append`.
    """
    memory_id = event.memory_id
    if memory_id is None:
        memory_id = derived_memory_id(event.chat_id, event.content)
    (position,) = append([msgspec.structs.replace(event, memory_id=memory_id)])
    return saved(memory_id, SAVED, position)


def saved(memory_id: str, decision: str, position: Position) -> SaveReport:
    """Return the outcome of an append."""
    return SaveReport(
        memory_id=memory_id,
        event_id=position.id,
        decision=decision,
        position=position,
        warnings=[*position.warnings],
    )
