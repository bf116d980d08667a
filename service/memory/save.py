"""Saves a memory without reading the read model, almost as fast as a plain append.

`duplicates.save_once` looks for duplicates first.
"""

from collections.abc import Callable, Sequence

import msgspec

from memlog.eventlog.codec.content_ids import derive_memory_id
from memlog.eventlog.events import Event, MemorySaved
from memlog.eventlog.positions import AppendWarning, Position

Append = Callable[[Sequence[Event | bytes]], list[Position]]
"""Makes events, or lines, durable and returns their positions; raises BadInput, Busy and LogError."""

SAVED = "saved"
ALREADY_KNOWN = "already known"


def format_merge_decision(memory_id: str) -> str:
    """Return the `decision` that reports a merge into a memory."""
    return f"merged into {memory_id}"


class SaveReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of a save.

    memory_id: the id of the memory that contains the text.
    decision: `saved`: a new memory, or one that replaced the memory with its memory_id or an equivalent one
        that a model had distilled.
        `merged into ID`: a near duplicate, which now has this text.
        `already known`: an exact duplicate; the save was counted, and restored its full salience.
    event_id, position, warnings: the appended event's id, position and warnings.
    """

    memory_id: str
    event_id: str
    decision: str
    position: Position
    warnings: list[AppendWarning] = []


def append_saved_memory(append: Append, event: MemorySaved) -> SaveReport:
    """Append `event`, deriving its memory_id from the chat and content if it has none.

    The id is part of the event, so that a search of the log finds it. Raises the errors of `Append`.
    """
    if (memory_id := event.memory_id) is None:
        memory_id = derive_memory_id(event.chat_id, event.content)
    (position,) = append([msgspec.structs.replace(event, memory_id=memory_id)])
    return make_save_report(memory_id, SAVED, position)


def make_save_report(memory_id: str, decision: str, position: Position) -> SaveReport:
    """Return a report on a save whose event was appended."""
    return SaveReport(
        memory_id=memory_id,
        event_id=position.id,
        decision=decision,
        position=position,
        warnings=[*position.warnings],
    )
