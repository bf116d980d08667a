"""Saving a memory. It does not look into the read model, so that it takes little longer than an append."""

from collections.abc import Callable
from typing import Literal

import msgspec

from memlog.eventlog.events import Event, MemorySaved
from memlog.eventlog.identity import derived_memory_id
from memlog.eventlog.log import Position

Append = Callable[[list[Event]], list[Position]]
"""Makes events durable and says where they stand; raises BadInput, Busy and LogError."""


class Saved(msgspec.Struct, kw_only=True):
    """What became of a memory that was saved.

    decision: `saved`: it stands in the log as a memory of its own, or as what its memory_id now says.
    """

    memory_id: str
    event_id: str
    decision: Literal["saved"]
    position: Position


def save(append: Append, event: MemorySaved) -> Saved:
    """Append `event`, with the memory_id that its chat and content give it where it names none.

    The id is written down, so that whoever looks for it in the log finds it. Raises as `Append`.
    """
    memory_id = event.memory_id
    if memory_id is None:
        memory_id = derived_memory_id(event.chat_id, event.content)
    (position,) = append([msgspec.structs.replace(event, memory_id=memory_id)])
    return Saved(memory_id=memory_id, event_id=position.id, decision="saved", position=position)
